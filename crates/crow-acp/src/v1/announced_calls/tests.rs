use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::v1::parse_permission_request;

/// Sends the updates and then a request about the call `c`; shows the question that comes of them.
#[track_caller]
fn check(updates: &[Value], mut call: Value, expected: &Expect) {
    let mut calls = AnnouncedCalls::default();
    for update in updates {
        calls.apply_update(&"s".into(), &serde_json::from_value(update.clone()).unwrap());
    }
    call["toolCallId"] = "c".into();
    let option = |id: &str| json!({"optionId": id, "name": id, "kind": id});
    let options = ["allow_once", "allow_always", "reject_once", "reject_always"].map(option);
    let request = json!({"sessionId": "s", "toolCall": call, "options": options});
    let mut request = serde_json::from_value(request).unwrap();
    calls.complete_request(&mut request);
    let (_, mut question) = parse_permission_request(request);
    question.name_agent("vibe");
    let options: Vec<&str> = question.options.iter().map(|option| option.id.as_str()).collect();
    let input = question.input.map(|input| input.to_string()).unwrap_or_default();
    let told =
        format!("{:?} {:?} {input}\n{:?}\n{options:?}\n", question.title, question.kind, question.content);
    expected.assert_eq(&told);
}

fn announced(mut call: Value) -> Value {
    call["sessionUpdate"] = "tool_call".into();
    call["toolCallId"] = "c".into();
    call
}

fn changed(mut call: Value) -> Value {
    call["sessionUpdate"] = "tool_call_update".into();
    call["toolCallId"] = "c".into();
    call
}

#[test]
fn request_with_an_id_alone_is_completed() {
    let input = json!({"command": "touch made.txt"});
    check(
        &[
            announced(json!({"title": "bash", "kind": "execute"})),
            changed(json!({"title": "bash: touch made.txt", "rawInput": input})),
        ],
        json!({}),
        &expect![[r#"
            "bash: touch made.txt" Execute {"command":"touch made.txt"}
            [Text("Requested by vibe.")]
            ["allow_once", "allow_always", "reject_once", "reject_always"]
        "#]],
    );
    // Some agents give their arguments as a text.
    check(
        &[announced(json!({"title": "bash", "rawInput": input.to_string()}))],
        json!({}),
        &expect![[r#"
            "bash" Other {"command":"touch made.txt"}
            [Text("Requested by vibe.")]
            ["allow_once", "allow_always", "reject_once", "reject_always"]
        "#]],
    );
}

#[test]
fn what_the_request_says_is_kept() {
    check(
        &[announced(
            json!({"title": "old", "kind": "read", "rawInput": {"path": "a"}, "locations": [{"path": "/a"}]}),
        )],
        json!({"title": "new", "kind": "edit", "rawInput": {"path": "b"}}),
        &expect![[r#"
            "new" Edit {"path":"b"}
            [Text("Requested by vibe.")]
            ["allow_once", "allow_always", "reject_once", "reject_always"]
        "#]],
    );
    check(
        &[announced(json!({"title": "Edit", "locations": [{"path": "/a", "line": 3}, {"path": "/b"}]}))],
        json!({}),
        &expect![[r#"
            "Edit" Other 
            [Text("Requested by vibe."), Text("Files: /a:3, /b.")]
            ["allow_once", "allow_always", "reject_once", "reject_always"]
        "#]],
    );
}

#[test]
fn request_that_says_nothing_is_shown_as_such() {
    check(
        &[],
        json!({}),
        &expect![[r#"
        "vibe asks for permission without saying for what" Other 
        []
        ["allow_once", "reject_once", "reject_always"]
    "#]],
    );
    check(
        &[],
        json!({"title": " ", "kind": "execute", "rawInput": {}, "content": []}),
        &expect![[r#"
        "vibe asks for permission without saying for what" Execute 
        []
        ["allow_once", "reject_once", "reject_always"]
    "#]],
    );
    // A call that has ended says nothing about another.
    check(
        &[announced(json!({"title": "ls"})), changed(json!({"status": "completed"}))],
        json!({}),
        &expect![[r#"
            "vibe asks for permission without saying for what" Other 
            []
            ["allow_once", "reject_once", "reject_always"]
        "#]],
    );
    check(
        &[],
        json!({"rawInput": {"n": 1}}),
        &expect![[r#"
        "run a tool" Other {"n":1}
        [Text("Requested by vibe.")]
        ["allow_once", "allow_always", "reject_once", "reject_always"]
    "#]],
    );
}

#[test]
fn kept_calls_are_limited() {
    let mut calls = AnnouncedCalls::default();
    for n in 0..CALLS_MAX + 10 {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": n.to_string(), "title": "a"});
        calls.apply_update(&"s".into(), &serde_json::from_value(update).unwrap());
    }
    assert_eq!(calls.calls.len(), CALLS_MAX);
    let large = announced(json!({"title": "x".repeat(BYTES_MAX)}));
    calls.apply_update(&"s".into(), &serde_json::from_value(large).unwrap());
    assert_eq!((calls.calls.len(), calls.n_bytes), (0, 0));
}
