//! The ends of the program: each leaves the terminal as it was.

use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

use expect_test::{Expect, expect};
use nix::poll::{PollFd, PollFlags, poll};

use super::stage::{TerminalStage, check};

/// Milliseconds that a loaded machine may take to end a process that was killed.
const GONE_WITHIN: u16 = 20_000;

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

/// A terminal whose editor is a script.
fn stage_with_editor(model: &str, script: &str) -> TerminalStage {
    let stage = TerminalStage::new(80, model).with_env("EDITOR", "./editor");
    stage.home.write_file("editor", &format!("#!/bin/sh\n{script}\n"));
    let editor = stage.home.project().join("editor");
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is there");
    stage
}

/// An editor that waits for a word.
const LONG_EDITOR: &str = "echo editing; until [ -n \"$word\" ]; do read word; done; echo edited >> \"$1\"";

#[test]
fn interrupt_of_the_editor_does_not_end_the_terminal() {
    let steps = "
        wait · ask
        type draft
        wait draft
        key ctrl-g
        wait editing
        key ctrl-c
        wait the text is unchanged
        key enter
        wait Fine.
        gone ⠋
        key ctrl-d
        exit";
    stage_with_editor("text \"Fine.\"", LONG_EDITOR).check(
        steps,
        &expect![[r#"
        ── 80×24
        editing
        › draft

        Fine.

        session     $SESSION
        continue    crow-cli --resume $SESSION
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn nothing_is_drawn_over_the_editor() {
    let stage = stage_with_editor("text \"Half a sen\" | hold | text \"tence.\"", LONG_EDITOR);
    let steps = "
        wait · ask
        type go
        key enter
        wait Half
        type draft
        wait draft
        key ctrl-g
        wait editing
        pause
        show
        release
        pause
        show
        type done
        key enter
        wait › draftedited
        gone ⠋
        key ctrl-c
        key ctrl-d
        exit";
    stage.with_args(&["--fullscreen"]).check(
        steps,
        &expect![[r#"
        ── 80×24
        editing
        ▮
        ── 80×24
        editing
        ▮
        ── 80×24
        editing
        done
        › go

        Half a sentence.

        session     $SESSION
        continue    crow-cli --resume $SESSION
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_is_lent_to_the_editor_and_taken_back() {
    let script = "stty -a | grep -q ' icanon' && echo cooked; echo edited >> \"$1\"";
    let stage = stage_with_editor("text \"Fine.\"", script);
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

#[test]
fn editor_ends_with_the_terminal() {
    // As long as a process of the editor lives, it has the pipe open.
    let script = "trap '' HUP INT TERM; exec 9> pipe; echo editing; while :; do sleep 1; done";
    let mut stage = stage_with_editor("", script);
    let pipe = stage.home.project().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let pipe = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(pipe).expect("it is there");
    let steps = "
        wait · ask
        type draft
        wait draft
        key ctrl-g
        wait editing
        key ctrl-c
        signal SIGTERM
        exit";
    stage.play(steps);
    expect![[r#"
        ── 80×24
        editing
        ▮
        ── exit code 0, modes left on: none
    "#]]
    .assert_eq(&stage.take_log());
    let mut ends = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    poll(&mut ends, GONE_WITHIN).expect("it is polled");
    assert_eq!(ends[0].revents(), Some(PollFlags::POLLHUP), "the editor is left");
}
