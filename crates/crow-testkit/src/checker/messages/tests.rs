use serde_json::{Value, json};

use super::{messages_violations, sign_thinking};

fn request(messages: &Value) -> Value {
    let tools = json!([{"name": "read", "input_schema": {"type": "object"}}]);
    json!({"model": "m", "max_tokens": 2000, "tools": tools, "messages": messages})
}

#[track_caller]
fn check(messages: &Value, expected: &[&str]) {
    assert_eq!(messages_violations(&request(messages)), expected, "{messages}");
}

/// Checks a valid conversation with other fields.
#[track_caller]
fn check_fields(fields: &Value, messages: &Value, expected: &[&str]) {
    let mut request = request(messages);
    for (name, value) in fields.as_object().into_iter().flatten() {
        request[name] = value.clone();
    }
    assert_eq!(messages_violations(&request), expected, "{fields}");
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

fn model(blocks: &[Value]) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": [text("ok")]})
}

fn thinking(words: &str) -> Value {
    json!({"type": "thinking", "thinking": words, "signature": sign_thinking(words)})
}

#[test]
fn valid_conversation_passes() {
    let hello = user(&[text("hello")]);
    check(&json!([hello]), &[]);
    check(&json!([{"role": "user", "content": "hello"}]), &[]);
    check(
        &json!([
            hello,
            model(&[thinking("hm"), text("a"), call("a"), call("b")]),
            user(&[result("b"), result("a"), text("more")])
        ]),
        &[],
    );
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    check(&json!([user(&[text("see"), image])]), &[]);
}

#[test]
fn roles_alternate() {
    let hello = user(&[text("hello")]);
    check(&json!([hello, hello]), &["messages[1]: `user` speaks out of turn"]);
    check(
        &json!([model(&[text("a")])]),
        &[
            "messages[0]: `assistant` speaks out of turn",
            "messages[0]: the last message leaves nothing to answer",
        ],
    );
    check(&json!([user(&[])]), &["messages[0]: is empty"]);
    check(&json!([user(&[text(" \n")])]), &["messages[0]: a text is empty"]);
}

#[test]
fn calls_and_results_must_pair_up() {
    let hello = user(&[text("hello")]);
    check(&json!([hello, model(&[call("a")]), hello]), &["messages[2]: call `a` has no result"]);
    check(
        &json!([hello, model(&[call("a")]), user(&[text("so"), result("a")])]),
        &["messages[2]: a result stands behind something else", "messages[2]: call `a` has no result"],
    );
    check(
        &json!([hello, model(&[call("a")]), user(&[result("a"), result("a")])]),
        &["messages[2]: a second result for `a`, or a late one"],
    );
    check(&json!([user(&[result("x")])]), &["messages[0]: a result for `x`, which is no call"]);
    check(
        &json!([hello, model(&[call("a")]), user(&[result("a")]), model(&[call("a")]), user(&[result("a")])]),
        &["messages[3]: call id `a` is there twice"],
    );
    check(
        &json!([hello, model(&[call("a.b")]), user(&[result("a.b")])]),
        &["messages[1]: `a.b` is no id of a call"],
    );
    let mut failed = result("a");
    failed["is_error"] = true.into();
    failed["content"] = json!([{"type": "image"}]);
    check(&json!([hello, model(&[call("a")]), user(&[failed])]), &["messages[2]: a failure has an image"]);
}

#[test]
fn reasoning_is_signed_first_and_asked_for() {
    let hello = user(&[text("hello")]);
    let mut changed = thinking("hm");
    changed["thinking"] = "so".into();
    check(&json!([hello, model(&[changed, text("a")]), hello]), &["messages[1]: reasoning was changed"]);
    let unsigned = json!({"type": "thinking", "thinking": "hm", "signature": ""});
    check(&json!([hello, model(&[unsigned, text("a")]), hello]), &["messages[1]: reasoning is not signed"]);
    check(&json!([hello, model(&[thinking("hm")]), hello]), &["messages[1]: the last block is reasoning"]);
    let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
    let without = json!([hello, model(&[call("a")]), user(&[result("a")])]);
    check_fields(&budget, &without, &["messages[1]: the turn does not begin with reasoning"]);
    let with = json!([hello, model(&[thinking("hm"), call("a")]), user(&[result("a")])]);
    check_fields(&budget, &with, &[]);
    check_fields(&json!({"thinking": {"type": "adaptive"}}), &without, &[]);
    let disabled = json!({"thinking": {"type": "disabled"}});
    check_fields(&disabled, &with, &["messages[1]: has reasoning, and thinking is disabled"]);
}

#[test]
fn fields_must_fit_together() {
    let hello = json!([user(&[text("hello")])]);
    let both = json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "temperature": 0.5});
    check_fields(
        &both,
        &hello,
        &["`budget_tokens` is not below `max_tokens`", "`temperature` may only be 1 when thinking"],
    );
    check_fields(&json!({"max_tokens": null}), &hello, &["`max_tokens` is missing"]);
    check_fields(
        &json!({"thinking": {"type": "adaptive", "budget_tokens": 2000}, "reasoning_effort": "low"}),
        &hello,
        &["`reasoning_effort` is not permitted", "`budget_tokens` is not permitted"],
    );
    let tools = json!([{"name": "a.b", "input_schema": {}}, {"name": "a", "input_schema": {"type": "object", "anyOf": []}}]);
    check_fields(
        &json!({"tools": tools}),
        &hello,
        &[
            "`a.b` is no name for a tool",
            "the schema of tool `a.b` is no object",
            "the schema of tool `a` has alternatives at its top",
        ],
    );
}

#[test]
fn cache_markers_are_limited_to_four() {
    let mut marked = text("a");
    marked["cache_control"] = json!({"type": "ephemeral"});
    let five = vec![marked; 5];
    check(&json!([user(&five[..4])]), &[]);
    check(&json!([user(&five)]), &["5 blocks have `cache_control`, and 4 may"]);
}
