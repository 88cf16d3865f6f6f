//! Successful tasks, as transcripts.

use expect_test::expect;

use serde_json::json;

use super::{AUTO, Stage, check, run};

#[test]
fn crow_child_asks_in_the_session_of_its_parent() {
    check(
        &[],
        r#"
        file b.txt "old\n"
        model: text "I have it done." | call task {"prompt":"ALPHA: make it new","title":"renew b"}
        child ALPHA: text "I look." | call read {"file_path":"b.txt"} | usage 100 10
        child ALPHA: call edit {"file_path":"b.txt","old_string":"old","new_string":"new"} | usage 200 10
        child ALPHA: text "It is new." | usage 300 10
        model: text "All done."
        > prompt go
        > end
        > run inspect -s $SESSION --tree
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt go
            < text[msg-1] I have it done.
            < call call-1-0 task "Task: renew b" pending {"prompt":"ALPHA: make it new","title":"renew b"}
            < call call-1-0 in_progress
            ? renew b: Edit b.txt [allow_once, allow_always, allow_project, reject_once] -> allow_once
            < call call-1-0 completed "Task $TASK (renew b) is done.\n\nIt is new.\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/b.txt (+1 -1)\n\nIt used 630 tokens.\n\nThe whole of it: query_" diff $HOME/project/b.txt "old\n" -> "new\n"
            < text[msg-3] All done.
            < title go
            = end_turn
            $ SESSION UPDATED MESSAGES MODEL TITLE TASK COPY OF
            $ $SESSION just now 4 scripted go
            $ └ $TASK just now 6 scripted renew b crow: done, 1 turn, 630 tokens
            > kill
            > load
            < prompt[msg-0] go
            < text[msg-1] I have it done.
            < call call-1-0 task "Task: renew b" completed {"prompt":"ALPHA: make it new","title":"renew b"} "Task $TASK (renew b) is done.\n\nIt is new.\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/b.txt (+1 -1)\n\nIt used 630 tokens.\n\nThe whole of it: query_" diff $HOME/project/b.txt "old\n" -> "new\n"
            < text[msg-3] All done.
            < title go
            = loaded
            model saw user: "go"
            model saw assistant: "I have it done." task("{\"prompt\":\"ALPHA: make it new\",\"title\":\"renew b\"}")
            model saw tool: "Task $TASK (renew b) is done.\n\nIt is new.\n\nIt changed 1 file with its tools (+1 -1):\n  $HOME/project/b.txt (+1 -1)\n\nIt u"
        "#]],
    );
}

#[test]
fn external_agent_needs_permission_first() {
    check(
        &["usage", "asks"],
        r#"
        model: call task {"prompt":"hello you","agent":"other","title":"greet"}
        model: text "It greets."
        > prompt go
        > end
        > run inspect -s $SESSION --tree
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: greet" pending {"prompt":"hello you","agent":"other","title":"greet"}
            ? Task for other: greet [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 in_progress
            ? other, greet: rm -rf build [allow_once, allow_always, reject_once] -> allow_once
            < call call-1-0 completed "Task $TASK (other, greet) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools (" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] It greets.
            < title go
            = end_turn
            $ SESSION UPDATED MESSAGES MODEL TITLE TASK COPY OF
            $ $SESSION just now 4 scripted go
            $ └ $TASK just now 2 greet other: done, 1 turn, 1234 tokens
            > kill
            > load
            < prompt[msg-0] go
            < call call-1-0 task "Task for other: greet" completed {"prompt":"hello you","agent":"other","title":"greet"} "Task $TASK (other, greet) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools (" diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] It greets.
            < title go
            = loaded
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello you\",\"agent\":\"other\",\"title\":\"greet\"}")
            model saw tool: "Task $TASK (other, greet) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_onc"
        "#]],
    );
}

