//! The answers to an agent's requests: permission, files, terminals.

use crow_client::{FileAccess, PermissionChoice, ToolKind};
use expect_test::expect;

use crate::world::{check, fake_agent, run};

#[test]
fn permission_is_rejected_by_default() {
    check(
        &["asks"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        started call-2 Some("rm -rf build") Some(Execute) Some(Pending) content=Some(0)
        text "; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_once\"}}"
        updated call-2 None None Some(Failed) content=None
        end EndTurn text="echo: go; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_once\"}}" answer="; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"reject_once\"}}" tokens=None context=None
    "#]],
    );
}

#[test]
fn permission_is_given_by_a_fixed_choice() {
    check(
        &["asks"],
        |options| options.permission(PermissionChoice::AllowAlways),
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        started call-2 Some("rm -rf build") Some(Execute) Some(Pending) content=Some(0)
        text "; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_always\"}}"
        updated call-2 None None Some(Completed) content=None
        end EndTurn text="echo: go; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_always\"}}" answer="; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_always\"}}" tokens=None context=None
    "#]],
    );
}

#[test]
fn permission_is_decided_by_a_callback() {
    check(
        &["asks"],
        |options| {
            options.on_permission(|request| async move {
                assert_eq!((request.title.as_str(), request.kind), ("rm -rf build", ToolKind::Execute));
                PermissionChoice::AllowOnce
            })
        },
        &expect![[r#"
            text "echo: "
            text "go"
            started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
            updated call-1 None None Some(Completed) content=Some(1)
            started call-2 Some("rm -rf build") Some(Execute) Some(Pending) content=Some(0)
            text "; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}"
            updated call-2 None None Some(Completed) content=None
            end EndTurn text="echo: go; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}" answer="; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}" tokens=None context=None
        "#]],
    );
}

#[test]
fn permission_with_ambiguous_options_is_not_given() {
    check(
        &["asks", "twice"],
        |options| options.permission(PermissionChoice::AllowOnce),
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        started call-2 Some("rm -rf build") Some(Execute) Some(Pending) content=Some(0)
        text "; session/request_permission: {\"outcome\":{\"outcome\":\"cancelled\"}}"
        updated call-2 None None Some(Failed) content=None
        end EndTurn text="echo: go; session/request_permission: {\"outcome\":{\"outcome\":\"cancelled\"}}" answer="; session/request_permission: {\"outcome\":{\"outcome\":\"cancelled\"}}" tokens=None context=None
    "#]],
    );
}

#[test]
fn question_of_a_cancelled_turn_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let text = run(async {
        let options = fake_agent(directory.path(), &["asks"]);
        let (asked_sender, mut asked) = tokio::sync::mpsc::channel(1);
        let agent = options
            .on_permission(move |_| {
                let asked = asked_sender.clone();
                async move {
                    asked.send(()).await.unwrap();
                    std::future::pending().await
                }
            })
            .start()
            .await
            .unwrap();
        let mut turn = agent.new_session().await.unwrap().prompt("go");
        let mut is_asked = false;
        loop {
            tokio::select! {
                event = turn.next_event() => {
                    if let Some(crow_client::TurnEvent::End(outcome)) = event.unwrap() {
                        assert!(is_asked);
                        break format!("{:?} {}", outcome.stop_reason, outcome.text);
                    }
                }
                Some(()) = asked.recv() => {
                    is_asked = true;
                    turn.cancel();
                }
            }
        }
    });
    expect!["Cancelled echo: go; session/request_permission: error 0: it was cancelled"].assert_eq(&text);
}

#[test]
fn files_inside_the_directory_are_served() {
    check(
        &["reads=$CWD/a.txt", "writes=$CWD/b.txt"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; fs/read_text_file: {\"content\":\"one\\ntwo\\n\"}"
        text "; fs/write_text_file: {}"
        end EndTurn text="echo: go; fs/read_text_file: {\"content\":\"one\\ntwo\\n\"}; fs/write_text_file: {}" answer="; fs/read_text_file: {\"content\":\"one\\ntwo\\n\"}; fs/write_text_file: {}" tokens=None context=None
    "#]],
    );
    check(
        &["reads=/etc/hostname", "writes=$CWD/../b.txt", "reads=$CWD/none"],
        |options| options,
        &expect![[r#"
            text "echo: "
            text "go"
            started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
            updated call-1 None None Some(Completed) content=Some(1)
            text "; fs/read_text_file: error -32603: /etc/hostname is outside of $CWD, the directory of the session"
            text "; fs/write_text_file: error -32603: $CWD/../b.txt is outside of $CWD, the directory of the session"
            end EndTurn text="echo: go; fs/read_text_file: error -32603: /etc/hostname is outside of $CWD, the directory of the session; fs/write_text_file: error -32603: $CWD/../b.txt is outside of $CWD, the directory of the session" answer="; fs/read_text_file: error -32603: /etc/hostname is outside of $CWD, the directory of the session; fs/write_text_file: error -32603: $CWD/../b.txt is outside of $CWD, the directory of the session" tokens=None context=None
        "#]],
    );
}

#[test]
fn files_can_be_turned_off() {
    check(
        &["reads=$CWD/a.txt", "writes=$CWD/b.txt"],
        |options| options.files(FileAccess::Read),
        &expect![[r#"
            text "echo: "
            text "go"
            started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
            updated call-1 None None Some(Completed) content=Some(1)
            text "; fs/read_text_file: {\"content\":\"one\\ntwo\\n\"}"
            text "; fs/write_text_file: error -32603: this client does not provide writing files"
            end EndTurn text="echo: go; fs/read_text_file: {\"content\":\"one\\ntwo\\n\"}; fs/write_text_file: error -32603: this client does not provide writing files" answer="; fs/read_text_file: {\"content\":\"one\\ntwo\\n\"}; fs/write_text_file: error -32603: this client does not provide writing files" tokens=None context=None
        "#]],
    );
    check(
        &["reads=$CWD/a.txt"],
        |options| options.files(FileAccess::None),
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; fs/read_text_file: error -32603: this client does not provide files"
        end EndTurn text="echo: go; fs/read_text_file: error -32603: this client does not provide files" answer="; fs/read_text_file: error -32603: this client does not provide files" tokens=None context=None
    "#]],
    );
}

#[test]
fn commands_run_in_the_directory() {
    check(
        &["terminal=pwd; echo é >&2; exit 3"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; terminal/create: {\"terminalId\":\"terminal-1\"}"
        text "; terminal/wait_for_exit: {\"exitCode\":3}"
        text "; terminal/output: {\"output\":\"$CWD\\né\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":3}}"
        text "; terminal/release: {}"
        end EndTurn text="echo: go; terminal/create: {\"terminalId\":\"terminal-1\"}; terminal/wait_for_exit: {\"exitCode\":3}; terminal/output: {\"output\":\"$CWD\\né\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":3}}; terminal/release: {}" answer="; terminal/create: {\"terminalId\":\"terminal-1\"}; terminal/wait_for_exit: {\"exitCode\":3}; terminal/output: {\"output\":\"$CWD\\né\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":3}}; terminal/release: {}" tokens=None context=None
    "#]],
    );
    check(
        &["line", "terminal=echo one && echo two"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; terminal/create: {\"terminalId\":\"terminal-1\"}"
        text "; terminal/wait_for_exit: {\"exitCode\":0}"
        text "; terminal/output: {\"output\":\"one\\ntwo\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":0}}"
        text "; terminal/release: {}"
        end EndTurn text="echo: go; terminal/create: {\"terminalId\":\"terminal-1\"}; terminal/wait_for_exit: {\"exitCode\":0}; terminal/output: {\"output\":\"one\\ntwo\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":0}}; terminal/release: {}" answer="; terminal/create: {\"terminalId\":\"terminal-1\"}; terminal/wait_for_exit: {\"exitCode\":0}; terminal/output: {\"output\":\"one\\ntwo\\n\",\"truncated\":false,\"exitStatus\":{\"exitCode\":0}}; terminal/release: {}" tokens=None context=None
    "#]],
    );
    check(
        &["terminal=kill -KILL $$"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; terminal/create: {\"terminalId\":\"terminal-1\"}"
        text "; terminal/wait_for_exit: {\"signal\":\"SIGKILL\"}"
        text "; terminal/output: {\"output\":\"\",\"truncated\":false,\"exitStatus\":{\"signal\":\"SIGKILL\"}}"
        text "; terminal/release: {}"
        end EndTurn text="echo: go; terminal/create: {\"terminalId\":\"terminal-1\"}; terminal/wait_for_exit: {\"signal\":\"SIGKILL\"}; terminal/output: {\"output\":\"\",\"truncated\":false,\"exitStatus\":{\"signal\":\"SIGKILL\"}}; terminal/release: {}" answer="; terminal/create: {\"terminalId\":\"terminal-1\"}; terminal/wait_for_exit: {\"signal\":\"SIGKILL\"}; terminal/output: {\"output\":\"\",\"truncated\":false,\"exitStatus\":{\"signal\":\"SIGKILL\"}}; terminal/release: {}" tokens=None context=None
    "#]],
    );
}

#[test]
fn terminals_are_limited_and_can_be_turned_off() {
    check(
        &["hoards=100"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; it has 64 terminals"
        end EndTurn text="echo: go; it has 64 terminals" answer="; it has 64 terminals" tokens=None context=None
    "#]],
    );
    check(
        &["terminal=pwd"],
        |options| options.terminals(false),
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        text "; terminal/create: error -32603: this client does not provide terminals"
        end EndTurn text="echo: go; terminal/create: error -32603: this client does not provide terminals" answer="; terminal/create: error -32603: this client does not provide terminals" tokens=None context=None
    "#]],
    );
}
