use crow_core::{
    Arguments, Call, CallId, Compaction, Ended, Entry, Facets, MessageId, Outcome, Part, Prompt, Reply,
    Status, ToolKind, ToolSpec, Touch, Transcript,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::body;
use crate::sample::settings;

fn prompt(parts: Vec<Part>) -> Entry {
    Entry::Prompt(Prompt { id: MessageId::at(0), parts })
}

fn say(text: &str) -> Entry {
    prompt(vec![Part::Text(text.to_owned())])
}

fn image() -> Part {
    Part::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() }
}

/// A reply at place `seq` that calls `read` once for each provider id.
fn reply(seq: u64, text: &str, provider_ids: &[&str]) -> Entry {
    let calls = provider_ids.iter().enumerate().map(|(index, id)| Call {
        id: CallId::at(seq, index),
        provider_id: (*id).to_owned(),
        name: "read".to_owned(),
        arguments: Arguments::Valid(json!({"path": "a \"b\""}).as_object().unwrap().clone()),
    });
    Entry::Reply(Reply {
        id: MessageId::at(seq),
        thought: "hm".to_owned(),
        text: text.to_owned(),
        calls: calls.collect(),
        ended: Ended::Normally,
        usage: None,
        sealed: None,
    })
}

fn result(seq: u64, index: usize, parts: Vec<Part>) -> Entry {
    let facets =
        Facets { title: String::new(), kind: ToolKind::Read, locations: Vec::new(), touch: Touch::Nothing };
    let outcome = Outcome { status: Status::Done, for_model: parts, for_client: Vec::new(), plan: None };
    Entry::Result { call: CallId::at(seq, index), facets, outcome }
}

fn tools() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object"});
    vec![ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }]
}

#[track_caller]
fn check(entries: Vec<Entry>, expected: &Expect) {
    let mut transcript = Transcript::new("be good");
    for entry in entries {
        transcript.push(entry).unwrap();
    }
    check_transcript(&transcript, expected);
}

#[track_caller]
fn check_transcript(transcript: &Transcript, expected: &Expect) {
    let bytes = body(&settings(), transcript.for_model().unwrap(), &tools()).unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(crow_testkit::violations(&body), [""; 0]);
    let messages = body["messages"].as_array().unwrap();
    expected.assert_eq(&messages.iter().map(|message| format!("{message}\n")).collect::<String>());
}

#[test]
fn words_calls_and_results() {
    check(
        vec![
            say("hello"),
            reply(1, "let me see", &["x", "y"]),
            result(1, 1, vec![]),
            result(1, 0, vec![Part::Text("one".to_owned()), Part::Text("two".to_owned())]),
            reply(4, "done", &[]),
            say("thanks"),
        ],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"hello"}
            {"role":"assistant","content":"let me see","tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"y","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
            {"role":"tool","tool_call_id":"x","content":"one\ntwo"}
            {"role":"tool","tool_call_id":"y","content":"(no output)"}
            {"role":"assistant","content":"done"}
            {"role":"user","content":"thanks"}
        "#]],
    );
}

#[test]
fn ids_that_a_reply_uses_twice_are_told_apart() {
    check(
        vec![
            say("go"),
            reply(1, "", &["x", "x", ""]),
            result(1, 0, vec![]),
            result(1, 1, vec![]),
            result(1, 2, vec![]),
        ],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"go"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"call-1-0","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"call-1-1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"call-1-2","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
            {"role":"tool","tool_call_id":"call-1-0","content":"(no output)"}
            {"role":"tool","tool_call_id":"call-1-1","content":"(no output)"}
            {"role":"tool","tool_call_id":"call-1-2","content":"(no output)"}
        "#]],
    );
}

