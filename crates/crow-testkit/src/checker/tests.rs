use serde_json::{Value, json};

use super::violations;

#[track_caller]
fn check(messages: &Value, expected: &[&str]) {
    let tools = json!([{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]);
    let found = violations(&json!({"model": "m", "messages": messages, "tools": tools}));
    assert_eq!(found, expected, "{messages}");
}

fn user() -> Value {
    json!({"role": "user", "content": "hello"})
}

fn calls(ids: &[&str]) -> Value {
    let call =
        |id: &&str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

#[test]
fn valid_conversation_passes() {
    check(
        &json!([{"role": "system", "content": "be good"}, user(), calls(&["a", "b"]), result("a"), result("b")]),
        &[],
    );
    check(&json!([user(), {"role": "assistant", "content": "yes"}, user()]), &[]);
    // Providers reuse ids from one reply to the next.
    check(&json!([user(), calls(&["a"]), result("a"), calls(&["a"]), result("a")]), &[]);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    check(&json!([{"role": "user", "content": [{"type": "text", "text": "see"}, image]}]), &[]);
}

#[test]
fn calls_and_results_must_pair_up() {
    check(&json!([user(), calls(&["a"]), user()]), &["messages[2]: call `a` has no result before this"]);
    check(
        &json!([user(), calls(&["a"])]),
        &[
            "messages[1]: call `a` has no result before this",
            "messages[1]: the last message leaves nothing to answer",
        ],
    );
    check(&json!([user(), result("a")]), &["messages[1]: a result for `a`, which is not open"]);
    check(
        &json!([user(), calls(&["a", "b"]), result("b"), result("a")]),
        &["messages[2]: the result of `b` is out of place"],
    );
    check(
        &json!([user(), calls(&["a"]), result("a"), result("a")]),
        &["messages[3]: a second result for `a`"],
    );
    check(
        &json!([user(), calls(&["a"]), result("a"), user(), result("a")]),
        &["messages[4]: a result for `a`, which is not open"],
    );
    check(
        &json!([user(), calls(&["a", "a"]), result("a"), result("a")]),
        &["messages[1]: call id `a` is there twice"],
    );
}

#[test]
fn empty_and_foreign_messages_are_rejected() {
    check(&json!([{"role": "user", "content": " "}]), &["messages[0]: is empty"]);
    check(&json!([{"role": "user", "content": []}]), &["messages[0]: is empty"]);
    check(&json!([user(), {"role": "assistant", "content": null}, user()]), &["messages[1]: is empty"]);
    check(
        &json!([user(), {"role": "assistant", "content": "x", "tool_calls": []}, user()]),
        &["messages[1]: `tool_calls` is empty"],
    );
    check(
        &json!([user(), {"role": "robot", "content": "x"}, user()]),
        &["messages[1]: unknown role `robot`"],
    );
    check(
        &json!([{"role": "assistant", "content": "x"}, user()]),
        &["messages[0]: the first message is neither system nor user"],
    );
    check(&json!([]), &["`messages` is missing or empty"]);
}

#[test]
fn arguments_must_be_an_object_in_a_string() {
    for arguments in [json!("{"), json!("[]"), json!(""), json!({})] {
        let call =
            json!({"id": "a", "type": "function", "function": {"name": "read", "arguments": arguments}});
        check(
            &json!([user(), {"role": "assistant", "content": null, "tool_calls": [call]}, result("a")]),
            &["messages[1]: the arguments of call `a` are no JSON object in a string"],
        );
    }
}

#[test]
fn calls_need_tools() {
    let request = json!({"model": "m", "messages": [user(), calls(&["a"]), result("a")]});
    assert_eq!(violations(&request), ["messages[1]: calls tools, and the request has no `tools`"]);
    let request = json!({"model": "m", "messages": [user()], "tools": []});
    assert_eq!(violations(&request), ["`tools` is empty"]);
}
