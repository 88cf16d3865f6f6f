//! The ends of the program: each leaves the terminal as it was.

use expect_test::{Expect, expect};

use super::stage::{TerminalStage, check};

#[track_caller]
fn check_end(steps: &str, expected: &Expect) {
    check(80, "text \"Half a sen\" | hold", steps, expected);
}

#[test]
fn terminal_end_of_input_quits() {
    check_end(
        "wait · ask\nkey ctrl-d\nexit",
        &expect![[r#"
        ── 80×24
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_second_interrupt_quits() {
    let steps = "
        wait · ask
        type a draft
        wait a draft
        key ctrl-c
        wait ctrl-c again quits
        key ctrl-c
        exit";
    check_end(
        steps,
        &expect![[r#"
        ── 80×24
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_interrupts_during_a_turn_stop_it_and_quit() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Half
        key ctrl-c
        wait • stopped
        key ctrl-c
        exit";
    check_end(
        steps,
        &expect![[r#"
            ── 80×24
            › go

            Half a sen

            • stopped

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_is_restored_at_a_termination_signal() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Half
        signal SIGTERM
        exit";
    check_end(
        steps,
        &expect![[r#"
            ── 80×24
            › go

            Half a sen

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_is_restored_when_the_pager_is_open() {
    let steps = "
        wait · ask
        key ctrl-o
        wait Transcript
        signal SIGTERM
        exit";
    check_end(
        steps,
        &expect![[r#"
        ── 80×24
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_is_lent_to_the_editor_and_taken_back() {
    let stage = TerminalStage::new(80, "text \"Fine.\"").with_env("EDITOR", "./editor");
    stage.home.write_file(
        "editor",
        "#!/bin/sh\nstty -a | grep -q ' icanon' && echo cooked; echo edited >> \"$1\"\n",
    );
    let editor = stage.home.project().join("editor");
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is there");
    let steps = "
        wait · ask
        type draft
        wait draft
        key ctrl-g
        wait edited
        show
        key enter
        wait Fine.
        gone ⠋
        prompt
        key ctrl-d
        exit";
    stage.check(
        steps,
        &expect![[r#"
            ── 80×24
            cooked
            › draftedited▮
            crow · scripted · ask
            ── prompt
            draftedited
            ── 80×24
            cooked
            › draftedited

            Fine.

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}