#[test]
fn links_resources_and_images() {
    let link = Part::Link { uri: "file:///a.rs#L1:2".to_owned(), name: "a.rs".to_owned(), mime: None };
    let resource = Part::Resource { uri: "file:///b".to_owned(), text: "bee".to_owned(), mime: None };
    check(
        vec![
            prompt(vec![Part::Text("see".to_owned()), link, resource]),
            reply(1, "", &["x", "y"]),
            result(1, 0, vec![image()]),
            result(1, 1, vec![Part::Text("ok".to_owned())]),
            reply(4, "done", &[]),
            prompt(vec![Part::Text("and".to_owned()), image()]),
        ],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"see\n[a.rs](/a.rs) (lines 1 to 2)\n<resource uri=\"file:///b\">\nbee\n</resource>"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"y","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
            {"role":"tool","tool_call_id":"x","content":"(the images follow)"}
            {"role":"tool","tool_call_id":"y","content":"ok"}
            {"role":"user","content":[{"type":"text","text":"The image of the result above:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
            {"role":"assistant","content":"done"}
            {"role":"user","content":[{"type":"text","text":"and"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
        "#]],
    );
}

#[test]
fn a_reply_cut_while_thinking_is_no_message() {
    check(
        vec![say("one"), reply(1, "", &[]), say("two")],
        &expect![[r#"
            {"role":"system","content":"be good"}
            {"role":"user","content":"one\ntwo"}
        "#]],
    );
}

#[test]
fn what_was_compacted() {
    let mut transcript = Transcript::new("be good");
    for entry in [
        say("use port 7"),
        reply(1, "fine", &[]),
        prompt(vec![Part::Text("like this".to_owned()), image()]),
        reply(3, "", &["x", "y"]),
        result(3, 0, vec![Part::Text("long".to_owned()), image()]),
        result(3, 1, vec![Part::Text("short".to_owned())]),
    ] {
        transcript.push(entry).unwrap();
    }
    let by = Compaction {
        at: 6,
        keep_from: 3,
        said: vec![0, 2],
        summary: Some("A port was chosen.".to_owned()),
        pruned: vec![CallId::at(3, 0)],
        tokens_before: 20,
        tokens_after: 10,
    };
    transcript.compact(by).unwrap();
    check_transcript(
        &transcript,
        &expect![[r#"
        {"role":"system","content":"be good"}
        {"role":"user","content":[{"type":"text","text":"This conversation was compacted: what came before the messages below is left out. The tool query_session reads it, query_memory finds words in it.\n\nWhat the person said in it, word for word, oldest first:\n\n<said>\nuse port 7\n</said>\n\n<said>\nlike this\n[an image]\n</said>\n\nWhat happened in it, as you noted it down:\n\n<summary>\nA port was chosen.\n</summary>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}
        {"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}},{"id":"y","type":"function","function":{"name":"read","arguments":"{\"path\":\"a \\\"b\\\"\"}"}}]}
        {"role":"tool","tool_call_id":"x","content":"(this output was removed to save room; query_session reads it, or run the call again for less)"}
        {"role":"tool","tool_call_id":"y","content":"short"}
    "#]],
    );
}

#[test]
fn settings_become_fields_and_the_extra_ones_win() {
    let mut transcript = Transcript::new("");
    transcript.push(say("hi")).unwrap();
    let mut settings = settings();
    settings.max_tokens = Some(100);
    settings.temperature = Some(0.5);
    settings.reasoning_effort = Some("high".to_owned());
    settings.extra_body = json!({"temperature": 1, "top_p": 0.9}).as_object().unwrap().clone();
    let bytes = body(&settings, transcript.for_model().unwrap(), &tools()).unwrap();
    let expected = concat!(
        r#"{"model":"acme-9","messages":[{"role":"user","content":"hi"}],"#,
        r#""tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}}],"#,
        r#""parallel_tool_calls":true,"stream":true,"stream_options":{"include_usage":true},"#,
        r#""max_tokens":100,"reasoning_effort":"high","temperature":1,"top_p":0.9}"#,
    );
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}
