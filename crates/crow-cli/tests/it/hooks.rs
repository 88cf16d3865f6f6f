//! The person's hooks in a whole agent, as transcripts: real commands, from the configuration to the model's request.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_testkit::golden::play;
use expect_test::{Expect, expect};

fn check(script: &str, transcript: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    transcript.assert_eq(&runtime.expect("a runtime can be made").block_on(play(binary, script)));
}

#[test]
fn a_blocked_call_is_neither_asked_nor_run() {
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
        &expect![""],
    );
}

#[test]
fn a_hook_blocks_in_every_mode_and_only_its_tools() {
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
        &expect![""],
    );
}

#[test]
fn a_hook_gives_no_permission() {
    check(
        r#"
        config: hooks: { PreToolUse: [{ command: "echo '{\"decision\":\"approve\",\"hookSpecificOutput\":{\"permissionDecision\":\"allow\"}}'" }] }
        model: call terminal {"command":"true"}
        model: text "Then not."
        > answer reject_once
        > prompt run it
        > end
        "#,
        &expect![""],
    );
}

#[test]
fn the_first_refusal_counts_and_the_rest_do_not_run() {
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
        &expect![""],
    );
}

#[test]
fn a_guard_that_fails_lets_nothing_pass_and_is_reported() {
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
        &expect![""],
    );
}

#[test]
fn a_hook_after_a_call_adds_and_undoes_nothing() {
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
        &expect![""],
    );
}

#[test]
fn what_was_refused_has_no_hooks_after_it() {
    check(
        r#"
        config: hooks: { PostToolUse: [{ command: "echo '{\"context\":\"it ran\"}'" }] }
        model: call terminal {"command":"true"}
        model: text "Then not."
        > answer reject_once
        > prompt run it
        > end
        "#,
        &expect![""],
    );
}

#[test]
fn a_refused_prompt_is_neither_asked_nor_stored() {
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
        &expect![""],
    );
}

#[test]
fn words_into_a_running_turn_are_checked_as_well() {
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
        &expect![""],
    );
}

#[test]
fn a_hook_adds_to_a_prompt() {
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
        &expect![""],
    );
}

#[test]
fn a_prompt_whose_hook_fails_is_not_asked() {
    check(
        r#"
        config: hooks: { UserPromptSubmit: [{ command: "echo '{oops'" }] }
        > prompt hello
        > end
        "#,
        &expect![""],
    );
}

#[test]
fn a_stop_hook_has_the_model_go_on() {
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
        &expect![""],
    );
}

#[test]
fn a_stop_hook_that_is_never_content_stops_counting() {
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
        &expect![""],
    );
}

#[test]
fn a_hook_can_end_the_turn() {
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
        &expect![""],
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
        &expect![""],
    );
}
