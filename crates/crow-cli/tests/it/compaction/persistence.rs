//! Stored compactions: other processes, crashes, replay, search.

use crow_testkit::replay;

use super::*;

/// Starts a session that is worth summarizing, far below the limit.
async fn begun(capabilities: &Value) -> Stage {
    let mut stage =
        Stage::start(capabilities, None, "call read {\"file_path\":\"a.txt\"}\ntext \"I have read it.\"")
            .await;
    stage.server.set_side_answers("text \"Notes.\"\ntext \"complete\"");
    assert_eq!(stage.say("read it: the key is 4711").await, "end_turn");
    stage.server.replace_answers("text \"One.\"\ntext \"Two.\"\ntext \"Three.\"\ntext \"Four.\"");
    assert_eq!(stage.say("good").await, "end_turn");
    stage
}

async fn ask(client: &mut FakeClient, session: &str, text: &str) {
    let id = client.prompt(session, text).await;
    client.response_to(id).await.expect("the turn ends well");
}

#[tokio::test]
async fn compaction_is_continued_by_another_process() {
    let mut stage = begun(&told()).await;
    assert_eq!(stage.say("/compact").await, "end_turn");
    let mut other = stage.elsewhere().await;
    ask(&mut other, &stage.session, "go on").await;
    let last = stage.last();
    assert!(last.contains("Notes.") && last.contains("go on") && !last.contains("a.txt has in"), "{last}");
    // The first process still has the session open; only its view has changed.
    ask(&mut other, &stage.session, "/compact undo").await;
    assert_eq!(stage.say("and here?").await, "end_turn");
    let last = stage.last();
    assert!(last.contains("a.txt has in") && last.contains("go on"), "{last}");
    ask(&mut other, &stage.session, "/clear").await;
    assert_eq!(stage.say("and after that?").await, "end_turn");
    assert_eq!(stage.last().lines().count(), 1, "{}", stage.last());
}

#[tokio::test]
async fn crash_during_the_summary_changes_nothing() {
    let mut stage = begun(&told()).await;
    stage.server.set_side_answers("hold");
    stage.client.prompt(&stage.session, "/compact").await;
    stage.server.wait_for_requests(4).await;
    let fresh = FakeClient::start_with(binary(), &stage.world.home(), told()).await;
    std::mem::replace(&mut stage.client, fresh).kill().await;
    stage.client.load_session(&stage.session, &stage.world.project()).await.expect("the session loads");
    assert_eq!(stage.say("and now?").await, "end_turn");
    stage.check(5, &[]);
    assert!(stage.last().contains("a.txt has in"), "{}", stage.last());
}

#[tokio::test]
async fn loaded_session_shows_the_whole_conversation() {
    let notices = json!({"session": {"notices": {}}});
    for capabilities in [json!({}), notices, told()] {
        let mut stage = begun(&capabilities).await;
        assert_eq!(stage.say("/compact").await, "end_turn");
        // Commands are not stored.
        stage.client.updates.retain(|(_, update)| update["content"]["text"] != "/compact");
        assert_eq!(stage.say("go on").await, "end_turn");
        let other = stage.elsewhere().await;
        replay::check(&stage.session, &stage.client, &other);
    }
    let script = r#"
        call read {"file_path":"a.txt"}
        call read {"file_path":"b.txt"}
        text "Notes."
        text "complete"
        text "Done."
    "#;
    for capabilities in [json!({}), told()] {
        let mut stage = Stage::start(&capabilities, Some(4000), script).await;
        assert_eq!(stage.say("read them").await, "end_turn");
        let other = stage.elsewhere().await;
        replay::check(&stage.session, &stage.client, &other);
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside, as a person starts it")]
async fn compacted_entries_are_found_by_search() {
    let mut stage = begun(&told()).await;
    assert_eq!(stage.say("/clear").await, "end_turn");
    let found = std::process::Command::new(binary())
        .args(["inspect", "--search", "4711"])
        .env_clear()
        .env("HOME", stage.world.home())
        .output()
        .expect("it runs");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.contains(&stage.session) && found.contains("the key is 4711"), "{found}");
}

#[tokio::test]
async fn session_is_not_read_again_after_its_own_compaction() {
    let mut stage = begun(&told()).await;
    assert_eq!(stage.say("/compact").await, "end_turn");
    let database = rusqlite::Connection::open(stage.world.home().join(".crow/crow.db")).expect("it opens");
    database.execute("UPDATE messages SET data = '' WHERE seq = 0", []).expect("it is damaged");
    assert_eq!(stage.say("go on").await, "end_turn");
    let last = stage.last();
    assert!(last.contains("Notes.") && last.contains("go on"), "{last}");
}
