use crow_core::{
    CallId, ContentPart, MessageId, Prompt, ProviderState, Reply, ReplyEnd, ToolAccess, ToolArguments,
    ToolCall, ToolCallInfo, ToolCallStatus, ToolKind, ToolResult, ToolSpec, Transcript, TranscriptEntry,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::build_body;
use crate::ModelSettings;
use crate::test_settings::sample_settings;

fn prompt(parts: Vec<ContentPart>) -> TranscriptEntry {
    TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts })
}

fn words(text: &str) -> ContentPart {
    ContentPart::Text(text.to_owned())
}

fn say(text: &str) -> TranscriptEntry {
    prompt(vec![words(text)])
}

fn image(mime: &str) -> ContentPart {
    ContentPart::Image { mime: mime.to_owned(), data: "AA==".to_owned() }
}

/// A reply at sequence number `seq` that calls `read` once for each provider ID.
fn reply(seq: u64, text: &str, provider_ids: &[&str]) -> TranscriptEntry {
    sealed(seq, text, provider_ids, Vec::new())
}

/// The same with provider state.
fn sealed(seq: u64, text: &str, provider_ids: &[&str], pieces: Vec<Value>) -> TranscriptEntry {
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
            .then(|| ProviderState { model: sample_settings().qualified_id(), items: pieces }),
        fallback_model: None,
    })
}

fn thinking(words: &str) -> Value {
    json!({"type": "thinking", "thinking": words, "signature": "s"})
}

fn result(seq: u64, index: usize, status: ToolCallStatus, parts: Vec<ContentPart>) -> TranscriptEntry {
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Read,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let outcome = ToolResult { status, for_model: parts, for_client: Vec::new(), plan: None };
    TranscriptEntry::Result { call: CallId::from_position(seq, index), info, result: outcome }
}

fn done(seq: u64, index: usize) -> TranscriptEntry {
    result(seq, index, ToolCallStatus::Completed, vec![words("ok")])
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, parameters: Value| ToolSpec {
        name: name.to_owned(),
        description: "Does.".to_owned(),
        parameters,
    };
    vec![
        tool("read", json!({"type": "object"})),
        tool("mcp", json!({"anyOf": [{"required": ["a"]}], "properties": {"a": {}}})),
    ]
}

fn transcript(entries: Vec<TranscriptEntry>) -> Transcript {
    let mut transcript = Transcript::new("be good");
    for entry in entries {
        transcript.push(entry).unwrap();
    }
    transcript
}

/// Builds a request and checks that a strict provider accepts it.
#[track_caller]
fn request(settings: &ModelSettings, transcript: &Transcript) -> Value {
    let bytes = build_body(settings, transcript.for_model().unwrap(), &tools()).unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(crow_testkit::messages_violations(&body), [""; 0], "{body:#}");
    body
}

