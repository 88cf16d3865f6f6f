use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

/// Parses an update of the call `c` and compares what comes of it.
#[track_caller]
fn check(mut change: Value, expected: &Expect) {
    change["sessionUpdate"] = "tool_call_update".into();
    change["toolCallId"] = "c".into();
    let update: wire::SessionUpdate = serde_json::from_value(change).unwrap();
    let updates = to_agent_updates(update);
    expected.assert_eq(&updates.iter().map(|update| format!("{update:?}\n")).collect::<String>());
}

#[test]
fn end_of_a_command_comes_with_the_status_of_its_call() {
    let exit = json!({ "terminal_exit": { "terminal_id": "c", "exit_code": 0, "signal": null } });
    check(
        json!({ "_meta": exit }),
        &expect![[r#"
        CallExit { id: "c", code: Some(0), signal: None }
    "#]],
    );
    check(
        json!({ "_meta": exit, "status": "completed" }),
        &expect![[r#"
        CallExit { id: "c", code: Some(0), signal: None }
        Call { id: "c", title: None, kind: None, status: Some(Completed), content: None, input: None }
    "#]],
    );
}

#[test]
fn raw_output_is_a_result_where_there_is_no_content() {
    check(
        json!({ "rawOutput": "plain" }),
        &expect![[r#"
            CallResult { id: "c", text: "plain" }
            Call { id: "c", title: None, kind: None, status: None, content: None, input: None }
        "#]],
    );
    let output = json!({ "stdout": "a\n", "formatted_output": "all of it", "exit_code": 0 });
    check(
        json!({ "rawOutput": output, "status": "completed" }),
        &expect![[r#"
            CallResult { id: "c", text: "all of it" }
            Call { id: "c", title: None, kind: None, status: Some(Completed), content: None, input: None }
        "#]],
    );
    check(
        json!({ "rawOutput": { "matches": [1] } }),
        &expect![[r#"
            CallResult { id: "c", text: "{\n  \"matches\": [\n    1\n  ]\n}" }
            Call { id: "c", title: None, kind: None, status: None, content: None, input: None }
        "#]],
    );
    let content = json!([{ "type": "content", "content": { "type": "text", "text": "shown" } }]);
    check(
        json!({ "rawOutput": "hidden", "content": content }),
        &expect![[r#"
        Call { id: "c", title: None, kind: None, status: None, content: Some([Text("shown")]), input: None }
    "#]],
    );
    check(
        json!({ "rawOutput": null }),
        &expect![[r#"
        Call { id: "c", title: None, kind: None, status: None, content: None, input: None }
    "#]],
    );
    check(
        json!({ "rawOutput": { "stdout": "" } }),
        &expect![[r#"
        Call { id: "c", title: None, kind: None, status: None, content: None, input: None }
    "#]],
    );
}
