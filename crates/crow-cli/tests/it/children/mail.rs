//! The end of a task is told once, whoever ends in between.

use expect_test::expect;
use serde_json::json;

use super::{AUTO, Stage, crow, leashed_call, run};

/// Begins a task whose end nobody waits for; the parent's own model holds.
async fn begun() -> (Stage, u64) {
    let script = "call task {\"prompt\":\"ALPHA\",\"wait\":false}\nhold";
    let mut stage = Stage::start(&[AUTO], script).await;
    stage.server.answer_to("ALPHA", leashed_call().as_str());
    stage.server.answer_to("ALPHA", "text \"A.\"");
    let id = stage.client.prompt(&stage.session, "go").await;
    stage.leashed().await;
    (stage, id)
}

/// Looks until the end of the task is stored, of which nobody else tells.
async fn until_done(stage: &Stage) {
    while !crow(stage, &["inspect", "-s", &stage.session, "--tree"]).await.contains("done") {}
}

/// Has the task end, and kills its parent before that hears of it.
async fn ended_untold() -> Stage {
    let (mut stage, _) = begun().await;
    stage.leash.let_go();
    until_done(&stage).await;
    stage.client.crash().await;
    stage
}

/// How often a client that loads the session sees the end of the task.
async fn n_told(stage: &Stage) -> usize {
    let loaded = stage.elsewhere().await;
    let texts =
        loaded.updates.iter().map(|(_, update)| update["content"]["text"].as_str().unwrap_or_default());
    texts.filter(|text| text.contains("is done")).count()
}

#[test]
fn a_session_that_is_closed_stops_its_tasks_and_tells_of_it_when_it_is_opened() {
    run(async {
        let (mut stage, _) = begun().await;
        let named = json!({"sessionId": stage.session});
        stage.client.request("session/close", named).await.expect("it closes");
        stage.client = stage.elsewhere().await;
        stage.client.until("the model hears of it").await;
        stage.server.replace("text \"I see.\"");
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
fn what_ended_before_a_crash_is_told_once() {
    run(async {
        let mut stage = ended_untold().await;
        stage.client = stage.elsewhere().await;
        stage.client.until("the model hears of it").await;
        stage.server.replace("text \"I see.\"\ntext \"Nothing new.\"");
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
fn a_parent_at_work_hears_of_it_with_its_next_request() {
    run(async {
        let (mut stage, id) = begun().await;
        stage.leash.let_go();
        until_done(&stage).await;
        stage.server.add("text \"I see.\"");
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
fn of_two_processes_one_tells() {
    run(async {
        let mut stage = ended_untold().await;
        let mut clients = [stage.elsewhere().await, stage.elsewhere().await];
        for client in &mut clients {
            client.until("the model hears of it").await;
        }
        stage.server.replace("text \"I see.\"\ntext \"Nothing new.\"");
        for client in &mut clients {
            let id = client.prompt(&stage.session, "and now?").await;
            client.answer_to(id).await.expect("the turn ends");
        }
        assert_eq!(n_told(&stage).await, 1);
        stage.clean("two processes").await;
    });
}
