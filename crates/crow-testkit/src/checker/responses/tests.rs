use serde_json::{Value, json};

use super::responses_violations;

#[track_caller]
fn check(items: &Value, expected: &[&str]) {
    let found = responses_violations(&json!({"model": "m", "store": false, "input": items}));
    assert_eq!(found, expected, "{items}");
}

fn user() -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]})
}

fn words(id: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]})
}

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "x"})
}

fn call(call_id: &str) -> Value {
    json!({"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"})
}

fn output(call_id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call_id, "output": "ok"})
}

#[test]
fn valid_conversation_passes() {
    check(
        &json!([
            user(),
            reasoning("rs_1"),
            words("msg_1"),
            reasoning("rs_2"),
            reasoning("rs_3"),
            call("a"),
            call("b"),
            output("b"),
            output("a")
        ]),
        &[],
    );
    check(&json!("hello"), &[]);
    check(&json!([{"role": "developer", "content": "be good"}, user()]), &[]);
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AA=="});
    check(
        &json!([user(), call("a"), {"type": "function_call_output", "call_id": "a", "output": [image]}]),
        &[],
    );
}

#[test]
fn calls_and_outputs_must_pair_up() {
    check(&json!([user(), call("a"), user()]), &["input[2]: no output found for call `a`"]);
    check(&json!([user(), output("a")]), &["input[1]: no call found for the output of `a`"]);
    check(
        &json!([user(), output("a"), call("a"), output("a")]),
        &["input[1]: no call found for the output of `a`"],
    );
    check(&json!([user(), call("a"), output("a"), output("a")]), &["input[3]: a second output for `a`"]);
    check(
        &json!([user(), call("a"), output("a"), call("a"), output("a")]),
        &[
            "input[3]: call id `a` is there twice",
            "input[4]: a second output for `a`",
            "input[4]: no output found for call `a`",
        ],
    );
    let long = "x".repeat(65);
    check(
        &json!([user(), call(&long), output(&long)]),
        &[&format!("input[1]: call id `{long}` is empty or too long")],
    );
}

#[test]
fn reasoning_needs_its_following_item() {
    let alone = "reasoning `rs_1` is without the item that has to follow it";
    check(&json!([user(), reasoning("rs_1"), user()]), &[&format!("input[2]: {alone}")]);
    check(
        &json!([user(), reasoning("rs_1")]),
        &[&format!("input[1]: {alone}"), "input[1]: the last item leaves nothing to answer"],
    );
    check(
        &json!([user(), {"type": "reasoning", "id": "rs_1", "summary": []}, words("msg_1"), user()]),
        &["input[1]: item `rs_1` is not found: nothing is stored with `store: false`"],
    );
    let open = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x",
        "content": [{"type": "reasoning_text", "text": "hm"}]});
    check(
        &json!([user(), open, words("msg_1"), user()]),
        &["input[1]: reasoning `rs_1` has no `summary`", "input[1]: reasoning `rs_1` has `content`"],
    );
    check(
        &json!([user(), {"type": "reasoning", "summary": [], "encrypted_content": "x"}, words("msg_1"), user()]),
        &["input[1]: reasoning has no id"],
    );
}

#[test]
fn item_ids_have_their_prefix_and_are_unique() {
    check(
        &json!([user(), words("msg_1"), words("msg_1"), words("rs_2"), user()]),
        &["input[2]: item `msg_1` is there twice", "input[3]: id `rs_2` does not begin with `msg`"],
    );
}

#[test]
fn empty_and_foreign_items_are_rejected() {
    check(&json!([]), &["`input` is missing or empty"]);
    check(&json!([{"role": "user", "content": " "}]), &["input[0]: is empty"]);
    check(&json!([{"role": "user", "content": []}]), &["input[0]: is empty"]);
    check(
        &json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
        &["input[0]: a part of type `text` does not belong here"],
    );
    check(
        &json!([{"role": "user", "content": [{"type": "input_text", "text": ""}]}]),
        &["input[0]: a part of type `input_text` is empty"],
    );
    check(
        &json!([{"role": "tool", "content": "x"}, {"type": "odd"}, 7, user()]),
        &["input[0]: unknown role `tool`", "input[1]: unknown type `odd`", "input[2]: is no object"],
    );
    let broken = json!({"type": "function_call", "call_id": "a", "name": "", "arguments": "{"});
    check(
        &json!([user(), broken, output("a")]),
        &[
            "input[1]: call `a` has no name",
            "input[1]: the arguments of call `a` are no JSON object in a string",
        ],
    );
}

#[test]
fn fields_of_another_api_are_rejected() {
    let request = json!({
        "model": "", "input": "hi", "messages": [], "max_tokens": 1, "max_output_tokens": 1,
        "prompt_cache_key": "x".repeat(65), "reasoning": {"effort": "much", "summary": "none"},
        "tools": [{"type": "function", "function": {"name": "read"}}],
    });
    assert_eq!(
        responses_violations(&request),
        [
            "`model` is missing",
            "unknown parameter `messages`",
            "unknown parameter `max_tokens`",
            "`max_output_tokens` is below 16",
            "`prompt_cache_key` is too long",
            "there is no such `reasoning.effort`",
            "there is no such `reasoning.summary`",
            "a tool is not a named function",
            "the parameters of tool `` are no object",
        ]
    );
}
