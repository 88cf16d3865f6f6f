//! Turns: answers as they stream, calls with their output, and what can be typed meanwhile.

use expect_test::{Expect, expect};

use super::stage::{TerminalStage, check};

const ANSWER: &str = r##"text "# Result\n\nThe *first* paragraph, with `code` and a [link](https://example.org), is long enough to be wrapped.\n\n| name | size |\n|---|---:|\n| a | 1 |\n" | hold | text "| 日本 | 22 |\n\n- one\n- two\n\n```rust\nfn main() {\n" | hold | text "    println!(\"hello\");\n}\n```\n\nDone.""##;

#[track_caller]
fn check_streaming(columns: u16, expected: &Expect) {
    let steps = "
        wait · ask
        type go
        key enter
        wait paragraph
        show
        release
        wait fn main
        show
        release
        wait Done.
        gone ⠋
        history";
    check(columns, ANSWER, steps, expected);
}

#[test]
fn terminal_answer_streams_in_40_columns() {
    check_streaming(
        40,
        &expect![[r#"
            ── 40×24
            › go

            Result

            The first paragraph, with code and a
            link (https://example.org), is long
            enough to be wrapped.

            name │ size
            ─────┼─────
            a    │    1

            ⠋ …
            › ▮Ask anything
            crow · scripted · ask
            ── 40×24
            › go

            Result

            The first paragraph, with code and a
            link (https://example.org), is long
            enough to be wrapped.

            name │ size
            ─────┼─────
            a    │    1
            日本 │   22

            • one
            • two

            fn main() {

            ⠋ …
            › ▮Ask anything
            crow · scripted · ask
            ── history
            › go

            Result

            The first paragraph, with code and a
            link (https://example.org), is long
            enough to be wrapped.

            name │ size
            ─────┼─────
            a    │    1
            日本 │   22

            • one
            • two

            fn main() {
                println!("hello");
            }

            Done.

            › Ask anything
            crow · scripted · ask
        "#]],
    );
}

#[test]
fn terminal_answer_streams_in_80_columns() {
    check_streaming(
        80,
        &expect![[r#"
            ── 80×24
            › go

            Result

            The first paragraph, with code and a link (https://example.org), is long enough
            to be wrapped.

            name │ size
            ─────┼─────
            a    │    1

            ⠋ Writing · N s · ↓ N tokens · esc stops
            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
            ── 80×24
            › go

            Result

            The first paragraph, with code and a link (https://example.org), is long enough
            to be wrapped.

            name │ size
            ─────┼─────
            a    │    1
            日本 │   22

            • one
            • two

            fn main() {

            ⠋ Writing · N s · ↓ N tokens · esc stops
            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
            ── history
            › go

            Result

            The first paragraph, with code and a link (https://example.org), is long enough
            to be wrapped.

            name │ size
            ─────┼─────
            a    │    1
            日本 │   22

            • one
            • two

            fn main() {
                println!("hello");
            }

            Done.

            › Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
        "#]],
    );
}

#[test]
fn terminal_answer_streams_in_120_columns() {
    check_streaming(
        120,
        &expect![[r#"
            ── 120×24
            › go

            Result

            The first paragraph, with code and a link (https://example.org), is long enough to be wrapped.

            name │ size
            ─────┼─────
            a    │    1

            ⠋ Writing · N s · ↓ N tokens · esc stops
            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask · ~/project · $SESSION
            ── 120×24
            › go

            Result

            The first paragraph, with code and a link (https://example.org), is long enough to be wrapped.

            name │ size
            ─────┼─────
            a    │    1
            日本 │   22

            • one
            • two

            fn main() {

            ⠋ Writing · N s · ↓ N tokens · esc stops
            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask · ~/project · $SESSION
            ── history
            › go

            Result

            The first paragraph, with code and a link (https://example.org), is long enough to be wrapped.

            name │ size
            ─────┼─────
            a    │    1
            日本 │   22

            • one
            • two

            fn main() {
                println!("hello");
            }

            Done.

            › Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask · N% context · ~/project · $SESSION
        "#]],
    );
}

#[test]
fn terminal_call_shows_its_output_and_the_pager_all_of_it() {
    let script = "call read {\"file_path\":\"a.txt\"}\ncall terminal {\"command\":\"seq 10\"}\ntext \"Ten.\"";
    let stage = TerminalStage::new(80, script).with_args(&["run", "-i", "--mode", "auto"]);
    stage.home.write_file("a.txt", "apples\n");
    let steps = "
        wait · auto
        type count
        key enter
        wait Ten.
        gone ⠋
        show
        key ctrl-o
        wait Transcript
        show
        key q
        gone Transcript
        wait Ten.";
    stage.check(
        steps,
        &expect![[r#"
            ── 80×24
            › count

            ✓ Read a.txt
            ✓ `seq 10`
              … 7 earlier lines
              8
              9
              10

            Ten.

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · auto
            ── 80×24
            Transcript · rows to 17 of 17
            › count

            ✓ Read a.txt
                   1  apples
            ✓ `seq 10`
              1
              2
              3
              4
              5
              6
              7
              8
              9
              10

            Ten.
            ↑↓ space scroll · tab selects a call, enter folds it · / search · q closes
        "#]],
    );
}

#[test]
fn terminal_escape_stops_the_turn_and_keeps_what_was_said() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Half
        key esc
        wait • stopped
        show
        type again
        key enter
        wait Whole.
        gone ⠋";
    check(
        80,
        "text \"Half a sen\" | hold\ntext \"Whole.\"",
        steps,
        &expect![[r#"
            ── 80×24
            › go

            Half a sen

            • stopped

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
        "#]],
    );
}

#[test]
fn terminal_tab_queues_and_enter_steers() {
    let script = "call terminal {\"command\":\"while [ ! -e go ]; do sleep 0.01; done\"}\ntext \"Steered.\"\ntext \"Queued.\"";
    let mut stage = TerminalStage::new(80, script).with_args(&["run", "-i", "--mode", "auto"]);
    stage.play(
        "
        wait · auto
        type go
        key enter
        wait Running
        type later
        key tab
        wait queued: later
        type and mind the tabs
        key enter
        wait for this turn: and mind the tabs
        show",
    );
    stage.home.write_file("go", "");
    stage.check(
        "wait Queued.\ngone ⠋\nhistory",
        &expect![[r#"
            ── 80×24
            › go

            ⠋ `while [ ! -e go ]; do sleep 0.01; done`

            ↳ for this turn: and mind the tabs
            ↳ queued: later
            ⠋ Running `while [ ! -e go ]; do sleep 0.01; done` · N s · esc stops
            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · auto
            ── history
            › go

            ✓ `while [ ! -e go ]; do sleep 0.01; done`

            › and mind the tabs

            Steered.

            › later

            Queued.

            › Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · auto
        "#]],
    );
}

#[test]
fn terminal_queue_returns_to_the_composer_when_the_turn_is_stopped() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Half
        type first
        key tab
        wait queued: first
        type second
        key tab
        wait queued: second
        key alt-up
        gone queued:
        key tab
        wait queued: first
        key esc
        wait • stopped
        wait second
        show";
    check(
        80,
        "text \"Half a sen\" | hold",
        steps,
        &expect![[r#"
            ── 80×24
            › go

            Half a sen

            • stopped

            › first
              second▮
            crow · scripted · ask
        "#]],
    );
}

#[test]
fn terminal_steering_that_was_not_read_returns_to_the_composer() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Half
        type mind the tabs
        key enter
        wait for this turn: mind the tabs
        key esc
        wait • stopped
        wait › mind
        show";
    check(
        80,
        "text \"Half a sen\" | hold",
        steps,
        &expect![[r#"
        ── 80×24
        › go

        Half a sen

        • stopped

        › mind the tabs▮
        crow · scripted · ask
    "#]],
    );
}

#[test]
fn terminal_failure_of_the_model_is_shown() {
    let steps = "
        wait · ask
        type go
        key enter
        wait ✗
        gone ⠋
        show";
    check(
        80,
        r#"status 429 {"error":{"message":"slow down"}}"#,
        steps,
        &expect![[r#"
        ── 80×24
        › go

        ✗ `fake` limits the request rate for `scripted` (429): slow down; wait or use
          another model

        › ▮Ask anything; / for commands, @ for files, ! for the shell
        crow · scripted · ask
    "#]],
    );
}
