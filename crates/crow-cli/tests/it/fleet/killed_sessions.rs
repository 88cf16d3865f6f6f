//! Sessions that are killed while their tasks run on workers, and opened again.

use crow_testkit::client::task_names;
use expect_test::expect;
use tokio::process::Command;

use super::worktrees::{git, make_repository};
use super::{Stage, binary, run};

/// Returns what `crow-cli inspect --tree` says about the only task of a session.
async fn inspect_task(stage: &Stage) -> String {
    let mut command = Command::new(binary());
    command.args(["inspect", "-s", &stage.session, "--tree"]).env("HOME", stage.world.home());
    let output = command.output().await.expect("it runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    let (_, state) = shown.rsplit_once("ALPHA").expect("it has the title of the task");
    state.trim().to_owned()
}

#[test]
fn task_of_a_killed_session_is_taken_up_again_and_reported_once() {
    run(async {
        let script =
            "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\",\"wait\":false}\ntext \"It has begun.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        stage
            .server
            .add_answers_for("ALPHA", "hold | call terminal {\"command\":\"touch made\"}\ntext \"Made.\"");
        assert_eq!(stage.say("go").await, "end_turn");
        worker.says("begins").await;
        stage.server.wait_for_requests(3).await;
        stage.kill_and_reopen().await;
        stage.client.wait_for_line("is taken up again").await;
        stage.server.replace_answers("text \"It is done.\"");
        stage.server.release();
        stage.client.wait_for_line("It is done.").await;
        worker.says("done").await;
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            Made.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]]
        .assert_eq(&stage.told("go"));
        expect![[r#"
            < prompt[msg-0] go
            < call call-1-0 task "Task for farm: ALPHA" completed {"prompt":"ALPHA","agent":"farm","wait":false} "Task $TASK has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To look at it: task_read. To stop it: task_cancel.\n"
            < text[msg-3] It has begun.
            < title go
            < thought[] A task on another machine is taken up again. The model gets its result when it ends.⏎
            ? farm, ALPHA: `touch made` [allow_once, allow_always, allow_project, reject_once, reject_and_tell] -> allow_once
            < call call-1-0 completed "Task $TASK goes on. Its end comes to you as a message.\n"
            < prompt[msg-4] Task $TASK (farm, ALPHA) is done.⏎⏎Made.⏎⏎The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.⏎
            < text[msg-5] It is done.
        "#]].assert_eq(&task_names::mask_task_names(&stage.client.log()));
        stage.kill_and_reopen().await;
        stage.server.replace_answers("text \"Nothing.\"");
        assert_eq!(stage.say("what is new?").await, "end_turn");
        assert_eq!(stage.told("go"), "what is new?");
        assert_eq!(stage.server.rejections(), Vec::<String>::new());
    });
}

#[test]
fn task_that_ended_while_its_session_was_killed_is_reported_once() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\"}\ntext \"It has begun.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        stage.server.add_answers_for("ALPHA", "text \"One. \" | hold | text \"Two.\"");
        stage.client.prompt(&stage.session, "go").await;
        worker.says("begins").await;
        stage.client.wait_for_line("One.").await;
        stage.client.crash().await;
        stage.server.release();
        worker.says("done").await;
        stage.server.replace_answers("text \"It is done.\"");
        stage.kill_and_reopen().await;
        stage.client.wait_for_line("It is done.").await;
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            One. Two.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]]
        .assert_eq(&stage.told("go"));
    });
}

#[test]
fn words_from_before_a_kill_are_in_the_report() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\"}\ntext \"It has begun.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        let mut worker = stage.worker("w1", &[]);
        worker.says("worker").await;
        stage.server.add_answers_for("ALPHA", "text \"One. \" | hold | text \"Two.\"");
        stage.client.prompt(&stage.session, "go").await;
        worker.says("begins").await;
        stage.client.wait_for_line("One.").await;
        stage.kill_and_reopen().await;
        stage.client.wait_for_line("is taken up again").await;
        stage.server.replace_answers("text \"It is done.\"");
        assert_eq!(inspect_task(&stage).await, "farm: running, 1 turn, 0 tokens");
        // Whether the worker knows its new parent already or not.
        stage.server.release();
        stage.client.wait_for_line("It is done.").await;
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            One. Two.

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]]
        .assert_eq(&stage.told("go"));
        assert_eq!(inspect_task(&stage).await, "farm: done, 1 turn, 0 tokens");
    });
}

#[test]
fn branch_of_a_task_comes_back_to_the_session_that_was_killed() {
    run(async {
        let script =
            "call task {\"prompt\":\"ALPHA\",\"agent\":\"farm\",\"worktree\":true}\ntext \"It has begun.\"";
        let Some(mut stage) = Stage::start(script).await else { return };
        make_repository(&stage);
        let mut worker = stage.worker("w1", &["--mode", "auto"]);
        worker.says("worker").await;
        let write = "hold | call write {\"file_path\":\"made.txt\",\"content\":\"made\\n\"}\ntext \"Made.\"";
        stage.server.add_answers_for("ALPHA", write);
        stage.client.prompt(&stage.session, "go").await;
        worker.says("begins").await;
        stage.server.wait_for_requests(2).await;
        stage.kill_and_reopen().await;
        stage.client.wait_for_line("is taken up again").await;
        stage.server.replace_answers("text \"It is done.\"");
        stage.server.release();
        stage.client.wait_for_line("It is done.").await;
        expect![[r#"
            Task $TASK (farm, ALPHA) is done.

            Made.

            Its work is on the branch crow/$TASK: look at it with `git diff HEAD...crow/$TASK`, take it over with `git merge crow/$TASK`.
             made.txt | 1 +
             1 file changed, 1 insertion(+)

            The whole of it: query_session with session_id $TASK. It has one turn; for more start a new task.
        "#]].assert_eq(&stage.told("go"));
        let branches = git(&stage.world.project(), "for-each-ref --format=%(refname:short) refs/heads/crow");
        let made = git(&stage.world.project(), &format!("show {}:made.txt", branches.trim()));
        assert_eq!(made, "made\n");
    });
}
