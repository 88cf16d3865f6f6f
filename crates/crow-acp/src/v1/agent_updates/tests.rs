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
