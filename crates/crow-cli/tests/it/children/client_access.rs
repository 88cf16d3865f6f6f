//! Access of children to their parent's client: its files, its terminals and its user.

use crow_testkit::client::FakeClient;
use expect_test::{Expect, expect};

use serde_json::json;

use super::{AUTO, Stage, binary, check, other_agent, run};

/// All capabilities of an editor.
const EDITOR: &str = r#"client: {"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}"#;

#[test]
fn crow_child_uses_the_buffers_and_terminals_of_the_client() {
    check(
        &[],
        &format!(
            r#"
        {EDITOR}
        file a.txt "saved\n"
        > buffer a.txt "typed\n"
        model: call task {{"prompt":"ALPHA"}}
        child ALPHA: call read {{"file_path":"a.txt"}}
        child ALPHA: call terminal {{"command":"env -u A echo in the terminal"}}
        child ALPHA: call edit {{"file_path":"a.txt","old_string":"typed","new_string":"changed"}}
        child ALPHA: text "Changed."
        model: text "Done."
        > prompt go
        > end
        "#
        ),
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-0 in_progress
            > fs read $HOME/project/a.txt
            ? ALPHA: `env -u A echo in the terminal` [allow_once, allow_always, reject_once] -> allow_once
            > terminal create term-1: bash -c env -u A echo in the terminal
            > terminal release term-1
            > fs read $HOME/project/a.txt
            ? ALPHA: Edit a.txt [allow_once, allow_always, allow_project, reject_once] -> allow_once
            > fs read $HOME/project/a.txt
            > fs write $HOME/project/a.txt
            > fs read $HOME/project/a.txt
            < call call-1-0 completed "Task $TASK (ALPHA) is done.\n\nChanged.\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/a.txt (+1 -1)\n\nThe whole of it: query_session with session_id $" diff $HOME/project/a.txt "typed\n" -> "changed\n"
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}")
            model saw tool: "Task $TASK (ALPHA) is done.\n\nChanged.\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/a.txt (+1 -1)\n\nThe whol"
        "#]],
    );
}

/// Lets an external agent access the client, and rejects its permission requests.
#[track_caller]
fn check_wish(wish: &str, script: &str, transcript: &Expect) {
    let script = format!(
        r#"
        {EDITOR}
        file a.txt "saved\n"
        model: call task {{"prompt":"hello","agent":"other"}}
        model: text "Heard."
        > answer allow_once
        {script}
        > prompt go
        > end
        "#
    );
    check(&[wish], &script, transcript);
}

