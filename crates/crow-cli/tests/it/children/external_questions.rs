//! Questions of external agents, and what the policy and earlier answers say about them.

use expect_test::expect;

use super::check;
use super::client_access::asks_first;

#[test]
fn question_with_an_id_alone_says_what_its_call_is() {
    check(
        &["asks", "blind"],
        &asks_first(["allow_once", "reject_once"]),
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello: rm -rf build [allow_once, allow_always, reject_once] -> allow_once
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools (" diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_onc"
    "#]],
    );
}

#[test]
fn question_that_says_nothing_is_shown_as_such() {
    check(
        &["asks", "mute"],
        &asks_first(["allow_once", "reject_once"]),
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello asks for permission without saying for what [allow_once, reject_once] -> allow_once
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools (" diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_onc"
    "#]],
    );
}

#[test]
fn denied_command_of_another_agent_is_rejected_without_a_question() {
    let script = asks_first(["allow_once", "allow_once"]).replace(
        r#"allow: ["tool(task)", "mcp(other)"]"#,
        r#"allow: ["tool(task)", "mcp(other)"], deny: ["rm"]"#,
    );
    check(
        &["asks", "blind"],
        &script,
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_once\"}}\n\nIt changed 1 file with its tools " diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_on"
    "#]],
    );
}

#[test]
fn approval_of_a_command_in_a_text_is_used_once() {
    let script = asks_first(["allow_once", "reject_once"]);
    // The second terminal would run the same command.
    check(
        &["asks", "line", "terminal=env -u A echo of another", "again"],
        &script,
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello: Shell: env -u A echo of… [allow_once, allow_always, reject_once] -> allow_once
        > terminal create term-1: /bin/sh -c env -u A echo of another
        > terminal release term-1
        ? other, hello: Run env -u A echo of another [allow_once, reject_once] -> reject_once
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}; terminal/create: {\"terminalId\":\"te" diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_onc"
    "#]],
    );
}
