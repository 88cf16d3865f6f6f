//! Commands and keys beside the conversation.

use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;

use super::stage::{TerminalStage, check};

#[test]
fn terminal_transcript_after_new_has_the_open_session_only() {
    let steps = "
        wait · ask
        type first
        key enter
        wait Fine.
        gone ⠋
        type /new
        key enter
        wait new session
        key ctrl-o
        wait Transcript
        show
        key q
        gone Transcript
        key ctrl-d
        exit";
    check(
        60,
        "text \"Fine.\"",
        steps,
        &expect![[r#"
        ── 60×24
        Transcript · rows to 1 of 1
        • new session
        ↑↓ space scroll · / search · n next match · q closes
        ── 60×24
        › first

        Fine.

        • new session
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_refused_option_is_said_and_the_session_opens() {
    let stage = TerminalStage::new(80, "text \"Fine.\"").with_args(&["--model", "no-such-model"]);
    let steps = "
        wait no-such-model
        wait · ask
        type go
        key enter
        wait Fine.
        gone ⠋
        key ctrl-d
        exit";
    stage.check(
        steps,
        &expect![[r#"
        ── 80×24
        ✗ the model `no-such-model` was not set: the model no-such-model is not
          configured; the models are: scripted

        › go

        Fine.

        session     $SESSION
        continue    crow-cli --resume $SESSION
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}

#[test]
fn terminal_newest_call_is_unfolded_above_the_composer() {
    let model = "call terminal {\"command\":\"seq 6\"}\ntext \"Counted.\"";
    let stage = TerminalStage::new(80, model).with_args(&["-y"]);
    let steps = "
        wait · ask
        type go
        key enter
        wait Counted.
        gone ⠋
        key alt-o
        wait   2
        show
        key alt-o
        gone   2
        key ctrl-d
        exit";
    stage.check(
        steps,
        &expect![[r#"
            ── 80×24
            › go

            ✓ `seq 6`
              … 3 earlier lines
              4
              5
              6

            Counted.

            ✓ `seq 6`
              1
              2
              3
              4
              5
              6

            › ▮Ask anything; / for commands, @ for files, ! for the shell
            crow · scripted · ask
            ── 80×24
            › go

            ✓ `seq 6`
              … 3 earlier lines
              4
              5
              6

            Counted.

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_image_of_the_clipboard_is_attached() {
    let stage = TerminalStage::new(80, "");
    let pixel = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
        \0\0\0\rIDATx\xdacd\xf8\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";
    let programs = stage.home.project().join("programs");
    std::fs::create_dir(&programs).expect("a directory can be made");
    std::fs::write(programs.join("pixel.png"), pixel).expect("files can be written");
    let reader = programs.join("wl-paste");
    std::fs::write(&reader, format!("#!/bin/sh\ncat {}/pixel.png\n", programs.display()))
        .expect("files can be written");
    std::fs::set_permissions(&reader, std::fs::Permissions::from_mode(0o755)).expect("modes can be set");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    let steps = "
        wait · ask
        type see
        key ctrl-v
        wait [image
        show
        key ctrl-c
        key ctrl-d
        exit";
    stage.with_env("PATH", &path).check(
        steps,
        &expect![[r#"
            ── 80×24
            › see[image clipboard]▮
            crow · scripted · ask
            ── 80×24
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_answer_is_copied_through_tmux() {
    let mut stage = TerminalStage::new(80, "text \"Fine.\"");
    let programs = stage.home.project().join("programs");
    std::fs::create_dir(&programs).expect("a directory can be made");
    let program = programs.join("tmux");
    let copied = stage.home.project().join("copied");
    let script = format!("#!/bin/sh\n[ \"$1 $2\" = 'load-buffer -w' ] && cat \"$3\" >{}\n", copied.display());
    std::fs::write(&program, script).expect("files can be written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("modes can be set");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    stage = stage.with_env("PATH", &path).with_env("TMUX", "/tmp/tmux,1,0");
    stage.play("wait · ask\ntype go\nkey enter\nwait Fine.\ntype /copy\nkey enter\nwait copied 5 characters");
    assert_eq!(std::fs::read_to_string(copied).expect("it was copied"), "Fine.");
    std::fs::write(&program, "#!/bin/sh\necho no server running; exit 1\n").expect("files can be written");
    stage.play("type /copy\nkey enter\nwait tmux did not copy the text: no server running");
}

#[test]
fn terminal_conversation_is_exported() {
    let steps = "
        wait · ask
        type go
        key enter
        wait Fine.
        gone ⠋
        type /export out.md
        key enter
        wait written
        ls
        type /export out.md
        key enter
        wait out.md already exists
        key ctrl-d
        exit";
    check(
        80,
        "text \"Fine.\"",
        steps,
        &expect![[r#"
            ── files: out.md
            ── 80×24
            › go

            Fine.

            ✗ $HOME/project/out.md already exists; choose another name

            session     $SESSION
            continue    crow-cli --resume $SESSION
            ▮
            ── exit code 0, modes left on: none
        "#]],
    );
}

#[test]
fn terminal_is_restored_when_its_window_closes() {
    let steps = "
        wait · ask
        type draft
        wait draft
        signal SIGHUP
        exit";
    check(
        60,
        "",
        steps,
        &expect![[r#"
        ── 60×24
        ▮
        ── exit code 0, modes left on: none
    "#]],
    );
}
