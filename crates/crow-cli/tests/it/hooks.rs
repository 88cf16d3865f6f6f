//! The user's hooks in the whole agent, as transcripts: real commands, from the configuration to the model's request.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_testkit::golden::play;
use expect_test::{Expect, expect};

fn check(script: &str, transcript: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    transcript.assert_eq(&runtime.expect("a runtime can be made").block_on(play(&binary, script)));
}

#[test]
fn blocked_call_neither_asks_nor_runs() {
    check(
        r#"
        config: hooks:
        config:   PreToolUse:
        config:     - { matcher: "terminal|write", command: "if grep -q git.push; then echo 'push by hand' >&2; exit 2; fi" }
        model: call terminal {"command":"touch pushed; git push"}
        model: call terminal {"command":"ls pushed"}
        model: text "Not pushed."
        > prompt push it
        > end
        "#,
        &expect![[r#"
            > prompt push it
            < call call-1-0 terminal "`touch pushed; git push`" pending {"command":"touch pushed; git push"}
            < call call-1-0 failed "not run: a hook rejected it: push by hand"
            < call call-3-0 terminal "`ls pushed`" pending {"command":"ls pushed"}
            < call call-3-0 in_progress
            < call call-3-0 failed "ls: cannot access 'pushed': No such file or directory\nexit code 2"
            < text[msg-5] Not pushed.
            < title push it
            = end_turn
            model saw user: "push it"
            model saw assistant: terminal("{\"command\":\"touch pushed; git push\"}")
            model saw tool: "not run: a hook rejected it: push by hand"
            model saw assistant: terminal("{\"command\":\"ls pushed\"}")
            model saw tool: "ls: cannot access 'pushed': No such file or directory\nexit code 2"
        "#]],
    );
}

#[test]
fn hook_blocks_in_every_mode_and_only_its_tools() {
    check(
        r#"
        config: permissions: { mode: auto }
        config: hooks:
        config:   PreToolUse:
        config:     - { matcher: "terminal", command: "echo '{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"no commands\"}}'" }
        file a.txt "apples\n"
        model: call terminal {"command":"true"} | call read {"file_path":"a.txt"}
        model: text "I see."
        > prompt look
        > end
        "#,
        &expect![[r#"
            > prompt look
            < call call-1-0 terminal "`true`" pending {"command":"true"}
            < call call-1-1 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-1 in_progress
            < call call-1-0 failed "not run: a hook rejected it: no commands"
            < call call-1-1 completed "     1\tapples\n"
            < text[msg-4] I see.
            < title look
            = end_turn
            model saw user: "look"
            model saw assistant: terminal("{\"command\":\"true\"}") read("{\"file_path\":\"a.txt\"}")
            model saw tool: "not run: a hook rejected it: no commands"
            model saw tool: "     1\tapples\n"
        "#]],
    );
}

#[test]
fn hook_gives_no_permission() {
    check(
        r#"
        config: hooks: { PreToolUse: [{ command: "echo '{\"decision\":\"approve\",\"hookSpecificOutput\":{\"permissionDecision\":\"allow\"}}'" }] }
        model: call terminal {"command":"touch ."}
        model: text "Then not."
        > answer reject_once
        > prompt run it
        > end
        "#,
        &expect![[r#"
            > prompt run it
            < call call-1-0 terminal "`touch .`" pending {"command":"touch ."}
            ? `touch .` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            < text[msg-3] Then not.
            < title run it
            = end_turn
            model saw user: "run it"
            model saw assistant: terminal("{\"command\":\"touch .\"}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn first_block_counts_and_later_hooks_do_not_run() {
    check(
        r#"
        config: permissions: { mode: auto }
        config: hooks:
        config:   PreToolUse:
        config:     - { matcher: terminal, command: "touch first" }
        config:     - { matcher: terminal, command: "exit 2" }
        config:     - { matcher: terminal, command: "touch third" }
        model: call terminal {"command":"true"}
        model: call glob {"pattern":"*"}
        model: text "I see."
        > prompt run it
        > end
        "#,
        &expect![[r#"
            > prompt run it
            < call call-1-0 terminal "`true`" pending {"command":"true"}
            < call call-1-0 failed "not run: a hook rejected it: it gave no reason"
            < call call-3-0 glob "Find `*`" pending {"pattern":"*"}
            < call call-3-0 in_progress
            < call call-3-0 completed "first\n"
            < text[msg-5] I see.
            < title run it
            = end_turn
            model saw user: "run it"
            model saw assistant: terminal("{\"command\":\"true\"}")
            model saw tool: "not run: a hook rejected it: it gave no reason"
            model saw assistant: glob("{\"pattern\":\"*\"}")
            model saw tool: "first\n"
        "#]],
    );
}

#[test]
fn failing_hook_blocks_the_call_and_is_reported() {
    check(
        r#"
        config: permissions: { mode: auto }
        config: hooks:
        config:   PreToolUse:
        config:     - { matcher: terminal, command: "echo no jq >&2; exit 7" }
        config:     - { matcher: read, command: "sleep 1000", timeout: 1 }
        model: call terminal {"command":"true"}
        model: call read {"file_path":"a.txt"}
        model: text "Nothing works."
        > prompt run it
        > end
        "#,
        &expect![[r#"
            > prompt run it
            < call call-1-0 terminal "`true`" pending {"command":"true"}
            < thought[] The PreToolUse hook `echo no jq >&2; exit 7` failed: it exited with code 7: no jq⏎
            < call call-1-0 failed "not run: the hook `echo no jq >&2; exit 7`, which must approve it, failed: it exited with code 7: no jq"
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < thought[] The PreToolUse hook `sleep 1000` failed: it exceeded its timeout of 1 s⏎
            < call call-3-0 failed "not run: the hook `sleep 1000`, which must approve it, failed: it exceeded its timeout of 1 s"
            < text[msg-5] Nothing works.
            < title run it
            = end_turn
            model saw user: "run it"
            model saw assistant: terminal("{\"command\":\"true\"}")
            model saw tool: "not run: the hook `echo no jq >&2; exit 7`, which must approve it, failed: it exited with code 7: no jq"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "not run: the hook `sleep 1000`, which must approve it, failed: it exceeded its timeout of 1 s"
        "#]],
    );
}

#[test]
fn hook_after_a_call_adds_text_and_undoes_nothing() {
    check(
        r#"
        config: permissions: { mode: auto }
        config: hooks:
        config:   PreToolUse: [{ matcher: write, command: "echo '{\"context\":\"lines end in LF here\"}'" }]
        config:   PostToolUse:
        config:     - { matcher: write, command: "grep -q '\"tool_response\":{\"status\":\"completed\"' && echo 'too many words' >&2 && exit 2" }
        config:     - { matcher: write, command: "echo broken >&2; exit 1" }
        config:     - { matcher: read, command: "echo '{\"context\":\"one of three\"}'" }
        model: call write {"file_path":"a.txt","content":"words"}
        model: call read {"file_path":"a.txt"}
        model: text "I see."
        > prompt write it
        > end
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt write it
            < call call-1-0 write "Write a.txt" pending {"file_path":"a.txt","content":"words"}
            < call call-1-0 in_progress
            < thought[] The PostToolUse hook `echo broken >&2; exit 1` failed: it exited with code 1: broken⏎
            < call call-1-0 completed diff $HOME/project/a.txt null -> "words"
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-3-0 in_progress
            < call call-3-0 completed "     1\twords\n"
            < text[msg-5] I see.
            < title write it
            = end_turn
            > kill
            > load
            < prompt[msg-0] write it
            < call call-1-0 write "Write a.txt" completed {"file_path":"a.txt","content":"words"} diff $HOME/project/a.txt null -> "words"
            < call call-3-0 read "Read a.txt" completed {"file_path":"a.txt"} "     1\twords\n"
            < text[msg-5] I see.
            < title write it
            = loaded
            model saw user: "write it"
            model saw assistant: write("{\"file_path\":\"a.txt\",\"content\":\"words\"}")
            model saw tool: "created a.txt: 1 line\n(a hook says) too many words\n(a hook says) lines end in LF here"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\twords\n\n(a hook says) one of three"
        "#]],
    );
}

#[test]
fn rejected_call_runs_no_hooks_after_it() {
    check(
        r#"
        config: hooks: { PostToolUse: [{ command: "echo '{\"context\":\"it ran\"}'" }] }
        model: call terminal {"command":"touch ."}
        model: text "Then not."
        > answer reject_once
        > prompt run it
        > end
        "#,
        &expect![[r#"
            > prompt run it
            < call call-1-0 terminal "`touch .`" pending {"command":"touch ."}
            ? `touch .` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> reject_once
            < call call-1-0 failed "not run: the user rejected it"
            < text[msg-3] Then not.
            < title run it
            = end_turn
            model saw user: "run it"
            model saw assistant: terminal("{\"command\":\"touch .\"}")
            model saw tool: "not run: the user rejected it"
        "#]],
    );
}

#[test]
fn blocked_prompt_is_neither_sent_nor_stored() {
    check(
        r#"
        config: hooks: { UserPromptSubmit: [{ command: "if grep -q password; then echo 'no passwords please' >&2; exit 2; fi" }] }
        model: text "Hello."
        > prompt my password is 1234
        > end
        > prompt hello
        > end
        > prompt what was the password?
        > end
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt my password is 1234
            < text[refused-1] Not sent: a hook rejected it: no passwords please
            = end_turn
            > prompt hello
            < text[msg-1] Hello.
            < title hello
            = end_turn
            > prompt what was the password?
            < text[refused-2] Not sent: a hook rejected it: no passwords please
            = end_turn
            > kill
            > load
            < prompt[msg-0] hello
            < text[msg-1] Hello.
            < title hello
            = loaded
            model saw user: "hello"
        "#]],
    );
}

#[test]
fn steering_is_checked_by_hooks() {
    check(
        r#"
        config: hooks: { UserPromptSubmit: [{ command: "if grep -q password; then echo 'no passwords please' >&2; exit 2; fi" }] }
        model: text "I begin." | hold
        model: text "Never asked."
        > prompt begin
        > wait I begin
        > steer the password is 1234
        > release
        > steered
        > end
        "#,
        &expect![[r#"
            > prompt begin
            < text[msg-1] I begin.
            > steer the password is 1234
            ! -32602 invalid_value: Not sent: a hook rejected it: no passwords please
            < title begin
            = end_turn
            model saw user: "begin"
        "#]],
    );
}

#[test]
fn hook_adds_to_a_prompt() {
    check(
        r#"
        config: hooks:
        config:   UserPromptSubmit:
        config:     - { command: "echo branch: main" }
        config:     - { command: "echo '{\"hookSpecificOutput\":{\"additionalContext\":\"use tabs\"}}'" }
        model: text "Hello."
        > prompt hello
        > end
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt hello
            < text[msg-1] Hello.
            < title hello
            = end_turn
            > kill
            > load
            < prompt[msg-0] hello
            < text[msg-1] Hello.
            < title hello
            = loaded
            model saw user: "hello\n<resource uri=\"crow:hook/UserPromptSubmit\">\nbranch: main\n</resource>\n<resource uri=\"crow:hook/UserPromptSubmit\">\nu"
        "#]],
    );
}

#[test]
fn prompt_with_a_failing_hook_is_not_sent() {
    check(
        r#"
        config: hooks: { UserPromptSubmit: [{ command: "echo '{oops'" }] }
        > prompt hello
        > end
        "#,
        &expect![[r#"
            > prompt hello
            < thought[] The UserPromptSubmit hook `echo '{oops'` failed: its answer is not JSON: key must be a string at line 1 column 2⏎
            < text[refused-1] Not sent: the hook `echo '{oops'`, which must approve it, failed: its answer is not JSON: key must be a string at line 1 column 2
            = end_turn
        "#]],
    );
}

#[test]
fn stop_hook_continues_the_turn() {
    check(
        r#"
        config: permissions: { mode: auto }
        config: hooks: { Stop: [{ command: "[ -e tested ] || { echo 'run the tests' >&2; exit 2; }" }] }
        model: text "Done."
        model: call terminal {"command":"touch tested"}
        model: text "Tested."
        > prompt fix it
        > end
        "#,
        &expect![[r#"
            > prompt fix it
            < text[msg-1] Done.
            < thought[] A hook asks you to go on: run the tests⏎
            < call call-3-0 terminal "`touch tested`" pending {"command":"touch tested"}
            < call call-3-0 in_progress
            < call call-3-0 completed "(no output)"
            < text[msg-5] Tested.
            < title fix it
            = end_turn
            model saw user: "fix it"
            model saw assistant: "Done."
            model saw user: "A hook asks you to go on: run the tests"
            model saw assistant: terminal("{\"command\":\"touch tested\"}")
            model saw tool: "(no output)"
        "#]],
    );
}

#[test]
fn stop_hook_continuations_are_limited() {
    check(
        r#"
        config: hooks: { Stop: [{ command: "grep -o '\"stop_hook_active\":[a-z]*' >&2; exit 2" }] }
        model: text "Done."
        model: text "Done again."
        model: text "Really done."
        model: text "Enough."
        model: text "A new turn."
        > prompt fix it
        > end
        "#,
        &expect![[r#"
            > prompt fix it
            < text[msg-1] Done.
            < thought[] A hook asks you to go on: "stop_hook_active":false⏎
            < text[msg-3] Done again.
            < thought[] A hook asks you to go on: "stop_hook_active":true⏎
            < text[msg-5] Really done.
            < thought[] A hook asks you to go on: "stop_hook_active":true⏎
            < text[msg-7] Enough.
            < thought[] A hook asked the model to continue again, beyond the limit of 3 times: "stop_hook_active":true⏎
            < title fix it
            = end_turn
            model saw user: "fix it"
            model saw assistant: "Done."
            model saw user: "A hook asks you to go on: \"stop_hook_active\":false"
            model saw assistant: "Done again."
            model saw user: "A hook asks you to go on: \"stop_hook_active\":true"
            model saw assistant: "Really done."
            model saw user: "A hook asks you to go on: \"stop_hook_active\":true"
        "#]],
    );
}

#[test]
fn hook_can_end_the_turn() {
    check(
        r#"
        config: permissions: { mode: auto }
        config: hooks: { PostToolUse: [{ matcher: terminal, command: "echo '{\"continue\":false,\"stopReason\":\"look at this first\"}'" }] }
        model: call terminal {"command":"echo strange"}
        model: text "Go on."
        > prompt try it
        > end
        > prompt go on
        > end
        "#,
        &expect![[r#"
            > prompt try it
            < call call-1-0 terminal "`echo strange`" pending {"command":"echo strange"}
            < call call-1-0 in_progress
            < thought[] A hook ended the turn: look at this first⏎
            < call call-1-0 completed "strange\n"
            < title try it
            = end_turn
            > prompt go on
            < text[msg-4] Go on.
            = end_turn
            model saw user: "try it"
            model saw assistant: terminal("{\"command\":\"echo strange\"}")
            model saw tool: "strange\n"
            model saw user: "go on"
        "#]],
    );
}

#[test]
fn cancel_ends_a_hook() {
    check(
        r#"
        config: hooks:
        config:   PreToolUse: [{ command: "sleep 1000" }]
        model: call read {"file_path":"a.txt"}
        model: text "Fine."
        > prompt read it
        > wait pending
        > cancel
        > end
        > prompt well?
        > end
        "#,
        &expect![[r#"
            > prompt read it
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            > cancel
            < call call-1-0 failed "not run: the turn was cancelled"
            < title read it
            = cancelled
            > prompt well?
            < text[msg-4] Fine.
            = end_turn
            model saw user: "read it"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "not run: the turn was cancelled"
            model saw user: "well?"
        "#]],
    );
}
