//! Reports and requests of an agent beyond the protocol, and how `run` handles them.

use expect_test::expect;

use super::check_run;

#[test]
fn run_ends_when_the_reported_work_ends() {
    check_run(
        &["reports=done"],
        "hi",
        &expect![[r#"
        exit 0
        echo: hi

        It is over.
    "#]],
    );
    check_run(
        &["reports=left"],
        "hi",
        &expect![[r#"
        exit 1
        echo: hi

        It is over.
    "#]],
    );
    check_run(
        &["reports=refused"],
        "-j hi",
        &expect![[r#"
            exit 1
            {"type":"session","session":"session-1"}
            {"type":"message","text":"echo: "}
            {"type":"message","text":"hi"}
            {"type":"tool_call","id":"call-1","title":"Edit notes.txt","status":"in_progress","input":{"path":"notes.txt"},"content":[]}
            {"type":"tool_call","id":"call-1","title":"Edit notes.txt","status":"completed","content":[{"type":"diff","path":"$HOME/project/notes.txt","old":"old\n","new":"new\n"}]}
            {"type":"message","text":"It is over."}
            {"type":"result","session":"session-1","stop_reason":"end_turn","text":"It is over.","outcome":"refused"}
        "#]],
    );
    check_run(
        &["reports=left", "asks"],
        "hi",
        &expect![[r#"
            exit 5
            echo: hi

            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}

            It is over.
            error: a tool call needed permission and there was no terminal to ask on
            hint: approve it with -y, or choose another --mode
        "#]],
    );
}

#[test]
fn permission_request_without_a_terminal_is_reported() {
    check_run(
        &["asks"],
        "hi",
        &expect![[r#"
            exit 5
            echo: hi

            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
            error: a tool call needed permission and there was no terminal to ask on
            hint: approve it with -y, or choose another --mode
        "#]],
    );
    check_run(
        &["asks", "offers"],
        "hi",
        &expect![[r#"
            exit 0
            echo: hi

            ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
        "#]],
    );
    check_run(
        &["asks", "offers"],
        "-y hi",
        &expect![[r#"
        exit 0
        echo: hi

        ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
    "#]],
    );
}

#[test]
fn rejection_without_a_terminal_is_the_exit_code_however_the_turn_ends() {
    check_run(
        &["asks", "fails"],
        "hi",
        &expect![[r#"
        exit 5
        echo: hi

        ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
        error: a tool call needed permission and there was no terminal to ask on
        hint: approve it with -y, or choose another --mode
    "#]],
    );
    check_run(
        &["asks", "gives-up"],
        "hi",
        &expect![[r#"
        exit 5
        echo: hi

        ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
        error: a tool call needed permission and there was no terminal to ask on
        hint: approve it with -y, or choose another --mode
    "#]],
    );
    check_run(
        &["asks", "mute"],
        "hi",
        &expect![[r#"
        exit 5
        echo: hi

        ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"reject_once"}}
        error: a tool call needed permission and there was no terminal to ask on
        hint: approve it with -y, or choose another --mode
    "#]],
    );
}