fn without_marks(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(|field| *field = without_marks(field.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|item| *item = without_marks(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

/// Shows the messages without cache marks.
#[track_caller]
fn check_at(settings: &ModelSettings, entries: Vec<TranscriptEntry>, expected: &Expect) {
    let body = without_marks(request(settings, &transcript(entries)));
    let messages = body["messages"].as_array().unwrap();
    let shown = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter().map(|block| format!("  {block}\n"));
        format!("{}\n{}", message["role"].as_str().unwrap(), blocks.collect::<String>())
    };
    let asked =
        if body["thinking"].is_null() { String::new() } else { format!("thinking {}\n", body["thinking"]) };
    expected.assert_eq(&(asked + &messages.iter().map(shown).collect::<String>()));
}

#[track_caller]
fn check(entries: Vec<TranscriptEntry>, expected: &Expect) {
    check_at(&sample_settings(), entries, expected);
}

fn at_level(model: &str, level: &str) -> ModelSettings {
    let mut settings = sample_settings();
    settings.model = model.to_owned();
    settings.reasoning_effort = Some(level.to_owned());
    settings
}

#[test]
fn text_calls_and_results() {
    check(
        vec![
            say("hello"),
            reply(1, "let me see", &["x", "y"]),
            result(1, 1, ToolCallStatus::Failed, vec![]),
            result(1, 0, ToolCallStatus::Completed, vec![words("one"), words("two")]),
            say("and quickly"),
            reply(5, "done", &[]),
            say("thanks"),
            say("more"),
        ],
        &expect![[r#"
            user
              {"type":"text","text":"hello"}
            assistant
              {"type":"text","text":"let me see"}
              {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
            user
              {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}
              {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"(no output)"}],"is_error":true}
              {"type":"text","text":"and quickly"}
            assistant
              {"type":"text","text":"done"}
            user
              {"type":"text","text":"thanks"}
              {"type":"text","text":"more"}
        "#]],
    );
}

#[test]
fn call_ids_are_unique_and_valid() {
    check(
        vec![
            say("go"),
            reply(1, "", &["x", "x", "", "call:1", "call-9-0"]),
            done(1, 0),
            done(1, 1),
            done(1, 2),
            done(1, 3),
            done(1, 4),
            reply(7, "", &["x", &"y".repeat(65)]),
            done(7, 0),
            done(7, 1),
        ],
        &expect![[r#"
            user
              {"type":"text","text":"go"}
            assistant
              {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"call-1-1","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"call-1-2","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"call-1-3","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"call-1-4","name":"read","input":{"path":"a"}}
            user
              {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
              {"type":"tool_result","tool_use_id":"call-1-1","content":[{"type":"text","text":"ok"}]}
              {"type":"tool_result","tool_use_id":"call-1-2","content":[{"type":"text","text":"ok"}]}
              {"type":"tool_result","tool_use_id":"call-1-3","content":[{"type":"text","text":"ok"}]}
              {"type":"tool_result","tool_use_id":"call-1-4","content":[{"type":"text","text":"ok"}]}
            assistant
              {"type":"tool_use","id":"call-7-0","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"call-7-1","name":"read","input":{"path":"a"}}
            user
              {"type":"tool_result","tool_use_id":"call-7-0","content":[{"type":"text","text":"ok"}]}
              {"type":"tool_result","tool_use_id":"call-7-1","content":[{"type":"text","text":"ok"}]}
        "#]],
    );
}

#[test]
fn links_resources_and_images() {
    let link = ContentPart::Link { uri: "file:///a.rs#L1:2".to_owned(), name: "a.rs".to_owned(), mime: None };
    let resource = ContentPart::Resource { uri: "file:///b".to_owned(), text: "bee".to_owned(), mime: None };
    check(
        vec![
            prompt(vec![words("see"), words(" \n"), link, resource, image("image/bmp")]),
            reply(1, "", &["x", "y"]),
            result(1, 0, ToolCallStatus::Completed, vec![image("image/png")]),
            result(1, 1, ToolCallStatus::Failed, vec![words("so far"), image("image/png")]),
        ],
        &expect![[r#"
            user
              {"type":"text","text":"see"}
              {"type":"text","text":"[a.rs](/a.rs) (lines 1 to 2)"}
              {"type":"text","text":"<resource uri=\"file:///b\">\nbee\n</resource>"}
              {"type":"text","text":"(an image of type image/bmp, which cannot be shown)"}
            assistant
              {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
              {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
            user
              {"type":"tool_result","tool_use_id":"x","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}
              {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"so far"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}
        "#]],
    );
}

#[test]
fn user_messages_are_first_alternating_and_last() {
    check(
        vec![prompt(vec![words(" ")]), reply(1, "one", &[]), reply(2, "", &[]), reply(3, "two", &[])],
        &expect![[r#"
            user
              {"type":"text","text":"(go on)"}
            assistant
              {"type":"text","text":"one"}
            user
              {"type":"text","text":"(go on)"}
            assistant
              {"type":"text","text":"two"}
            user
              {"type":"text","text":"(go on)"}
        "#]],
    );
    check(
        vec![prompt(vec![words(" ")])],
        &expect![[r#"
        user
          {"type":"text","text":"(go on)"}
    "#]],
    );
}

#[test]
fn invented_tool_names_are_made_valid() {
    let TranscriptEntry::Reply(mut made_up) = reply(1, "", &["x"]) else { unreachable!() };
    made_up.calls[0].name = "fs.réad".to_owned();
    made_up.calls[0].arguments = ToolArguments::Unreadable { reason: String::new() };
    check(
        vec![say("go"), TranscriptEntry::Reply(made_up), done(1, 0)],
        &expect![[r#"
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"tool_use","id":"x","name":"fs_r__ad","input":{}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
    "#]],
    );
}

fn interleaved() -> Vec<TranscriptEntry> {
    let pieces = vec![
        thinking("first"),
        json!({"type": "redacted_thinking", "data": "d"}),
        json!({"type": "text", "n_bytes": "Grüße".len()}),
        json!({"type": "tool_use"}),
        thinking("second"),
        json!({"type": "text", "n_bytes": 1}),
        json!({"type": "tool_use"}),
    ];
    vec![say("go"), sealed(1, "Grüße\n", &["x", "y"], pieces), done(1, 0), done(1, 1)]
}

#[test]
fn thinking_is_sent_back_unchanged_in_order() {
    check(
        interleaved(),
        &expect![[r#"
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"thinking","thinking":"first","signature":"s"}
          {"type":"redacted_thinking","data":"d"}
          {"type":"text","text":"Grüße"}
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
          {"type":"thinking","thinking":"second","signature":"s"}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
    "#]],
    );
}

#[test]
fn thinking_goes_back_to_its_model_only() {
    let without = expect![[r#"
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"text","text":"Grüße\n"}
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
    "#]];
    let mut other = sample_settings();
    other.model = "acme-10".to_owned();
    check_at(&other, interleaved(), &without);
    let mut unwanted = sample_settings();
    unwanted.send_reasoning = Some(false);
    check_at(&unwanted, interleaved(), &without);
    let mut off = sample_settings();
    off.reasoning_effort = Some("none".to_owned());
    check_at(
        &off,
        interleaved(),
        &expect![[r#"
        thinking {"type":"disabled"}
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"text","text":"Grüße"}
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
    "#]],
    );
}

#[test]
fn trailing_thinking_is_omitted() {
    let cancel = sealed(1, "", &[], vec![thinking("first")]);
    let cut_later =
        sealed(2, "Hel", &[], vec![thinking("a"), json!({"type": "text", "n_bytes": 99}), thinking("b")]);
    check(
        vec![say("go"), cancel, cut_later, say("on")],
        &expect![[r#"
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"thinking","thinking":"a","signature":"s"}
          {"type":"text","text":"Hel"}
        user
          {"type":"text","text":"on"}
    "#]],
    );
}

/// A turn whose first reply has no thinking.
fn begun_without() -> Vec<TranscriptEntry> {
    vec![
        say("go"),
        reply(1, "", &["x"]),
        done(1, 0),
        sealed(3, "", &["y"], vec![thinking("hm"), json!({"type": "tool_use"})]),
        done(3, 0),
    ]
}

#[test]
fn turn_started_without_thinking_continues_without() {
    let budget = at_level("acme-9", "low");
    check_at(
        &budget,
        begun_without(),
        &expect![[r#"
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
        assistant
          {"type":"thinking","thinking":"hm","signature":"s"}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
    "#]],
    );
    let next = [begun_without(), vec![reply(5, "done", &[]), say("next")]].concat();
    check_at(
        &budget,
        next,
        &expect![[r#"
        thinking {"type":"enabled","budget_tokens":4000}
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
        assistant
          {"type":"thinking","thinking":"hm","signature":"s"}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
        assistant
          {"type":"text","text":"done"}
        user
          {"type":"text","text":"next"}
    "#]],
    );
}

#[test]
fn turn_started_with_thinking_continues_with_it() {
    check_at(
        &at_level("acme-9", "low"),
        interleaved(),
        &expect![[r#"
        thinking {"type":"enabled","budget_tokens":4000}
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"thinking","thinking":"first","signature":"s"}
          {"type":"redacted_thinking","data":"d"}
          {"type":"text","text":"Grüße"}
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
          {"type":"thinking","thinking":"second","signature":"s"}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
    "#]],
    );
}

#[test]
fn thinking_is_omitted_if_disabled() {
    let mut entries = interleaved();
    if let TranscriptEntry::Reply(reply) = &mut entries[1]
        && let Some(sealed) = &mut reply.provider_state
    {
        sealed.model = "acme/claude-sonnet-4-5".to_owned();
    }
    let mut unasked = sample_settings();
    unasked.model = "claude-sonnet-4-5".to_owned();
    check_at(
        &unasked,
        entries,
        &expect![[r#"
        user
          {"type":"text","text":"go"}
        assistant
          {"type":"text","text":"Grüße"}
          {"type":"tool_use","id":"x","name":"read","input":{"path":"a"}}
          {"type":"tool_use","id":"y","name":"read","input":{"path":"a"}}
        user
          {"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"ok"}]}
          {"type":"tool_result","tool_use_id":"y","content":[{"type":"text","text":"ok"}]}
    "#]],
    );
}

#[test]
fn settings_become_fields_and_extra_body_wins() {
    let mut transcript = Transcript::new("");
    transcript.push(say("hi")).unwrap();
    let mut settings = at_level("claude-opus-4-6", "high");
    settings.max_tokens = Some(100);
    settings.temperature = Some(0.5);
    settings.extra_body = json!({"top_p": 0.95, "stream": false}).as_object().unwrap().clone();
    let text = |settings: &ModelSettings| {
        let bytes = build_body(settings, transcript.for_model().unwrap(), &tools()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    expect![[r#"{"model":"claude-opus-4-6","max_tokens":100,"tools":[{"name":"read","description":"Does.","input_schema":{"type":"object"}},{"name":"mcp","description":"Does.","input_schema":{"properties":{"a":{}},"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"top_p":0.95,"stream":false}"#]].assert_eq(&text(&settings));
    settings.reasoning_effort = None;
    settings.extra_body.clear();
    expect![[r#"{"model":"claude-opus-4-6","max_tokens":100,"stream":true,"tools":[{"name":"read","description":"Does.","input_schema":{"type":"object"}},{"name":"mcp","description":"Does.","input_schema":{"properties":{"a":{}},"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"temperature":0.5}"#]].assert_eq(&text(&settings));
}

/// The paths of the marks.
fn marks(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "cache_control" => found.push(path.to_owned()),
                    name => marks(field, &format!("{path}/{name}"), found),
                }
            }
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(place, item)| marks(item, &format!("{path}/{place}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn request_begins_as_the_previous_one() {
    let settings = at_level("acme-9", "low");
    let turns = [
        vec![say("go")],
        vec![
            sealed(1, "", &["x", "y"], vec![thinking("hm"), json!({"type": "tool_use"})]),
            done(1, 1),
            done(1, 0),
        ],
        vec![
            sealed(4, "so", &["x"], vec![thinking("so"), json!({"type": "text", "n_bytes": 2})]),
            done(4, 0),
            say("hurry"),
        ],
        vec![sealed(7, "done", &[], vec![thinking("yes")]), prompt(vec![words("see"), image("image/png")])],
        vec![reply(9, "I see", &[]), say("bye")],
    ];
    let mut entries = Vec::new();
    let mut seen = String::new();
    let mut before: Option<Value> = None;
    for turn in turns {
        entries.extend(turn);
        let body = request(&settings, &transcript(entries.clone()));
        let mut found = Vec::new();
        marks(&body, "", &mut found);
        seen += &format!("{}\n", found.join(" "));
        let body = without_marks(body);
        if let Some(before) = before {
            let (old, new) = (before["messages"].as_array().unwrap(), body["messages"].as_array().unwrap());
            let begins_so = |(old, new): (&Value, &Value)| assert_eq!(old.to_string(), new.to_string());
            old.iter().zip(new).for_each(begins_so);
            for field in ["tools", "system", "thinking", "model", "max_tokens"] {
                assert_eq!(before[field].to_string(), body[field].to_string());
            }
        }
        before = Some(body);
    }
    expect![[r#"
        /system/0 /messages/0/content/0
        /system/0 /messages/0/content/0 /messages/2/content/1
        /system/0 /messages/2/content/1 /messages/4/content/1
        /system/0 /messages/4/content/1 /messages/6/content/1
        /system/0 /messages/6/content/1 /messages/8/content/0
    "#]]
    .assert_eq(&seen);
}
