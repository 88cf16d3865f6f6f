use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{SessionView, render_both};

#[track_caller]
fn check(live: &[Value], loaded: &[Value], both: &Expect) {
    let shown = BTreeMap::from([("term-1".to_owned(), "out\n".to_owned())]);
    let (told, seen) = render_both(
        SessionView::from_updates(loaded.iter(), &BTreeMap::new()),
        SessionView::from_updates(live.iter(), &shown),
    );
    both.assert_eq(&if told == seen { format!("same\n{told}") } else { format!("{seen}is not\n{told}") });
}

fn text(id: &str, text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}})
}

fn call(fields: &Value) -> Value {
    let mut call = json!({"sessionUpdate": "tool_call", "toolCallId": "c"});
    fields.as_object().into_iter().flatten().for_each(|(name, value)| call[name] = value.clone());
    call
}

#[test]
fn chunks_are_joined_and_calls_end() {
    check(
        &[
            text("m", "a"),
            text("m", "b"),
            json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
            call(&json!({"title": "x"})),
            text("n", "c"),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}),
        ],
        &[
            text("m", "ab"),
            call(&json!({"status": "completed", "title": "x"})),
            text("n", "c"),
            text("note-1", "x"),
        ],
        &expect![[r#"
            same
            {"id":"m","kind":"agent_message_chunk","text":"ab"}
            {"content":[],"locations":[],"status":"completed","title":"x","toolCallId":"c"}
            {"id":"n","kind":"agent_message_chunk","text":"c"}
        "#]],
    );
}

#[test]
fn differences_are_found() {
    check(
        &[text("m", "a")],
        &[text("n", "a")],
        &expect![[r#"
        {"id":"m","kind":"agent_message_chunk","text":"a"}
        is not
        {"id":"n","kind":"agent_message_chunk","text":"a"}
    "#]],
    );
    check(
        &[text("m", "a"), text("n", "b")],
        &[text("n", "b"), text("m", "a")],
        &expect![[r#"
        {"id":"m","kind":"agent_message_chunk","text":"a"}
        {"id":"n","kind":"agent_message_chunk","text":"b"}
        is not
        {"id":"n","kind":"agent_message_chunk","text":"b"}
        {"id":"m","kind":"agent_message_chunk","text":"a"}
    "#]],
    );
    check(
        &[call(&json!({"status": "completed"}))],
        &[call(&json!({"status": "in_progress"}))],
        &expect![[r#"
            {"content":[],"locations":[],"status":"completed","toolCallId":"c"}
            is not
            {"content":[],"locations":[],"status":"in_progress","toolCallId":"c"}
        "#]],
    );
}

#[test]
fn terminal_equals_its_text() {
    let live = [call(&json!({"content": [{"type": "terminal", "terminalId": "term-1"}]}))];
    let told = |text: &str| {
        [call(&json!({"content": [{"type": "content", "content": {"type": "text", "text": text}}]}))]
    };
    check(
        &live,
        &told("out\nexit code 3"),
        &expect![[r#"
        same
        {"content":[{"content":{"text":"out\n","type":"text"},"type":"content"}],"locations":[],"status":"pending","toolCallId":"c"}
    "#]],
    );
    check(
        &live,
        &told("out\nand\nmore"),
        &expect![[r#"
        {"content":[{"content":{"text":"out\n","type":"text"},"type":"content"}],"locations":[],"status":"pending","toolCallId":"c"}
        is not
        {"content":[{"content":{"text":"out\nand\nmore","type":"text"},"type":"content"}],"locations":[],"status":"pending","toolCallId":"c"}
    "#]],
    );
    check(
        &live,
        &told("exit code 3"),
        &expect![[r#"
        {"content":[{"content":{"text":"out\n","type":"text"},"type":"content"}],"locations":[],"status":"pending","toolCallId":"c"}
        is not
        {"content":[{"content":{"text":"exit code 3","type":"text"},"type":"content"}],"locations":[],"status":"pending","toolCallId":"c"}
    "#]],
    );
}
