//! Transcripts with clients that have further capabilities and requests.

use expect_test::expect;

use super::check;

#[test]
fn client_terminals_are_used() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        file a.txt "apples\n"
        model: call terminal {"command":"cat a.txt; exit 3"}
        model: text "Done."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`cat a.txt; exit 3`" pending {"command":"cat a.txt; exit 3"}
            < call call-1-0 in_progress
            > terminal create term-1: (held) bash -c cat a.txt; exit 3
            < call call-1-0 in_progress terminal term-1
            < call call-1-0 failed
            > terminal release term-1
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"cat a.txt; exit 3\"}")
            model saw tool: "apples\nexit code 3"
        "#]],
    );
}

#[test]
fn command_times_out_in_the_client_terminal() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        model: call terminal {"command":"echo begun; tail -f /dev/null","timeout":1}
        model: text "Too long."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`echo begun; tail -f /dev/null`" pending {"command":"echo begun; tail -f /dev/null","timeout":1}
            < call call-1-0 in_progress
            > terminal create term-1: (held) bash -c echo begun; tail -f /dev/null
            < call call-1-0 in_progress terminal term-1
            > terminal kill term-1
            < call call-1-0 failed
            > terminal release term-1
            < text[msg-3] Too long.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"echo begun; tail -f /dev/null\",\"timeout\":1}")
            model saw tool: "begun\nstopped: it ran longer than 1 s"
        "#]],
    );
}

#[test]
fn job_runs_in_the_client_terminal() {
    check(
        r#"
        client: {"terminal": true}
        config: permissions: { mode: auto }
        model: call terminal {"command":"echo up; tail -f /dev/null","background":true}
        model: call terminal {"command":"","is_input":true}
        model: call terminal {"command":"crow","is_input":true,"job":"job-1"}
        model: call terminal {"command":"","reset":true}
        model: text "Done."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`echo up; tail -f /dev/null` in the background" pending {"command":"echo up; tail -f /dev/null","background":true}
            < call call-1-0 in_progress
            > terminal create term-1: (held) bash -c echo up; tail -f /dev/null
            < call call-1-0 in_progress terminal term-1
            < call call-1-0 completed
            < call call-3-0 terminal "Read job-1" pending {"command":"","is_input":true}
            < call call-3-0 in_progress
            < call call-3-0 completed "(nothing new)\njob-1 is running"
            < call call-5-0 terminal "job-1 ← crow" pending {"command":"crow","is_input":true,"job":"job-1"}
            < call call-5-0 in_progress
            < call call-5-0 failed "nothing can be typed to job-1: it runs in the client's terminal, where only the user can; it can be read, and ended with reset"
            < call call-7-0 terminal "End all jobs" pending {"command":"","reset":true}
            < call call-7-0 in_progress
            > terminal kill term-1
            > terminal release term-1
            < call call-7-0 completed "ended job-1 `echo up; tail -f /dev/null`"
            < text[msg-9] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"echo up; tail -f /dev/null\",\"background\":true}")
            model saw tool: "up\njob-1 is running; with is_input=true it is read (command empty) or typed to, with reset=true it is ended"
            model saw assistant: terminal("{\"command\":\"\",\"is_input\":true}")
            model saw tool: "(nothing new)\njob-1 is running"
            model saw assistant: terminal("{\"command\":\"crow\",\"is_input\":true,\"job\":\"job-1\"}")
            model saw tool: "nothing can be typed to job-1: it runs in the client's terminal, where only the user can; it can be read, and ended with"
            model saw assistant: terminal("{\"command\":\"\",\"reset\":true}")
            model saw tool: "ended job-1 `echo up; tail -f /dev/null`"
        "#]],
    );
}

#[test]
fn job_runs_in_a_local_process() {
    check(
        r#"
        client: {"_meta": {"terminal_output": true}}
        config: permissions: { mode: auto }
        model: call terminal {"command":"echo up; cat","background":true}
        model: call terminal {"command":"crow","is_input":true}
        model: call terminal {"command":"C-c","is_input":true,"job":"job-1","timeout":60}
        model: call terminal {"command":"","reset":true}
        model: text "Done."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`echo up; cat` in the background" pending {"command":"echo up; cat","background":true}
            < call call-1-0 in_progress
            < call call-1-0 completed "up\njob-1 is running; with is_input=true it is read (command empty) or typed to, with reset=true it is ended"
            < call call-3-0 terminal "job-1 ← crow" pending {"command":"crow","is_input":true}
            < call call-3-0 in_progress
            < call call-3-0 completed "crow\ncrow\njob-1 is running"
            < call call-5-0 terminal "job-1 ← C-c" pending {"command":"C-c","is_input":true,"job":"job-1","timeout":60}
            < call call-5-0 in_progress
            < call call-5-0 failed "^C\njob-1 is over: ended by signal 2"
            < call call-7-0 terminal "End all jobs" pending {"command":"","reset":true}
            < call call-7-0 in_progress
            < call call-7-0 completed "job-1 `echo up; cat` had ended already"
            < text[msg-9] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"echo up; cat\",\"background\":true}")
            model saw tool: "up\njob-1 is running; with is_input=true it is read (command empty) or typed to, with reset=true it is ended"
            model saw assistant: terminal("{\"command\":\"crow\",\"is_input\":true}")
            model saw tool: "crow\ncrow\njob-1 is running"
            model saw assistant: terminal("{\"command\":\"C-c\",\"is_input\":true,\"job\":\"job-1\",\"timeout\":60}")
            model saw tool: "^C\njob-1 is over: ended by signal 2"
            model saw assistant: terminal("{\"command\":\"\",\"reset\":true}")
            model saw tool: "job-1 `echo up; cat` had ended already"
        "#]],
    );
}

