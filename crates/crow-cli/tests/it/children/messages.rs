//! The result of a task is delivered once, whichever process ends in between.

use expect_test::expect;
use serde_json::json;

use super::{AUTO, Stage, crow, leashed_call, run};

/// Starts a task without waiting for its result; the parent's model pauses.
async fn begun() -> (Stage, u64) {
    let script = "call task {\"prompt\":\"ALPHA\",\"wait\":false}\nhold";
    let mut stage = Stage::start(&[AUTO], script).await;
    stage.server.add_answers_for("ALPHA", leashed_call().as_str());
    stage.server.add_answers_for("ALPHA", "text \"A.\"");
    let id = stage.client.prompt(&stage.session, "go").await;
    stage.leashed().await;
    // The parent's second request is open before anything ends.
    stage.server.wait_for_requests(3).await;
    (stage, id)
}

/// Polls until the result of the task is stored, for which there is no event.
async fn until_done(stage: &Stage) {
    while !crow(stage, &["inspect", "-s", &stage.session, "--tree"]).await.contains("done") {}
}

/// Ends the task, and kills its parent before it learns of that.
async fn ended_untold() -> Stage {
    let (mut stage, _) = begun().await;
    stage.leash.release();
    until_done(&stage).await;
    stage.client.crash().await;
    stage
}

/// Returns the number of deliveries that a client receives when it loads the session.
async fn n_told(stage: &Stage) -> usize {
    let loaded = stage.elsewhere().await;
    let texts =
        loaded.updates.iter().map(|(_, update)| update["content"]["text"].as_str().unwrap_or_default());
    texts.filter(|text| text.contains("is done")).count()
}

#[test]
fn closed_session_stops_its_tasks_and_reports_them_when_loaded() {
    run(async {
        let (mut stage, _) = begun().await;
        let named = json!({"sessionId": stage.session});
        stage.client.request("session/close", named).await.expect("it closes");
        stage.client = stage.elsewhere().await;
        stage.client.wait_for_line("The model gets the result").await;
        stage.server.replace_answers("text \"I see.\"");
        assert_eq!(stage.say("and now?").await, "end_turn");
        expect![[r#"
            and now?
            Task $TASK (ALPHA) was cancelled.

            It said nothing.

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]]
        .assert_eq(&stage.told("go"));
        stage.clean("closed").await;
    });
}

#[test]
fn task_that_ended_before_a_crash_is_reported_once() {
    run(async {
        let mut stage = ended_untold().await;
        stage.client = stage.elsewhere().await;
        stage.client.wait_for_line("The model gets the result").await;
        stage.server.replace_answers("text \"I see.\"\ntext \"Nothing new.\"");
        assert_eq!(stage.say("and now?").await, "end_turn");
        expect![[r#"
            and now?
            Task $TASK (ALPHA) is done.

            A.

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]]
        .assert_eq(&stage.told("go"));
        assert_eq!(stage.say("and then?").await, "end_turn");
        assert_eq!(stage.told("go"), "and then?");
        assert_eq!(n_told(&stage).await, 1);
        stage.clean("a crash").await;
    });
}

#[test]
fn running_parent_gets_the_report_with_its_next_request() {
    run(async {
        let (mut stage, id) = begun().await;
        stage.leash.release();
        until_done(&stage).await;
        stage.server.add_answers("text \"I see.\"");
        stage.server.release();
        assert_eq!(stage.end_of(id).await, "end_turn");
        assert!(stage.client.log().contains("I see."), "it heard of it in the same turn");
        expect![[r#"
            Task $TASK (ALPHA) is done.

            A.

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]]
        .assert_eq(&stage.told("go"));
        assert_eq!(n_told(&stage).await, 1);
        stage.clean("at work").await;
    });
}

#[test]
fn report_is_delivered_by_one_of_two_processes() {
    run(async {
        let mut stage = ended_untold().await;
        let mut clients = [stage.elsewhere().await, stage.elsewhere().await];
        for client in &mut clients {
            client.wait_for_line("The model gets the result").await;
        }
        stage.server.replace_answers("text \"I see.\"\ntext \"Nothing new.\"");
        for client in &mut clients {
            let id = client.prompt(&stage.session, "and now?").await;
            client.response_to(id).await.expect("the turn ends");
        }
        assert_eq!(n_told(&stage).await, 1);
        stage.clean("two processes").await;
    });
}