#[test]
fn child_may_read_what_its_parent_may() {
    check_wish(
        "reads=$HOME/project/a.txt",
        "",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            > fs read $HOME/project/a.txt
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/read_text_file: {\"content\":\"saved\\n\"}\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/notes.txt (+1 -1)\n\nThe" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/read_text_file: {\"content\":\"saved\\n\"}\n\nIt changed 1 file with its tools (+1 -1)"
        "#]],
    );
}

#[test]
fn read_outside_the_roots_needs_permission() {
    check_wish(
        "reads=$HOME/b.txt",
        "> answer reject_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Read $HOME/b.txt [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/read_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/proj" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/read_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 f"
        "#]],
    );
}

#[test]
fn write_runs_when_the_user_approves() {
    check_wish(
        "writes=$HOME/project/a.txt",
        "> answer allow_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Write $HOME/project/a.txt [allow_once, reject_once] -> allow_once
            > fs write $HOME/project/a.txt
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: {}\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/notes.txt (+1 -1)\n\nThe whole of it: quer" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: {}\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/"
        "#]],
    );
}

#[test]
fn write_does_not_run_when_the_user_rejects() {
    check_wish(
        "writes=$HOME/project/a.txt",
        "> answer reject_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Write $HOME/project/a.txt [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/pro" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 "
        "#]],
    );
}

#[test]
fn write_is_rejected_without_a_user() {
    check_wish(
        "writes=$HOME/project/a.txt",
        "> answer error",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Write $HOME/project/a.txt [allow_once, reject_once] -> error
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: it needs permission, and the user could not be asked (the dialog broke)\n\nIt" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: it needs permission, and the user c"
        "#]],
    );
}

#[test]
fn autorun_files_need_permission_or_are_rejected() {
    check_wish(
        "writes=$HOME/project/.git/config",
        "> answer reject_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Write $HOME/project/.git/config [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/pro" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 "
        "#]],
    );
    check_wish(
        "writes=$HOME/.crow/config.yaml",
        "> answer reject_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Write $HOME/.crow/config.yaml [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/pro" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 "
        "#]],
    );
    check_wish(
        "writes=$HOME/project/../.bashrc",
        "> answer reject_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Write $HOME/project/../.bashrc [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/pro" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/write_text_file: error -32603: not allowed: the user rejected it\n\nIt changed 1 "
        "#]],
    );
}

#[test]
fn command_runs_in_the_client_terminal_when_the_user_approves() {
    check_wish(
        "terminal=env -u A echo of another",
        "> answer allow_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Run sh -c 'env -u A echo of another' [allow_once, reject_once] -> allow_once
            > terminal create term-1: sh -c env -u A echo of another
            > terminal release term-1
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; terminal/create: {\"terminalId\":\"term-1\"}; terminal/wait_for_exit: {\"exitCode\":0}; terminal/output: {\"output\":\"of another\\n" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; terminal/create: {\"terminalId\":\"term-1\"}; terminal/wait_for_exit: {\"exitCode\":0}; "
        "#]],
    );
}

#[test]
fn command_does_not_run_when_the_user_rejects() {
    check_wish(
        "terminal=env -u A echo of another",
        "> answer reject_once",
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            ? Task for other: hello [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, hello: Run sh -c 'env -u A echo of another' [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; terminal/create: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/projec" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; terminal/create: error -32603: not allowed: the user rejected it\n\nIt changed 1 fil"
        "#]],
    );
}

#[test]
fn client_without_files_and_terminals_has_none_for_children() {
    check(
        &["reads=$HOME/project/a.txt", "writes=$HOME/project/a.txt", "terminal=true"],
        r#"
        config: permissions: { mode: auto }
        model: call task {"prompt":"hello","agent":"other"}
        model: text "Heard."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; fs/read_text_file: error -32603: the client does not support this, or the terminal does not belong to this agent; fs/write" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; fs/read_text_file: error -32603: the client does not support this, or the terminal"
        "#]],
    );
}

/// An agent that asks the user about a file before it writes it.
const ASKS_FIRST: [&str; 2] = ["asks", "writes=$HOME/project/b.txt"];

pub(super) fn asks_first(answers: [&str; 2]) -> String {
    let [first, second] = answers;
    format!(
        r#"
        {EDITOR}
        config: permissions: {{ allow: ["tool(task)", "mcp(other)"] }}
        model: call task {{"prompt":"hello","agent":"other"}}
        model: text "Heard."
        > answer {first}
        > answer {second}
        > prompt go
        > end
        "#
    )
}

#[test]
fn approved_call_is_not_asked_twice() {
    check(
        &ASKS_FIRST,
        &asks_first(["allow_once", "reject_once"]),
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello: rm -rf build [allow_once, allow_always, reject_once] -> allow_once
        > fs write $HOME/project/b.txt
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}; fs/write_text_file: {}\n\nIt changed" diff $HOME/project/notes.txt "old\n" -> "new\n"
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
fn permission_request_has_the_kind_of_its_call() {
    let [asks, writes] = ASKS_FIRST;
    check(
        &[asks, writes, "kindless"],
        &asks_first(["allow_once", "reject_once"]),
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello: rm -rf build [allow_once, allow_always, reject_once] -> allow_once
        > fs write $HOME/project/b.txt
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}; fs/write_text_file: {}\n\nIt changed" diff $HOME/project/notes.txt "old\n" -> "new\n"
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
fn command_in_a_request_without_a_kind_is_not_asked_twice() {
    check(
        &["asks", "vague", "terminal=env -u A echo of another"],
        &asks_first(["allow_once", "reject_once"]),
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            < call call-1-0 in_progress
            ? other, hello: rm -rf build [allow_once, allow_always, reject_once] -> allow_once
            > terminal create term-1: sh -c env -u A echo of another
            > terminal release term-1
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

#[test]
fn ambiguous_permission_option_allows_nothing() {
    let [asks, writes] = ASKS_FIRST;
    check(
        &[asks, writes, "twice"],
        &asks_first(["both", "reject_once"]),
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello: rm -rf build [both, both] -> both
        ? other, hello: Write $HOME/project/b.txt [allow_once, reject_once] -> reject_once
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"both\"}}; fs/write_text_file: error -32603: not al" diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"both\"}}; "
    "#]],
    );
}

#[test]
fn remote_approval_does_not_apply_locally() {
    let (command, args) = crow_testkit::agent::command(&ASKS_FIRST);
    let far = json!({"other": {"command": command, "args": args, "cwd": "$HOME/project"}});
    let script = format!("config: agent_servers: {far}\n{}", asks_first(["allow_once", "reject_once"]));
    expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        ? other, hello: rm -rf build [allow_once, allow_always, reject_once] -> allow_once
        ? other, hello: Write $HOME/project/b.txt [allow_once, reject_once] -> reject_once
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}; fs/write_text_file: error -32603: " diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_onc"
    "#]].assert_eq(&run(crow_testkit::golden::play(&binary(), &script)));
}

#[test]
fn command_is_evaluated_in_its_directory() {
    check(
        &["terminal=echo x > config", "in=.git"],
        &format!(
            r#"
            {EDITOR}
            config: permissions: {{ mode: accept-edits, allow: ["tool(task)", "mcp(other)"] }}
            model: call task {{"prompt":"hello","agent":"other"}}
            model: text "Heard."
            > answer reject_once
            > prompt go
            > end
            "#
        ),
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            < call call-1-0 in_progress
            ? other, hello: Run cd $HOME/project/.git && sh -c 'echo x > config' [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; terminal/create: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/projec" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; terminal/create: error -32603: not allowed: the user rejected it\n\nIt changed 1 fil"
        "#]],
    );
}

#[test]
fn environment_variable_is_evaluated_with_its_command() {
    let script = format!(
        r#"
        {EDITOR}
        config: permissions: {{ allow: ["tool(task)", "mcp(other)", "echo"] }}
        model: call task {{"prompt":"hello","agent":"other"}}
        model: text "Heard."
        > answer reject_once
        > prompt go
        > end
        "#
    );
    check(
        &["terminal=echo of another"],
        &script,
        &expect![[r#"
        > prompt go
        < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
        < call call-1-0 in_progress
        > terminal create term-1: sh -c echo of another
        > terminal release term-1
        < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; terminal/create: {\"terminalId\":\"term-1\"}; terminal/wait_for_exit: {\"exitCode\":0}; terminal/output: {\"output\":\"of another\\n" diff $HOME/project/notes.txt "old\n" -> "new\n"
        < text[msg-3] Heard.
        < title go
        = end_turn
        model saw user: "go"
        model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
        model saw tool: "Task $TASK (other, hello) is done.\n\n; terminal/create: {\"terminalId\":\"term-1\"}; terminal/wait_for_exit: {\"exitCode\":0}; "
    "#]],
    );
    check(
        &["terminal=echo of another", "sets=LD_PRELOAD=evil.so"],
        &script,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: hello" pending {"prompt":"hello","agent":"other"}
            < call call-1-0 in_progress
            ? other, hello: Run env 'LD_PRELOAD=evil.so' sh -c 'echo of another' [allow_once, reject_once] -> reject_once
            < call call-1-0 completed "Task $TASK (other, hello) is done.\n\n; terminal/create: error -32603: not allowed: the user rejected it\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/projec" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] Heard.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\"}")
            model saw tool: "Task $TASK (other, hello) is done.\n\n; terminal/create: error -32603: not allowed: the user rejected it\n\nIt changed 1 fil"
        "#]],
    );
}

#[test]
fn terminals_of_a_child_are_limited() {
    run(async {
        let script = r#"
            call task {"prompt":"hello","agent":"other"}
            text "Heard."
        "#;
        let mut stage = Stage::start(&[AUTO, &other_agent(&["hoards=70"])], script).await;
        let offered = json!({"terminal": true});
        stage.client = FakeClient::start_with(binary(), &stage.world.home(), offered).await;
        stage.session = stage.client.new_session(&stage.world.project()).await;
        assert_eq!(stage.say("go").await, "end_turn");
        assert!(stage.told("go").contains("; it has 64 terminals"), "{}", stage.told("go"));
        stage.clean("many terminals").await;
    });
}
