use expect_test::{Expect, expect};

use super::*;

/// Shows the parsed action of each call, one per line.
#[track_caller]
fn check(calls: &[Value], expect: &Expect) {
    let lines: String = calls
        .iter()
        .map(|call| match TerminalAction::parse(call.as_object().unwrap()) {
            Ok(act) => format!("{act:?}\n"),
            Err(ToolError(message)) => format!("! {message}\n"),
        })
        .collect();
    expect.assert_eq(&lines);
}

#[test]
fn arguments_are_parsed() {
    check(
        &[
            json!({"command": "make", "timeout": 7}),
            json!({"command": "make", "timeout": 0.5, "cwd": "a"}),
            json!({"command": "make", "cwd": "", "timeout": 0}),
            json!({"command": "make", "background": true, "is_input": false}),
            json!({"command": "python3"}),
            json!({"command": "1 + 1", "is_input": true, "background": true}),
            json!({"command": " ", "is_input": true, "job": "job-2"}),
            json!({"command": "", "is_input": true, "job": "", "timeout": 60}),
            json!({"job": "job-2"}),
            json!({"reset": true}),
            json!({"reset": true, "job": "job-1", "command": ""}),
            json!({"reset": true, "command": "make", "timeout": 3600}),
        ],
        &expect![[r#"
            Start(CommandRequest { command: "make", cwd: None, timeout: Some(7s), need: NotNeeded, is_background: false })
            Start(CommandRequest { command: "make", cwd: Some("a"), timeout: Some(500ms), need: NotNeeded, is_background: false })
            Start(CommandRequest { command: "make", cwd: None, timeout: None, need: NotNeeded, is_background: false })
            Start(CommandRequest { command: "make", cwd: None, timeout: None, need: NotNeeded, is_background: true })
            Start(CommandRequest { command: "python3", cwd: None, timeout: None, need: Interactive, is_background: false })
            SendInput { job: None, input: Line("1 + 1"), text: "1 + 1", wait: None }
            SendInput { job: Some("job-2"), input: Line(" "), text: " ", wait: None }
            ReadJob { job: None, wait: Some(60s) }
            ReadJob { job: Some("job-2"), wait: None }
            Reset { job: None, next_command: None }
            Reset { job: Some("job-1"), next_command: None }
            Reset { job: None, next_command: Some(CommandRequest { command: "make", cwd: None, timeout: Some(3600s), need: NotNeeded, is_background: false }) }
        "#]],
    );
}

#[test]
fn arguments_that_are_invalid_are_rejected() {
    check(
        &[
            json!({}),
            json!({"command": "  \n"}),
            json!({"command": "", "background": true}),
            json!({"command": "ls", "is_input": true, "reset": true}),
            json!({"command": "ls", "job": "job-1"}),
            json!({"command": "ls", "timeout": -5}),
            json!({"command": "ls", "timeout": 3600.5}),
            json!({"command": "ls", "timeout": 120_000}),
            json!({"command": "", "is_input": true, "timeout": 1e300}),
            json!({"command": "ls", "cwd": "a\u{0}"}),
            json!({"command": "1", "is_input": true, "cwd": "a"}),
            json!({"command": "l\u{0}s"}),
            json!({"command": "\u{0}", "is_input": true}),
            json!({"command": "x".repeat(1024 * 1024)}),
            json!({"command": ["ls"]}),
            json!({"command": "ls", "timeout": "soon"}),
        ],
        &expect![[r#"
            ! there is no command; `command` is empty
            ! there is no command; `command` is empty
            ! there is no command; `command` is empty
            ! is_input and reset exclude each other
            ! `job` names a job to read, type to or end: set is_input or reset, or leave `job` out to run a new command
            ! `timeout` must be a number of seconds, not -5
            ! `timeout` is in seconds and may be at most 3600; for what takes longer leave it out, or set background
            ! `timeout` is in seconds and may be at most 3600; for what takes longer leave it out, or set background
            ! `timeout` is in seconds and may be at most 3600; for what takes longer leave it out, or set background
            ! `cwd` contains a zero byte, which no path may
            ! `cwd` is the directory of a new command; a job stays in its own
            ! `command` contains a zero byte, which no command may
            ! `command` contains a zero byte, which no command may
            ! `command` is longer than 131071 bytes, more than the system accepts; write the text to a file and use that
            ! the arguments are invalid: invalid type: sequence, expected a string
            ! the arguments are invalid: invalid type: string "soon", expected f64
        "#]],
    );
}