#[test]
fn turn_that_waits_for_tasks_is_cancelled() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"wait\":false}\ntext \"I wait for it.\"";
        let mut stage = Stage::start(&[AUTO], script).await;
        stage.server.add_answers_for("ALPHA", leashed_call().as_str());
        let prompt = json!({
            "sessionId": stage.session, "prompt": [{"type": "text", "text": "go"}],
            "_meta": {"crow": {"until": "tasks_ended"}},
        });
        let id = stage.client.send("session/prompt", prompt).await;
        stage.leashed().await;
        stage.client.wait_for_line("I wait for it.").await;
        stage.cancel().await;
        assert_eq!(stage.end_of(id).await, "cancelled");
        stage.leash.wait_until_gone("its parent was cancelled").await;
        stage.server.replace_answers("text \"Here I am.\"");
        assert_eq!(stage.say("once more").await, "end_turn");
        // The task, the wait, the command and the new prompt: the cancellation caused no request.
        assert_eq!(stage.server.n_requests(), 4);
        stage.clean("waiting").await;
    });
}

#[test]
fn status_of_a_lost_task_reports_its_end() {
    run(async {
        let dies = "read go <fails; echo the wings fell off >&2; exit 3";
        let agents = json!({"other": {"command": "sh", "args": ["-c", dies]}});
        let gives = r#"call task {"prompt":"hello","agent":"other","wait":false}"#;
        let script = format!("{gives} | {}", leashed_call());
        let mut stage = Stage::start(&[AUTO, &format!("agent_servers: {agents}")], &script).await;
        let fails = stage.world.project().join("fails");
        nix::unistd::mkfifo(&fails, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.leashed().await;
        stage.client.wait_for_line("has begun").await;
        let task = stage.task();
        stage.server.add_answers(format!("hold | call task_read {}", json!({"task": task})).as_str());
        stage.server.add_answers("text \"It failed.\"\ntext \"Nothing new.\"");
        stage.leash.release();
        stage.server.wait_for_requests(2).await;
        // The result arrives while the model is answering.
        tokio::fs::write(&fails, "go\n").await.expect("the pipe takes a word");
        while !crow(&stage, &["inspect", "-s", &stage.session, "--tree"]).await.contains("failed") {}
        stage.server.release();
        assert_eq!(stage.end_of(id).await, "end_turn");
        expect![[r#"
            Task $TASK (other, hello) failed: the agent has disconnected. It ended with exit code 3.
            The end of its stderr:
            the wings fell off

            It said nothing.

            Its agent opened no session, so it cannot go on; start a new task.
        "#]]
        .assert_eq(&stage.told("go"));
        assert_eq!(stage.say("and then?").await, "end_turn");
        assert_eq!(stage.told("go"), "and then?");
        stage.clean("a look").await;
    });
}

#[test]
fn deliveries_wait_while_another_process_writes() {
    run(async {
        let script = "call task {\"prompt\":\"ALPHA\",\"wait\":false}\ntext \"It works.\"";
        let mut stage = Stage::start(&[AUTO], script).await;
        stage.server.add_answers_for("ALPHA", leashed_call().as_str());
        stage.server.add_answers_for("ALPHA", "text \"A.\"");
        assert_eq!(stage.say("go").await, "end_turn");
        stage.leashed().await;
        let mut other = stage.elsewhere().await;
        stage.server.replace_answers("hold | text \"Slow.\"");
        let id = other.prompt(&stage.session, "meanwhile").await;
        stage.server.wait_for_requests(4).await;
        stage.leash.release();
        stage.client.wait_for_line("in use in another process").await;
        // A process that retries forever would have retried often by the time of an answer.
        for _ in 0..20 {
            stage.client.request("session/list", json!({})).await.expect("it lists");
        }
        let n_tried = stage.client.log().matches("in use in another process").count();
        assert_eq!(n_tried, 1);
        stage.server.release();
        other.response_to(id).await.expect("the turn ends");
        stage.server.replace_answers("text \"I see.\"");
        assert_eq!(stage.say("and now?").await, "end_turn");
        assert!(stage.told("go").contains("is done"), "{}", stage.told("go"));
        assert_eq!(n_told(&stage).await, 1);
        stage.clean("two processes").await;
    });
}
