use expect_test::expect;

use super::{action_line, check, event, start_in_phase};

#[test]
fn failure_is_explained_by_the_exit() {
    check(
        "",
        "new: broken it could not be started: no such file | exit",
        &expect![[r#"
        start -> timer Turn 1800s, Connect
        broken it could not be started: no such file -> EndProgram(ShutDown)
        exit -> CloseCommands, finish: Failed: it could not be started: no such file, Release
        over
    "#]],
    );
    check(
        "",
        "new: disconnected the agent has disconnected | exit 3",
        &expect![[r#"
        start -> timer Turn 1800s, Connect
        disconnected the agent has disconnected -> EndProgram(AwaitExit)
        exit 3 -> CloseCommands, finish: Failed: the agent has disconnected. It ended with exit code 3., Release
        over
    "#]],
    );
    check(
        "",
        "prompting: disconnected it broke | killed",
        &expect![[r#"
        disconnected it broke -> HandleQueuedMessages, EndProgram(AwaitExit)
        killed -> CloseCommands, finish: Failed: it broke. It was ended by signal 9. It printed a line that is not a protocol message: Segmentation fault
        The end of its stderr:
        out of memory, Release
        over
    "#]],
    );
    check(
        "",
        "opening: failed it printed: Segmentation fault | killed",
        &expect![[r#"
        failed it printed: Segmentation fault -> EndProgram(ShutDown)
        killed -> CloseCommands, finish: Failed: it printed: Segmentation fault. It was ended by signal 9.
        The end of its stderr:
        out of memory, Release
        over
    "#]],
    );
}

#[test]
fn stop_reason_decides_the_outcome() {
    for reason in ["end_turn", "max_tokens", "max_requests", "refusal", "stopped"] {
        let expected = match reason {
            "end_turn" => expect![[r#"
                CloseCommands
                finish: Completed
                Release"#]],
            "max_tokens" => expect![[r#"
                CloseCommands
                finish: Completed: its answer was truncated at the output limit
                Release"#]],
            "max_requests" => expect![[r#"
                CloseCommands
                finish: Completed: its turn reached a limit before it was done
                Release"#]],
            "refusal" => expect![[r#"
                CloseCommands
                finish: Failed: its model refused
                Release"#]],
            _ => expect![[r#"
                CloseCommands
                finish: Failed: it stopped on its own, as some agents do after a rejected request
                Release"#]],
        };
        let mut machine = start_in_phase("worktree", "prompting");
        machine.handle_event(event(reason));
        let actions = machine.handle_event(event("exit"));
        expected.assert_eq(&actions.iter().map(action_line).collect::<Vec<_>>().join("\n"));
    }
}