#[test]
fn tasks_of_one_reply_run_concurrently() {
    check(
        &[],
        r#"
        model: call task {"prompt":"ALPHA"} | call task {"prompt":"BETA"}
        child ALPHA: hold | text "A."
        child BETA: hold | text "B."
        model: text "Both."
        > prompt go
        > asked 3
        > release
        > release
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA"}
            < call call-1-1 task "Task: BETA" pending {"prompt":"BETA"}
            < call call-1-0 in_progress
            < call call-1-1 in_progress
            < call call-1-0 completed "Task $TASK (ALPHA) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < call call-1-1 completed "Task $TASK (BETA) is done.\n\nB.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-4] Both.
            < title go
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\"}") task("{\"prompt\":\"BETA\"}")
            model saw tool: "Task $TASK (ALPHA) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            model saw tool: "Task $TASK (BETA) is done.\n\nB.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
        "#]],
    );
}

#[test]
fn task_end_begins_a_turn_of_an_idle_parent() {
    check(
        &[],
        r#"
        model: call task {"prompt":"ALPHA","wait":false}
        model: text "It works."
        child ALPHA: hold | text "A."
        model: text "I heard of it."
        > prompt go
        > end
        > asked 3
        > release
        > wait I heard of it.
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA","wait":false}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: task_read. To stop it: task_cancel.\n"
            < text[msg-3] It works.
            < title go
            = end_turn
            < prompt[msg-4] Task $TASK (ALPHA) is done.⏎⏎A.⏎⏎The whole of it: query_session with session_id $TASK. To go on with it: task_send.⏎
            < text[msg-5] I heard of it.
            > kill
            > load
            < prompt[msg-0] go
            < call call-1-0 task "Task: ALPHA" completed {"prompt":"ALPHA","wait":false} "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: task_read. To stop it: task_cancel.\n"
            < text[msg-3] It works.
            < prompt[msg-4] Task $TASK (ALPHA) is done.⏎⏎A.⏎⏎The whole of it: query_session with session_id $TASK. To go on with it: task_send.⏎
            < text[msg-5] I heard of it.
            < title go
            = loaded
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\",\"wait\":false}")
            model saw tool: "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: t"
            model saw assistant: "It works."
            model saw user: "Task $TASK (ALPHA) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a transcript")]
