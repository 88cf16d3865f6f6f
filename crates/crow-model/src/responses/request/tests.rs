use crow_core::{
    CallId, ContentPart, MessageId, Prompt, ProviderState, Reply, ReplyEnd, ToolAccess, ToolArguments,
    ToolCall, ToolCallInfo, ToolCallStatus, ToolKind, ToolResult, ToolSpec, Transcript, TranscriptEntry,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::build_body;
use crate::ModelSettings;
use crate::test_settings::sample_settings;

/// The model of the settings, as a reply names it.
const BY: &str = "acme/acme-9";

fn prompt(parts: Vec<ContentPart>) -> TranscriptEntry {
    TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts })
}

fn say(text: &str) -> TranscriptEntry {
    prompt(vec![ContentPart::Text(text.to_owned())])
}

fn image() -> ContentPart {
    ContentPart::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() }
}

/// A reply at sequence number `seq` that calls `read` once for each provider ID.
fn reply(seq: u64, text: &str, provider_ids: &[&str]) -> TranscriptEntry {
    sealed_reply(seq, text, provider_ids, BY, &[])
}

fn sealed_reply(seq: u64, text: &str, provider_ids: &[&str], by: &str, pieces: &[Value]) -> TranscriptEntry {
    let calls = provider_ids.iter().enumerate().map(|(index, id)| ToolCall {
        id: CallId::from_position(seq, index),
        provider_id: (*id).to_owned(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(json!({"path": "a"}).as_object().unwrap().clone()),
    });
    TranscriptEntry::Reply(Reply {
        id: MessageId::from_seq(seq),
        thought: "hm".to_owned(),
        text: text.to_owned(),
        calls: calls.collect(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: (!pieces.is_empty())
            .then(|| ProviderState { model: by.to_owned(), items: pieces.to_vec() }),
        fallback_model: None,
    })
}

fn result(seq: u64, index: usize, parts: Vec<ContentPart>) -> TranscriptEntry {
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Read,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let outcome = ToolResult {
        status: ToolCallStatus::Completed,
        for_model: parts,
        for_client: Vec::new(),
        plan: None,
    };
    TranscriptEntry::Result { call: CallId::from_position(seq, index), info, result: outcome }
}

fn done(seq: u64, index: usize) -> TranscriptEntry {
    result(seq, index, vec![ContentPart::Text("ok".to_owned())])
}

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": format!("sealed {id}")})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "status": "completed", "role": "assistant", "phase": "commentary",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, call_id: &str) -> Value {
    json!({"type": "function_call", "id": id, "call_id": call_id})
}

fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object"});
    vec![ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }]
}

fn spelled(settings: &ModelSettings, entries: Vec<TranscriptEntry>) -> String {
    let mut transcript = Transcript::new("be good");
    for entry in entries {
        transcript.push(entry).unwrap();
    }
    let bytes = build_body(settings, transcript.for_model().unwrap(), &tools()).unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(crow_testkit::responses_violations(&body), [""; 0]);
    String::from_utf8(bytes).unwrap()
}

#[track_caller]
fn check(entries: Vec<TranscriptEntry>, expected: &Expect) {
    check_with(&sample_settings(), entries, expected);
}

#[track_caller]
fn check_with(settings: &ModelSettings, entries: Vec<TranscriptEntry>, expected: &Expect) {
    let body: Value = serde_json::from_str(&spelled(settings, entries)).unwrap();
    let items = body["input"].as_array().unwrap();
    expected.assert_eq(&items.iter().map(|item| format!("{item}\n")).collect::<String>());
}