#[test]
fn output_is_streamed() {
    check(
        r#"
        client: {"_meta": {"terminal_output": true}}
        config: permissions: { mode: auto }
        model: call terminal {"command":"echo out; exit 3"}
        model: text "Done."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`echo out; exit 3`" pending {"command":"echo out; exit 3"} terminal call-1-0 [terminal call-1-0 in $HOME/project]
            < call call-1-0 in_progress terminal call-1-0
            < call call-1-0  [exit 3 null]
            < call call-1-0 failed
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"echo out; exit 3\"}")
            model saw tool: "out\nexit code 3"
        "#]],
    );
}

#[test]
fn streamed_output_has_its_place_after_a_question() {
    check(
        r#"
        client: {"_meta": {"terminal_output": true}}
        model: call terminal {"command":"touch x; exit 3"}
        model: text "Done."
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`touch x; exit 3`" pending {"command":"touch x; exit 3"} terminal call-1-0 [terminal call-1-0 in $HOME/project]
            ? `touch x; exit 3` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress terminal call-1-0
            < call call-1-0  [exit 3 null]
            < call call-1-0 failed
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"touch x; exit 3\"}")
            model saw tool: "exit code 3"
        "#]],
    );
}

#[test]
fn empty_session_is_available_to_the_next_process() {
    check(
        r#"
        model: text "Hello."
        > set thought_level high
        > mode plan
        > kill
        > load
        > set model scripted
        > prompt hello
        > end
        "#,
        &expect![[r#"
            > set thought_level high
            = mode=ask model=scripted thought_level=high
            > mode plan
            < config_option_update
            = set
            > kill
            > load
            = loaded
            > set model scripted
            = mode=plan model=scripted thought_level=high
            > prompt hello
            < config_option_update
            < text[msg-1] Hello.
            < title hello
            = end_turn
            model saw user: "hello"
        "#]],
    );
}

#[test]
fn mode_change_answers_an_open_permission_request() {
    check(
        r#"
        model: call terminal {"command":"env -u A echo ran"}
        model: text "Good."
        > answer silence
        > prompt go
        > wait ?
        > mode auto
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 terminal "`env -u A echo ran`" pending {"command":"env -u A echo ran"}
            ? `env -u A echo ran` [allow_once, allow_always, reject_once, reject_and_tell] -> silence
            > mode auto
            = set
            < takes its question back
            < mode auto
            < config_option_update
            < call call-1-0 in_progress
            < call call-1-0 completed "ran\n"
            < text[msg-4] Good.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: terminal("{\"command\":\"env -u A echo ran\"}")
            model saw tool: "ran\n"
            model saw user: "<resource uri=\"crow:environment\">\nPermission mode: auto (does everything without asking)\n</resource>"
        "#]],
    );
}

const FILES: &str = r#"client: {"fs": {"readTextFile": true, "writeTextFile": true}}"#;

#[test]
fn editor_is_asked_for_a_new_file_once_before_it_is_written() {
    check(
        &format!(
            r#"
            {FILES}
            model: call write {{"file_path":"new.txt","content":"apples\n"}}
            model: text "Done."
            > answer allow_once
            > prompt go
            > end
            "#
        ),
        &expect![[r#"
            > prompt go
            < call call-1-0 write "Write new.txt" pending {"file_path":"new.txt","content":"apples\n"}
            ? Write new.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            > fs read $HOME/project/new.txt ! Resource not found
            > fs write $HOME/project/new.txt
            > fs read $HOME/project/new.txt
            < call call-1-0 completed diff $HOME/project/new.txt null -> "apples\n"
            < text[msg-3] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: write("{\"file_path\":\"new.txt\",\"content\":\"apples\\n\"}")
            model saw tool: "created new.txt: 1 line"
        "#]],
    );
}

#[test]
fn text_that_only_the_editor_has_is_not_overwritten_before_it_was_read() {
    check(
        &format!(
            r#"
            {FILES}
            model: call write {{"file_path":"new.txt","content":"apples\n"}}
            model: call write {{"file_path":"new.txt","content":"apples\n"}}
            model: text "Done."
            > buffer new.txt "typed\n"
            > answer allow_once
            > answer allow_once
            > prompt go
            > end
            "#
        ),
        &expect![[r#"
            > prompt go
            < call call-1-0 write "Write new.txt" pending {"file_path":"new.txt","content":"apples\n"}
            ? Write new.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            > fs read $HOME/project/new.txt
            > fs read $HOME/project/new.txt
            < call call-1-0 failed "could not write new.txt: it was not read in this session; nothing was changed, and these are its lines:\n     1\ttyped\n(change a part of it, append to it, or writ"
            < call call-3-0 write "Write new.txt" pending {"file_path":"new.txt","content":"apples\n"}
            > fs read $HOME/project/new.txt
            ? Write new.txt [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-3-0 in_progress
            > fs read $HOME/project/new.txt
            > fs write $HOME/project/new.txt
            > fs read $HOME/project/new.txt
            < call call-3-0 completed diff $HOME/project/new.txt "typed\n" -> "apples\n"
            < text[msg-5] Done.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: write("{\"file_path\":\"new.txt\",\"content\":\"apples\\n\"}")
            model saw tool: "could not write new.txt: it was not read in this session; nothing was changed, and these are its lines:\n     1\ttyped\n(ch"
            model saw assistant: write("{\"file_path\":\"new.txt\",\"content\":\"apples\\n\"}")
            model saw tool: "replaced new.txt: 1 line before, 1 line now"
        "#]],
    );
}
