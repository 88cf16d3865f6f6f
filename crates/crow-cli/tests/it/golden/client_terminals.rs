//! Commands in a client's terminal: an approved one runs directly, an unapproved one under the supervisor, and the
//! behaviour without a supervisor.

use expect_test::expect;

use super::check;

#[test]
fn approved_command_runs_without_a_supervisor() {
    check(
        r#"
        client: {"terminal": true}
        model: call terminal {"command":"env -u A echo hello"}
        model: text "Done."
        > answer allow_once
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`env -u A echo hello`" pending {"command":"env -u A echo hello"}
            ? `env -u A echo hello` [allow_once, allow_always, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            > terminal create term-1: bash -c env -u A echo hello
            < call call-1-0 in_progress terminal term-1
            < call call-1-0 completed
            > terminal release term-1
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"env -u A echo hello\"}")
            model saw tool: "hello\n"
        "#]],
    );
}

#[test]
fn supervisor_without_a_terminal() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        file a.txt "apples\n"
        model: call terminal {"command":"env -u A echo one"}
        model: call terminal {"command":"cat a.txt"}
        model: call terminal {"command":"env -u A echo two"}
        model: text "Done."
        > lost refused
        > answer allow_once
        > answer reject_once
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`env -u A echo one`" pending {"command":"env -u A echo one"}
            < call call-1-0 in_progress
            > terminal create (held) bash -c env -u A echo one ! no such program
            > terminal create term-1: bash -c :
            > terminal release term-1
            < thought[] Note: there is no sandbox for commands in this client's terminals: the client opened no terminal for crow-cli: the client rejected the request: no such program. Unapproved commands ask first; those that only read or edit inside the project run there without it.⏎
            ? `env -u A echo one` [allow_once, allow_always, reject_once, reject_and_tell] -> allow_once
            > terminal create term-2: bash -c env -u A echo one
            < call call-1-0 in_progress terminal term-2
            < call call-1-0 completed
            > terminal release term-2
            < call call-3-0 terminal "`cat a.txt`" pending {"command":"cat a.txt"}
            < call call-3-0 in_progress
            > terminal create term-3: bash -c cat a.txt
            < call call-3-0 in_progress terminal term-3
            < call call-3-0 completed
            > terminal release term-3
            < call call-5-0 terminal "`env -u A echo two`" pending {"command":"env -u A echo two"}
            ? `env -u A echo two` [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
            < call call-5-0 failed "not run: the user rejected it"
            < text[msg-7] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"env -u A echo one\"}")
            model saw tool: "one\n"
            model saw assistant: terminal("{\"command\":\"cat a.txt\"}")
            model saw tool: "apples\n"
            model saw assistant: terminal("{\"command\":\"env -u A echo two\"}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn supervisor_not_found_by_the_client_shell() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        file a.txt "apples\n"
        model: call terminal {"command":"cat a.txt"}
        model: call terminal {"command":"env -u A echo one","background":true}
        model: text "Done."
        > lost not-found
        > answer allow_once
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`cat a.txt`" pending {"command":"cat a.txt"}
            < call call-1-0 in_progress
            > terminal create term-1: (held) bash -c cat a.txt
            < call call-1-0 in_progress terminal term-1
            > terminal create term-2: sandbox-exec --probe
            > terminal release term-2
            > terminal release term-1
            < thought[] Note: there is no sandbox for commands in this client's terminals: crow-cli does not start there. Unapproved commands ask first; those that only read or edit inside the project run there without it.⏎
            > terminal create term-3: bash -c cat a.txt
            < call call-1-0 in_progress terminal term-3
            < call call-1-0 completed
            > terminal release term-3
            < call call-3-0 terminal "`env -u A echo one` in the background" pending {"command":"env -u A echo one","background":true}
            ? `env -u A echo one` in the background [allow_once, allow_always, reject_once, reject_and_tell] -> allow_once
            < call call-3-0 in_progress
            > terminal create term-4: bash -c env -u A echo one
            < call call-3-0 in_progress terminal term-4
            < call call-3-0 completed
            > terminal release term-4
            < text[msg-5] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"cat a.txt\"}")
            model saw tool: "apples\n"
            model saw assistant: terminal("{\"command\":\"env -u A echo one\",\"background\":true}")
            model saw tool: "one\n"
        "#]],
    );
}

#[test]
fn job_without_a_supervisor_needs_permission() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        model: call terminal {"command":"env -u A echo one","background":true}
        model: text "Done."
        > lost not-found
        > answer reject_once
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`env -u A echo one` in the background" pending {"command":"env -u A echo one","background":true}
            < call call-1-0 in_progress
            > terminal create term-1: (held) bash -c env -u A echo one
            < call call-1-0 in_progress terminal term-1
            > terminal create term-2: sandbox-exec --probe
            > terminal release term-2
            > terminal release term-1
            < thought[] Note: there is no sandbox for commands in this client's terminals: crow-cli does not start there. Unapproved commands ask first; those that only read or edit inside the project run there without it.⏎
            ? `env -u A echo one` in the background [allow_once, allow_always, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"env -u A echo one\",\"background\":true}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn missing_program_error_does_not_mention_the_supervisor() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        model: call terminal {"command":"no-such-program-here"}
        model: call terminal {"command":"env -u A echo one"}
        model: text "Done."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`$TASK`" pending {"command":"$TASK"}
            < call call-1-0 in_progress
            > terminal create term-1: (held) bash -c no-such-program-here
            < call call-1-0 in_progress terminal term-1
            > terminal create term-2: sandbox-exec --probe
            > terminal release term-2
            < call call-1-0 failed
            > terminal release term-1
            < call call-3-0 terminal "`env -u A echo one`" pending {"command":"env -u A echo one"}
            < call call-3-0 in_progress
            > terminal create term-3: (held) bash -c env -u A echo one
            < call call-3-0 in_progress terminal term-3
            < call call-3-0 completed
            > terminal release term-3
            < text[msg-5] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"$TASK\"}")
            model saw tool: "bash: line 1: $TASK: command not found\nexit code 127"
            model saw assistant: terminal("{\"command\":\"env -u A echo one\"}")
            model saw tool: "one\n"
        "#]],
    );
}

#[test]
fn client_that_opens_no_terminal() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        model: call terminal {"command":"env -u A echo one"}
        model: text "Done."
        > odd terminal/create error
        > odd terminal/create error
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`env -u A echo one`" pending {"command":"env -u A echo one"}
            < call call-1-0 in_progress
            > terminal/create -> error
            > terminal/create -> error
            < call call-1-0 completed "one\n"
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"env -u A echo one\"}")
            model saw tool: "one\n"
        "#]],
    );
}