#[test]
fn text_calls_and_results() {
    check(
        vec![
            say("hello"),
            say("again"),
            reply(2, "let me see", &["x", "y"]),
            result(2, 1, vec![]),
            result(2, 0, vec![ContentPart::Text("one".to_owned()), ContentPart::Text("two".to_owned())]),
            reply(5, "done", &[]),
            say("thanks"),
        ],
        &expect![[r#"
            {"type":"message","role":"user","content":[{"type":"input_text","text":"hello\nagain"}]}
            {"type":"message","id":"msg_crow_2","role":"assistant","status":"completed","content":[{"type":"output_text","text":"let me see","annotations":[]}]}
            {"type":"function_call","call_id":"x","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call","call_id":"y","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call_output","call_id":"x","output":"one\ntwo"}
            {"type":"function_call_output","call_id":"y","output":"(no output)"}
            {"type":"message","id":"msg_crow_5","role":"assistant","status":"completed","content":[{"type":"output_text","text":"done","annotations":[]}]}
            {"type":"message","role":"user","content":[{"type":"input_text","text":"thanks"}]}
        "#]],
    );
}

#[test]
fn calls_have_unique_ids() {
    let long = "x".repeat(65);
    check(
        vec![
            say("go"),
            reply(1, "", &["x", "x", "", &long]),
            done(1, 0),
            done(1, 1),
            done(1, 2),
            done(1, 3),
            reply(6, "", &["x"]),
            done(6, 0),
        ],
        &expect![[r#"
            {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
            {"type":"function_call","call_id":"x","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call","call_id":"call-1-1","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call","call_id":"call-1-2","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call","call_id":"call-1-3","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call_output","call_id":"x","output":"ok"}
            {"type":"function_call_output","call_id":"call-1-1","output":"ok"}
            {"type":"function_call_output","call_id":"call-1-2","output":"ok"}
            {"type":"function_call_output","call_id":"call-1-3","output":"ok"}
            {"type":"function_call","call_id":"call-6-0","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call_output","call_id":"call-6-0","output":"ok"}
        "#]],
    );
}

#[test]
fn links_resources_and_images() {
    let link = ContentPart::Link { uri: "file:///a.rs#L1:2".to_owned(), name: "a.rs".to_owned(), mime: None };
    let resource = ContentPart::Resource { uri: "file:///b".to_owned(), text: "bee".to_owned(), mime: None };
    check(
        vec![
            prompt(vec![ContentPart::Text("see".to_owned()), link, image(), resource]),
            reply(1, "", &["x", "y"]),
            result(1, 0, vec![ContentPart::Text("a".to_owned()), image()]),
            result(1, 1, vec![image()]),
        ],
        &expect![[r#"
            {"type":"message","role":"user","content":[{"type":"input_text","text":"see\n[a.rs](/a.rs) (lines 1 to 2)"},{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"},{"type":"input_text","text":"<resource uri=\"file:///b\">\nbee\n</resource>"}]}
            {"type":"function_call","call_id":"x","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call","call_id":"y","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call_output","call_id":"x","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"}]}
            {"type":"function_call_output","call_id":"y","output":[{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"}]}
        "#]],
    );
}

#[test]
fn reply_cancelled_while_thinking_is_no_item() {
    check(
        vec![say("one"), sealed_reply(1, "", &[], BY, &[reasoning("rs_1")]), say("two")],
        &expect![[r#"
            {"type":"message","role":"user","content":[{"type":"input_text","text":"one\ntwo"}]}
        "#]],
    );
}

#[test]
fn provider_state_is_sent_back_in_order() {
    let pieces = [
        reasoning("rs_1"),
        message("msg_1", "I look."),
        reasoning("rs_2"),
        call("fc_1", "x"),
        message("msg_2", "And again."),
        call("fc_2", "y"),
        reasoning("rs_3"),
    ];
    check(
        vec![
            say("go"),
            sealed_reply(1, "I look.\n\nAnd again.", &["x", "y"], BY, &pieces),
            done(1, 0),
            done(1, 1),
        ],
        &expect![[r#"
            {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
            {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed rs_1"}
            {"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}
            {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"sealed rs_2"}
            {"type":"function_call","id":"fc_1","call_id":"x","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"message","id":"msg_2","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"And again.","annotations":[]}]}
            {"type":"function_call","id":"fc_2","call_id":"y","name":"read","arguments":"{\"path\":\"a\"}"}
            {"type":"function_call_output","call_id":"x","output":"ok"}
            {"type":"function_call_output","call_id":"y","output":"ok"}
        "#]],
    );
}

#[test]
fn changed_text_is_sent_as_crow_has_it() {
    let pieces = [reasoning("rs_1"), message("msg_1", "I look. {leaked}"), call("fc_9", "unknown")];
    check(
        vec![say("go"), sealed_reply(1, "I look.", &["x"], BY, &pieces), done(1, 0)],
        &expect![[r#"
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
        {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed rs_1"}
        {"type":"message","id":"msg_crow_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[]}]}
        {"type":"function_call","call_id":"x","name":"read","arguments":"{\"path\":\"a\"}"}
        {"type":"function_call_output","call_id":"x","output":"ok"}
    "#]],
    );
}

#[test]
fn provider_state_goes_to_no_other_model() {
    let conversation = |by| {
        let pieces = [reasoning("rs_1"), call("fc_1", "x"), json!("odd"), json!({"type": "other"})];
        vec![say("go"), sealed_reply(1, "", &["x"], by, &pieces), done(1, 0)]
    };
    let without = &expect![[r#"
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
        {"type":"function_call","call_id":"x","name":"read","arguments":"{\"path\":\"a\"}"}
        {"type":"function_call_output","call_id":"x","output":"ok"}
    "#]];
    check(conversation("acme/other"), without);
    check(conversation("other/acme-9"), without);
    let mut settings = sample_settings();
    settings.send_reasoning = Some(false);
    check_with(&settings, conversation(BY), without);
}

#[test]
fn settings_become_fields_and_extra_body_wins() {
    let mut settings = sample_settings();
    let seen = |settings: &ModelSettings| format!("{}\n", spelled(settings, vec![say("hi")]));
    let plain = seen(&settings);
    settings.max_tokens = Some(100);
    settings.temperature = Some(0.5);
    settings.reasoning_effort = Some("high".to_owned());
    let full = seen(&settings);
    settings.thought_levels =
        [("high".to_owned(), json!({"reasoning": {"effort": "xhigh"}}).as_object().unwrap().clone())].into();
    settings.extra_body = json!({"temperature": 1, "top_p": 0.9}).as_object().unwrap().clone();
    settings.send_reasoning = Some(false);
    let extra = seen(&settings);
    expect![[r#"
        {"model":"acme-9","instructions":"be good","tools":[{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object"},"strict":false}],"parallel_tool_calls":true,"stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"crow-71bf50ec0959d434","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}
        {"model":"acme-9","instructions":"be good","tools":[{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object"},"strict":false}],"parallel_tool_calls":true,"stream":true,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},"max_output_tokens":100,"temperature":0.5,"prompt_cache_key":"crow-71bf50ec0959d434","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}
        {"model":"acme-9","instructions":"be good","tools":[{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object"},"strict":false}],"parallel_tool_calls":true,"stream":true,"store":false,"max_output_tokens":100,"prompt_cache_key":"crow-71bf50ec0959d434","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"reasoning":{"effort":"xhigh"},"temperature":1,"top_p":0.9}
    "#]].assert_eq(&[plain, full, extra].concat());
}

#[test]
fn request_begins_with_the_previous_one() {
    let settings = sample_settings();
    let entries = [
        say("go"),
        sealed_reply(
            1,
            "I look.",
            &["x"],
            BY,
            &[reasoning("rs_1"), message("msg_1", "I look."), call("fc_1", "x")],
        ),
        done(1, 0),
        reply(3, "", &["x"]),
        done(3, 0),
        reply(5, "Done.", &[]),
        say("thanks"),
        say("really"),
    ];
    let is_asked = |n: &usize| matches!(n, 1 | 3 | 5 | 7);
    let bodies: Vec<String> =
        (1..=7).filter(is_asked).map(|n| spelled(&settings, entries[..n].to_vec())).collect();
    for pair in bodies.windows(2) {
        let before = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(before), "{}\n{}", pair[0], pair[1]);
    }
}

#[test]
fn cache_key_depends_on_what_sessions_of_a_directory_share() {
    let key = |entries: Vec<TranscriptEntry>| {
        let body: Value = serde_json::from_str(&spelled(&sample_settings(), entries)).unwrap();
        body["prompt_cache_key"].as_str().unwrap().to_owned()
    };
    let in_directory = |directory: &str, text: &str| {
        let kind = crow_core::CrowPart::Environment;
        let environment =
            ContentPart::FromCrow { kind, text: format!("Working directory: {directory}\nDate: today") };
        prompt(vec![environment, ContentPart::Text(text.to_owned())])
    };
    let first = key(vec![in_directory("/p", "go")]);
    assert_eq!(key(vec![in_directory("/p", "go"), reply(1, "yes", &[]), say("on")]), first);
    assert_eq!(key(vec![in_directory("/p", "no")]), first);
    assert_ne!(key(vec![in_directory("/q", "go")]), first);
    assert_ne!(key(vec![say("go")]), first);
}
