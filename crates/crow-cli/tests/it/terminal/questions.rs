//! Permission questions: all of the command is shown, and only keys that were pressed at it answer.

use expect_test::expect;

use super::stage::{TerminalStage, check};

const TOUCH: &str = "call terminal {\"command\":\"touch approved\"}\ntext \"Done.\"";

#[test]
fn terminal_question_shows_the_whole_command_and_is_answered() {
    let command = "touch approved\\necho a long command, which the terminal has to wrap at forty columns";
    let script = format!("call terminal {{\"command\":\"{command}\"}}\ntext \"Done.\"");
    let steps = "
        wait · ask
        type go
        key enter
        wait Allow this?
        wait esc stops
        show
        focus
        key y
        wait Done.
        gone ⠋
        show
        ls";
    check(
        40,
        &script,
        steps,
        &expect![[r#"
            ── 40×24
            › go

            ○ `touch approved…`

            ⠋ …
            Allow this? Run a command
              Reason: no rule covers `touch
              approved`.
              touch approved
              echo a long command, which the
              terminal has to wrap at forty columns
              › y  Allow once
                a  Allow for this session
                p  Always allow edits in this proj…
                n  Reject
                e  Reject and say what to do inste…
            a key, or ↑↓ and enter · esc stops
            › ▮Ask anything
            crow · scripted · ask
            ── 40×24
            › go

            ✓ `touch approved…`
              a long command, which the terminal h…

            Done.

            › ▮Ask anything
            crow · scripted · ask
            ── files: approved
        "#]],
    );
}

#[test]
fn terminal_question_is_not_approved_before_its_end_was_shown() {
    let lines: String = (1..=60).map(|line| format!("echo {line}\\n")).collect();
    let script = format!("call terminal {{\"command\":\"{lines}touch approved\"}}\ntext \"Done.\"");
    let steps = "
        wait · ask
        type go
        key enter
        wait Allow this?
        show
        focus
        key y
        wait then it can be approved
        ls
        key space
        wait … 11 rows above
        key space
        wait … 22 rows above
        key space
        wait … 33 rows above
        key space
        wait … 44 rows above
        key space
        wait , 0 below
        key y
        wait Done.
        ls";
    check(
        80,
        &script,
        steps,
        &expect![[r#"
            ── 80×24
            › go

            ○ `echo 1…`
            ⠋ Waiting for your answer · N s · esc stops
            Allow this? Run a command
              Reason: no rule covers `touch approved`.
              echo 1
              echo 2
              echo 3
              echo 4
              echo 5
              echo 6
              echo 7
              echo 8
              echo 9
              … 0 rows above, 52 below · pagedown scrolls
              › y  Allow once
                a  Allow for this session
                p  Always allow edits in this project
                n  Reject
                e  Reject and say what to do instead
            a key, or ↑↓ and enter · esc stops
            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
            ── files: 
            ── files: approved
        "#]],
    );
}

#[test]
fn terminal_keys_from_before_the_question_do_not_answer_it() {
    let script = format!("hold | {TOUCH}");
    let mut stage = TerminalStage::new(80, &script);
    stage.play("wait · ask\ntype go\nkey enter\nwait stops\nrequests 1");
    // The letters race with the question: some are read before it is drawn, some after.
    stage.model.release();
    for _ in 0..40 {
        stage.program().type_text("y");
    }
    let steps = "
        wait Allow this?
        wait tab answers the question
        paste y
        ls
        key enter
        wait the text is kept
        ls
        key ctrl-u
        wait Ask anything
        pause
        key tab
        key n
        wait Done.
        ls";
    stage.check(
        steps,
        &expect![[r#"
        ── files: 
        ── files: 
        ── files: 
    "#]],
    );
}

#[test]
fn terminal_key_after_a_pause_answers_at_once() {
    let mut stage = TerminalStage::new(80, TOUCH);
    stage.play("wait · ask\ntype go\nkey enter\nwait Allow this?");
    // The live line counts the seconds: after two more of them, the pause is over.
    let seconds = stage.live_seconds();
    let program = stage.program();
    let later: Vec<String> = (seconds + 2..seconds + 20).map(|seconds| format!(" · {seconds} s")).collect();
    program.wait_until("two seconds", |terminal| {
        terminal.visible_rows().iter().any(|row| later.iter().any(|later| row.contains(later)))
    });
    stage.check(
        "key y\nwait Done.\ngone ⠋\nls",
        &expect![[r#"
        ── files: approved
    "#]],
    );
}

#[test]
fn terminal_rejection_says_what_to_do_instead() {
    let script = "call terminal {\"command\":\"touch approved\"}\ntext \"I will.\"";
    let steps = "
        wait · ask
        type go
        key enter
        wait Allow this?
        type half a thought
        wait half a thought
        pause
        key tab
        key e
        wait Type the answer
        show
        type use git instead
        wait use git instead
        key enter
        wait I will.
        gone ⠋
        show
        ls";
    check(
        80,
        script,
        steps,
        &expect![[r#"
        ── 80×24
        › go

        ○ `touch approved`

        ⠋ Waiting for your answer · N s · esc stops
        What should be done instead?
        enter sends the answer · esc returns
        → ▮Type the answer; esc returns
        crow · scripted · ask
        ── 80×24
        › go

        ✗ `touch approved`
          not run: the user rejected it and says: use git instead
        • What should be done instead? use git instead

        I will.

        › half a thought▮
        crow · scripted · ask
        ── files: 
    "#]],
    );
}

#[test]
fn terminal_escape_at_a_question_stops_the_turn() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Allow this?
        focus
        key esc
        wait • stopped
        show
        ls";
    check(
        80,
        TOUCH,
        steps,
        &expect![[r#"
            ── 80×24
            › go

            ✗ `touch approved`
              not run: the turn was cancelled
            • stopped

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
            ── files: 
        "#]],
    );
}
