//! Sessions that are continued, and the fallbacks without a terminal that can be drawn on.

use expect_test::expect;

use super::stage::TerminalStage;

/// Starts a session with one turn and leaves it; returns its name.
fn leave_session(stage: &mut TerminalStage) -> String {
    stage.play("wait · ask\ntype first\nkey enter\nwait One.\ngone ⠋\nkey ctrl-d\nexit");
    stage.session()
}

#[test]
fn terminal_session_is_continued_by_age_and_by_prefix() {
    let mut stage = TerminalStage::new(80, "text \"One.\"\ntext \"Two.\"");
    let session = leave_session(&mut stage);
    stage.set_args(&["--continue"]);
    stage.play(
        "
        wait One.
        wait · ask
        type second
        key enter
        wait Two.
        gone ⠋
        key ctrl-d
        exit",
    );
    stage.set_args(&["--resume", &session[..session.len() / 2]]);
    stage.check(
        "wait Two.\nwait · ask\nkey ctrl-d\nexit",
        &expect![[r#"
            ── 80×24
            › first

            One.

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
            ── 80×24
            › first

            One.

            › second

            Two.

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
            ── 80×24
            › first

            One.

            › second

            Two.

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_session_is_chosen_from_a_list() {
    let mut stage = TerminalStage::new(80, "text \"One.\"\ntext \"Two.\"");
    leave_session(&mut stage);
    stage.set_args(&["--resume"]);
    stage.take_log();
    let steps = "
        wait › first
        key enter
        wait One.
        wait · ask
        type second
        key enter
        wait Two.
        gone ⠋
        key ctrl-d
        exit";
    stage.check(
        steps,
        &expect![[r#"
            ── 80×24
            • session $SESSION

            › first

            One.

            › second

            Two.

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_list_that_is_closed_leads_to_a_new_session() {
    let mut stage = TerminalStage::new(80, "text \"One.\"\ntext \"Two.\"");
    leave_session(&mut stage);
    stage.set_args(&["--resume"]);
    stage.take_log();
    stage.check(
        "wait › first\nkey esc\nwait · ask\ntype new\nkey enter\nwait Two.\ngone ⠋\nshow",
        &expect![[r#"
            ── 80×24
            › new

            Two.

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
        "#]],
    );
}

#[test]
fn terminal_prefix_without_a_session_is_a_problem_that_is_shown() {
    let stage = TerminalStage::new(80, "").with_args(&["--resume", "zzzz"]);
    stage.check(
        "wait zzzz\nshow",
        &expect![[r#"
        ── 80×24
        ✗ there is no session zzzz; `crow-cli inspect` lists the sessions

        › ▮Ask anything; / for commands, @ for files, ! for the shell
        crow · ~/project
    "#]],
    );
}

#[test]
fn terminal_dumb_gets_plain_lines() {
    let stage = TerminalStage::new(80, "text \"Hello.\"").with_env("TERM", "dumb");
    stage.check(
        "wait ›\ntype hi\nkey enter\nwait Hello.\nkey ctrl-d\nexit",
        &expect![[r#"
        ── 80×24
        › hi
        Hello.
        ›
        session     $SESSION
        continue    crow-cli run -s $SESSION "…"
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_without_colours_writes_none() {
    let mut stage = TerminalStage::new(80, "text \"# Hello\\n\\n`code`\"").with_env("NO_COLOR", "1");
    stage.play("wait · ask\ntype hi\nkey enter\nwait code\ngone ⠋\nkey ctrl-d\nexit");
    let output = stage.take_output();
    let styles: Vec<&str> =
        output.split("\x1b[").filter_map(|text| text.split_once('m')).map(|(style, _)| style).collect();
    let is_color =
        |style: &&&str| style.split(';').any(|number| matches!(number.parse::<u8>(), Ok(30..=49 | 90..=107)));
    assert_eq!(styles.iter().find(is_color), None, "{output:?}");
    // The test sees styles: others are there.
    assert!(styles.contains(&"0;1"), "{output:?}");
}