fn crow_child_is_continued() {
    check(
        &["asks"],
        r#"
        config: permissions: { mode: auto }
        model: call task {"prompt":"ALPHA","title":"first"}
        child ALPHA: text "A."
        model: text "I see."
        > prompt go
        > end
        > model call task_send {"task":"$TASK1","prompt":"more of it"}
        child ALPHA: text "More A."
        > model text "Told."
        > prompt go on
        > end
        > model call task_send {"task":"$TASK1","prompt":"again"}
        child ALPHA: text "Still A."
        > model text "Told again."
        > kill
        > load
        > prompt once more
        > end
        > prompt /tasks
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: first" pending {"prompt":"ALPHA","title":"first"}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK (first) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-3] I see.
            < title go
            = end_turn
            > prompt go on
            < call call-5-0 task_send "Message task $TASK" pending {"task":"$TASK","prompt":"more of it"}
            < call call-5-0 in_progress
            < call call-5-0 completed "Task $TASK (first) is done.\n\nMore A.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-7] Told.
            = end_turn
            > kill
            > load
            < prompt[msg-0] go
            < call call-1-0 task "Task: first" completed {"prompt":"ALPHA","title":"first"} "Task $TASK (first) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-3] I see.
            < prompt[msg-4] go on
            < call call-5-0 task_send "Message task $TASK" completed {"task":"$TASK","prompt":"more of it"} "Task $TASK (first) is done.\n\nMore A.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-7] Told.
            < title go
            = loaded
            > prompt once more
            < call call-9-0 task_send "Message task $TASK" pending {"task":"$TASK","prompt":"again"}
            < call call-9-0 in_progress
            < call call-9-0 completed "Task $TASK (first) is done.\n\nStill A.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-11] Told again.
            = end_turn
            > prompt /tasks
            < text[note-1] - `$TASK` crow: first — done⏎
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\",\"title\":\"first\"}")
            model saw tool: "Task $TASK (first) is done.\n\nA.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            model saw assistant: "I see."
            model saw user: "go on"
            model saw assistant: task_send("{\"task\":\"$TASK\",\"prompt\":\"more of it\"}")
            model saw tool: "Task $TASK (first) is done.\n\nMore A.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send."
            model saw assistant: "Told."
            model saw user: "once more"
            model saw assistant: task_send("{\"task\":\"$TASK\",\"prompt\":\"again\"}")
            model saw tool: "Task $TASK (first) is done.\n\nStill A.\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send"
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a transcript")]
fn external_agent_is_continued() {
    check(
        &["asks"],
        r#"
        config: permissions: { mode: auto }
        model: call task {"prompt":"hello","agent":"other","title":"second"}
        model: text "I see."
        > prompt go
        > end
        > model call task_send {"task":"$TASK1","prompt":"more of it"}
        > model text "Told."
        > prompt go on
        > end
        > model call task_send {"task":"$TASK1","prompt":"again"}
        > model text "Told again."
        > kill
        > load
        > prompt once more
        > end
        > prompt /tasks
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task for other: second" pending {"prompt":"hello","agent":"other","title":"second"}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools " diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] I see.
            < title go
            = end_turn
            > prompt go on
            < call call-5-0 task_send "Message task $TASK" pending {"task":"$TASK","prompt":"more of it"}
            < call call-5-0 in_progress
            < call call-5-0 completed "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools " diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-7] Told.
            = end_turn
            > kill
            > load
            < prompt[msg-0] go
            < call call-1-0 task "Task for other: second" completed {"prompt":"hello","agent":"other","title":"second"} "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools " diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-3] I see.
            < prompt[msg-4] go on
            < call call-5-0 task_send "Message task $TASK" completed {"task":"$TASK","prompt":"more of it"} "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools " diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-7] Told.
            < title go
            = loaded
            > prompt once more
            < call call-9-0 task_send "Message task $TASK" pending {"task":"$TASK","prompt":"again"}
            < call call-9-0 in_progress
            < call call-9-0 completed "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_once\"}}\n\nIt changed 1 file with its tools " diff $HOME/project/notes.txt "old\n" -> "new\n"
            < text[msg-11] Told again.
            = end_turn
            > prompt /tasks
            < text[note-1] - `$TASK` other: second — done⏎
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"hello\",\"agent\":\"other\",\"title\":\"second\"}")
            model saw tool: "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_on"
            model saw assistant: "I see."
            model saw user: "go on"
            model saw assistant: task_send("{\"task\":\"$TASK\",\"prompt\":\"more of it\"}")
            model saw tool: "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_on"
            model saw assistant: "Told."
            model saw user: "once more"
            model saw assistant: task_send("{\"task\":\"$TASK\",\"prompt\":\"again\"}")
            model saw tool: "Task $TASK (other, second) is done.\n\n; session/request_permission: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow_on"
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a transcript")]
fn task_is_steered_read_and_cancelled() {
    check(
        &[],
        r#"
        model: call task {"prompt":"ALPHA","wait":false}
        child ALPHA: text "Half of it" | call read {"file_path":"a.txt"}
        child ALPHA: hold | call read {"file_path":"b.txt"}
        child ALPHA: call read {"file_path":"c.txt"}
        child ALPHA: call read {"file_path":"d.txt"}
        child ALPHA: call read {"file_path":"e.txt"}
        child ALPHA: call read {"file_path":"f.txt"}
        child ALPHA: call read {"file_path":"g.txt"}
        child ALPHA: call read {"file_path":"h.txt"}
        child ALPHA: call read {"file_path":"i.txt"}
        child ALPHA: call read {"file_path":"j.txt"}
        child ALPHA: hold
        model: text "It works."
        > prompt go
        > end
        > asked 4
        > run inspect -s $SESSION --tree
        > model call task_read {"task":"$TASK1"}
        > model call task_send {"task":"$TASK1","prompt":"hurry"}
        > model call task_cancel {"task":"$TASK1"}
        > model text "I stopped it."
        > prompt stop it
        > wait call-7-0 in_progress
        > release
        > end
        > prompt /tasks
        > end
        "#,
        &expect![[r#"
            > prompt go
            < call call-1-0 task "Task: ALPHA" pending {"prompt":"ALPHA","wait":false}
            < call call-1-0 in_progress
            < call call-1-0 completed "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: task_read. To stop it: task_cancel.\n"
            < text[msg-3] It works.
            < title go
            = end_turn
            $ SESSION UPDATED MESSAGES MODEL TITLE TASK COPY OF
            $ $SESSION just now 4 scripted go
            $ └ $TASK just now 3 scripted ALPHA crow: running, 1 turn, 0 tokens
            > prompt stop it
            < call call-5-0 task_read "Read task $TASK" pending {"task":"$TASK"}
            < call call-5-0 in_progress
            < call call-5-0 completed "Task $TASK (crow: ALPHA): running.\n\n✗ Read a.txt\nHalf of it\n"
            < call call-7-0 task_send "Message task $TASK" pending {"task":"$TASK","prompt":"hurry"}
            < call call-7-0 in_progress
            < call call-7-0 completed "The message was sent to task $TASK, which is running.\n"
            < call call-9-0 task_cancel "Cancel task $TASK" pending {"task":"$TASK"}
            < call call-9-0 in_progress
            < call call-9-0 completed "Task $TASK (ALPHA) was cancelled.\n\nHalf of it\n\nThe whole of it: query_session with session_id $TASK. To go on with it: task_send.\n"
            < text[msg-11] I stopped it.
            = end_turn
            > prompt /tasks
            < text[note-1] - `$TASK` crow: ALPHA — cancelled⏎
            = end_turn
            model saw user: "go"
            model saw assistant: task("{\"prompt\":\"ALPHA\",\"wait\":false}")
            model saw tool: "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: t"
            model saw assistant: "It works."
            model saw user: "stop it"
            model saw assistant: task_read("{\"task\":\"$TASK\"}")
            model saw tool: "Task $TASK (crow: ALPHA): running.\n\n✗ Read a.txt\nHalf of it\n"
            model saw assistant: task_send("{\"task\":\"$TASK\",\"prompt\":\"hurry\"}")
            model saw tool: "The message was sent to task $TASK, which is running.\n"
            model saw assistant: task_cancel("{\"task\":\"$TASK\"}")
            model saw tool: "Task $TASK (ALPHA) was cancelled.\n\nHalf of it\n\nThe whole of it: query_session with session_id $TASK. To go on with it: t"
        "#]],
    );
}

#[test]
fn worktree_of_another_repository_is_recreated_from_it() {
    run(async {
        let mut stage = Stage::start(&[AUTO], "").await;
        let project = stage.world.project();
        for folder in [project.clone(), project.join("other")] {
            std::fs::create_dir_all(&folder).expect("a folder can be made");
            let name = folder.file_name().expect("it has a name").to_string_lossy().into_owned();
            let makes = "git init -q . && echo $0 >whose && git add whose && git -c user.name=a -c user.email=a@b commit -qm x";
            let made =
                tokio::process::Command::new("sh").args(["-c", makes, &name]).current_dir(&folder).status();
            assert!(made.await.expect("it runs").success());
        }
        let task = json!({"prompt": "ALPHA", "worktree": true, "cwd": project.join("other")});
        stage.server.replace_answers(format!("call task {task}\ntext \"Heard.\"").as_str());
        stage.server.add_answers_for("ALPHA", "text \"A.\"");
        assert_eq!(stage.say("go").await, "end_turn");
        let more = json!({"task": stage.task(), "prompt": "more"});
        stage.server.replace_answers(format!("call task_send {more}\ntext \"Told.\"").as_str());
        stage.server.add_answers_for("ALPHA", "call read {\"file_path\":\"whose\"}\ntext \"Read.\"");
        assert_eq!(stage.say("go on").await, "end_turn");
        assert!(stage.told("ALPHA").contains("other"), "{}", stage.told("ALPHA"));
        stage.clean("another repository").await;
    });
}
