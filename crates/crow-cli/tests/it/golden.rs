//! The whole agent, from a client's line to the model's request, as transcripts.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod client_capabilities;
mod client_terminals;
mod continuation;
mod messages;
mod responses;
mod text_tool_calls;

use std::path::Path;

use crow_testkit::golden::play;
use expect_test::{Expect, expect};

fn check(script: &str, transcript: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    transcript.assert_eq(&runtime.expect("a runtime can be made").block_on(play(&binary, script)));
}

#[test]
fn always_allow_is_asked_once() {
    check(
        r#"
        model: call terminal {"command":"touch ."}
        model: call terminal {"command":"touch ."}
        model: text "Twice."
        > answer allow_always
        > prompt run true twice
        > end
        "#,
        &expect![[r#"
            > prompt run true twice
            < call call-1-0 terminal "`touch .`" pending {"command":"touch ."}
            ? `touch .` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_always
            < call call-1-0 in_progress
            < call call-1-0 completed "(no output)"
            < call call-3-0 terminal "`touch .`" pending {"command":"touch ."}
            < call call-3-0 in_progress
            < call call-3-0 completed "(no output)"
            < text[msg-5] Twice.
            < title run true twice
            = end_turn
            model saw user: "run true twice"
            model saw assistant: terminal("{\"command\":\"touch .\"}")
            model saw tool: "(no output)"
            model saw assistant: terminal("{\"command\":\"touch .\"}")
            model saw tool: "(no output)"
        "#]],
    );
}

#[test]
fn two_calls_run_side_by_side() {
    // Each command waits for the other's file: in sequence they would never end.
    check(
        r#"
        model: call terminal {"command":"touch a; until [ -e b ]; do :; done; echo one"} | call terminal {"command":"touch b; until [ -e a ]; do :; done; echo two"}
        model: text "Both."
        > prompt run both
        > end
        "#,
        &expect![[r#"
            > prompt run both
            < call call-1-0 terminal "`touch a; until [ -e b ]; do :; done; echo one`" pending {"command":"touch a; until [ -e b ]; do :; done; echo one"}
            < call call-1-1 terminal "`touch b; until [ -e a ]; do :; done; echo two`" pending {"command":"touch b; until [ -e a ]; do :; done; echo two"}
            ? `touch a; until [ -e b ]; do :; done; echo one` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? `touch b; until [ -e a ]; do :; done; echo two` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-1 in_progress
            < call call-1-0 completed "one\n"
            < call call-1-1 completed "two\n"
            < text[msg-4] Both.
            < title run both
            = end_turn
            model saw user: "run both"
            model saw assistant: terminal("{\"command\":\"touch a; until [ -e b ]; do :; done; echo one\"}") terminal("{\"command\":\"touch b; until [ -e a ]; do :; done; echo two\"}")
            model saw tool: "one\n"
            model saw tool: "two\n"
        "#]],
    );
}

#[test]
fn cancel_in_a_running_tool() {
    check(
        r#"
        model: call terminal {"command":"echo started; read forever < /dev/zero; tail -f /dev/null"} | call read {"file_path":"gone"}
        model: text "I stopped."
        > prompt /mode auto
        > end
        > prompt wait for ever
        > wait could not read
        > wait ~  "started
        > cancel
        > end
        > prompt what happened?
        > end
        "#,
        &expect![[r#"
            > prompt /mode auto
            < mode auto
            < config_option_update
            < text[note-1] Mode auto, model scripted.⏎
            = end_turn
            > prompt wait for ever
            < call call-1-0 terminal "`echo started; read forever < /dev/zero; tail -f /dev/null`" pending {"command":"echo started; read forever < /dev/zero; tail -f /dev/null"}
            < call call-1-1 read "Read gone" pending {"file_path":"gone"}
            < call call-1-0 in_progress
            < call call-1-1 in_progress
            < call call-1-1 failed "could not read gone: it does not exist"
            > cancel
            < call call-1-0 failed "started\nstopped: the turn was cancelled"
            < title wait for ever
            = cancelled
            > prompt what happened?
            < text[msg-5] I stopped.
            = end_turn
            model saw user: "wait for ever"
            model saw assistant: terminal("{\"command\":\"echo started; read forever < /dev/zero; tail -f /dev/null\"}") read("{\"file_path\":\"gone\"}")
            model saw tool: "started\nstopped: the turn was cancelled"
            model saw tool: "could not read gone: it does not exist"
            model saw user: "what happened?"
        "#]],
    );
}

#[test]
fn cancel_while_permission_is_asked() {
    check(
        r#"
        model: call terminal {"command":"touch ."}
        model: text "Fine."
        > answer silence
        > prompt run true
        > wait -> silence
        > cancel
        > end
        > prompt well?
        > end
        "#,
        &expect![[r#"
            > prompt run true
            < call call-1-0 terminal "`touch .`" pending {"command":"touch ."}
            ? `touch .` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> silence
            > cancel
            < takes its question back
            < call call-1-0 failed "not run: the turn was cancelled"
            < title run true
            = cancelled
            > prompt well?
            < text[msg-4] Fine.
            = end_turn
            model saw user: "run true"
            model saw assistant: terminal("{\"command\":\"touch .\"}")
            model saw tool: "not run: the turn was cancelled"
            model saw user: "well?"
        "#]],
    );
}

#[test]
fn load_after_a_kill_in_the_middle_of_a_call() {
    check(
        r#"
        file a.txt "apples\n"
        model: text "Both." | call terminal {"command":"echo started; tail -f /dev/null"} | call read {"file_path":"a.txt"} | usage 40 6
        model: text "It was cut off."
        > prompt /mode auto
        > end
        > prompt read and wait
        > wait completed
        > wait ~  "started
        > kill
        > load
        > prompt what happened?
        > end
        "#,
        &expect![[r#"
            > prompt /mode auto
            < mode auto
            < config_option_update
            < text[note-1] Mode auto, model scripted.⏎
            = end_turn
            > prompt read and wait
            < text[msg-1] Both.
            < usage 46/32000
            < call call-1-0 terminal "`echo started; tail -f /dev/null`" pending {"command":"echo started; tail -f /dev/null"}
            < call call-1-1 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-1 in_progress
            < call call-1-1 completed "     1\tapples\n"
            > kill
            > load
            < prompt[msg-0] read and wait
            < text[msg-1] Both.
            < usage 46/32000
            < call call-1-0 terminal "`echo started; tail -f /dev/null`" failed {"command":"echo started; tail -f /dev/null"} "its result is unknown: Crow exited, or could not store it, while this call was running"
            < call call-1-1 read "Read a.txt" completed {"file_path":"a.txt"} "     1\tapples\n"
            = loaded
            > prompt what happened?
            < text[msg-5] It was cut off.
            < title read and wait
            = end_turn
            model saw user: "read and wait"
            model saw assistant: "Both." terminal("{\"command\":\"echo started; tail -f /dev/null\"}") read("{\"file_path\":\"a.txt\"}")
            model saw tool: "its result is unknown: Crow exited, or could not store it, while this call was running"
            model saw tool: "     1\tapples\n"
            model saw user: "what happened?"
        "#]],
    );
}

#[test]
fn replay_equals_the_live_updates() {
    check(
        r#"
        file a.txt "one\n"
        model: thought "Plan first." | text "A plan." | call todo {"entries":[{"content":"Read","status":"in_progress"}]} | usage 10 5
        model: call read {"file_path":"a.txt"} | usage 20 5
        model: text "One." | usage 30 5
        > prompt plan and read
        > end
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt plan and read
            < thought[msg-1-thought] Plan first.
            < text[msg-1] A plan.
            < usage 15/32000
            < call call-1-0 todo "Plan" pending {"entries":[{"content":"Read","status":"in_progress"}]}
            < call call-1-0 in_progress
            < call call-1-0 completed "the plan has 1 steps, 0 completed"
            < plan in_progress Read
            < usage 25/32000
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-3-0 in_progress
            < call call-3-0 completed "     1\tone\n"
            < text[msg-5] One.
            < usage 35/32000
            < title plan and read
            = end_turn
            > kill
            > load
            < prompt[msg-0] plan and read
            < thought[msg-1-thought] Plan first.
            < text[msg-1] A plan.
            < usage 15/32000
            < call call-1-0 todo "Plan" completed {"entries":[{"content":"Read","status":"in_progress"}]} "the plan has 1 steps, 0 completed"
            < plan in_progress Read
            < usage 25/32000
            < call call-3-0 read "Read a.txt" completed {"file_path":"a.txt"} "     1\tone\n"
            < text[msg-5] One.
            < usage 35/32000
            < title plan and read
            = loaded
            model saw user: "plan and read"
            model saw assistant: "A plan." todo("{\"entries\":[{\"content\":\"Read\",\"status\":\"in_progress\"}]}")
            model saw tool: "the plan has 1 steps, 0 completed"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tone\n"
        "#]],
    );
}

#[test]
fn unreadable_arguments_do_not_run() {
    check(
        r#"
        model: chunk {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"touch ran"}}]}}]}
        model: chunk {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"terminal","arguments":"not even close"}}]}}]}
        model: chunk {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"touch ran\"}"}}]}}]} | finish "length"
        model: text "I see."
        > prompt break it
        > end
        "#,
        &expect![[r#"
            > prompt break it
            < call call-1-0 terminal "terminal" pending {"command":"touch ran"}
            < call call-1-0 in_progress
            < call call-1-0 failed "`terminal` was not run: its arguments may be incomplete: they stop at line 1 column 21 in the middle of a string; send the whole call again, in smaller steps if"
            < call call-3-0 terminal "terminal" pending {}
            < call call-3-0 in_progress
            < call call-3-0 failed "`terminal` was not run: the arguments are not a JSON object: expected ident at line 1 column 2; send the call again with one"
            < call call-5-0 terminal "`touch ran`" pending {"command":"touch ran"}
            ? `touch ran` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-5-0 in_progress
            < call call-5-0 completed "(no output)"
            < text[msg-7] I see.
            < title break it
            = end_turn
            model saw user: "break it"
            model saw assistant: terminal("{\"command\":\"touch ran\"}")
            model saw tool: "`terminal` was not run: its arguments may be incomplete: they stop at line 1 column 21 in the middle of a string; send t"
            model saw assistant: terminal("{}")
            model saw tool: "`terminal` was not run: the arguments are not a JSON object: expected ident at line 1 column 2; send the call again with"
            model saw assistant: terminal("{\"command\":\"touch ran\"}")
            model saw tool: "(no output)"
        "#]],
    );
}
