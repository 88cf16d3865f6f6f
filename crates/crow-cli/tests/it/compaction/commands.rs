//! The user's commands `/compact`, `/compact undo` and `/clear`.

use super::*;

/// Sends a prompt, lets the model read a file, and sends another prompt; all far below the limit.
async fn begun(capabilities: &Value) -> Stage {
    let script = "call read {\"file_path\":\"a.txt\"}\ntext \"I have read it.\"\ntext \"Fine.\"";
    let mut stage = Stage::start(capabilities, None, script).await;
    stage.server.set_side_answers("text \"Notes.\"\ntext \"complete\"");
    assert_eq!(stage.say("read it: the key is 4711").await, "end_turn");
    assert_eq!(stage.say("good").await, "end_turn");
    stage.server.replace_answers("text \"One.\"\ntext \"Two.\"\ntext \"Three.\"\ntext \"Four.\"");
    stage
}

/// Returns the last message of the agent.
fn said(client: &FakeClient) -> String {
    let texts =
        client.updates.iter().rev().filter(|(_, update)| update["sessionUpdate"] == "agent_message_chunk");
    let mut texts = texts.filter_map(|(_, update)| update["content"]["text"].as_str());
    texts.next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn compact_is_undone() {
    let mut stage = begun(&told()).await;
    assert_eq!(stage.say("/compact the port numbers").await, "end_turn");
    stage.check(5, &["in_progress", "completed"]);
    let sum_up = &stage.server.requests()[3];
    assert!(sum_up["messages"][0].to_string().contains("attention to this above all: the port numbers"));
    assert_eq!(said(&stage.client), "Fine.", "the client shows the compaction itself");
    assert!(stage.client.log().contains(" \"Compacted: "), "{}", stage.client.log());
    assert_eq!(stage.say("and now?").await, "end_turn");
    let last = stage.last();
    assert!(last.contains(FOREWORD) && last.contains("Notes.") && !last.contains("a.txt has in"), "{last}");
    assert!(
        last.contains("the key is 4711") && last.contains("Fine.") && last.contains("and now?"),
        "{last}"
    );

    assert_eq!(stage.say("/compact undo").await, "end_turn");
    assert!(said(&stage.client).starts_with("Compaction undone: "), "{}", said(&stage.client));
    assert_eq!(stage.say("all there?").await, "end_turn");
    let last = stage.last();
    assert!(last.contains("a.txt has in") && !last.contains(FOREWORD), "{last}");
    assert!(last.contains("and now?") && last.contains("One."), "what was said since stays: {last}");
    assert!(!last.contains("/compact"), "commands are for Crow: {last}");
}

#[tokio::test]
async fn clear_is_undone() {
    let mut stage = begun(&told()).await;
    assert_eq!(stage.say("/clear").await, "end_turn");
    assert!(
        stage.client.log().contains("\"Cleared: the model starts with an empty context, "),
        "{}",
        stage.client.log()
    );
    assert_eq!(stage.say("hello again").await, "end_turn");
    let last = stage.last();
    assert_eq!(last.lines().count(), 1, "{last}");
    assert!(last.contains("hello again"), "{last}");
    assert_eq!(stage.say("/compact undo").await, "end_turn");
    assert_eq!(stage.say("all there?").await, "end_turn");
    let last = stage.last();
    assert!(last.contains("a.txt has in") && last.contains("hello again"), "{last}");
    stage.check(5, &["in_progress", "completed"]);
}

#[tokio::test]
async fn command_with_nothing_to_do() {
    let mut stage = Stage::start(&told(), None, "").await;
    let commands = [
        ("/compact", "There is nothing to compact yet.\n"),
        ("/compact undo", "There is no compaction to undo.\n"),
        ("/clear", "There is nothing to clear.\n"),
    ];
    for (command, expected) in commands {
        assert_eq!(stage.say(command).await, "end_turn");
        assert_eq!(said(&stage.client), expected);
    }
    stage.check(0, &[]);
}

#[tokio::test]
async fn clients_without_compaction_support_get_text() {
    let mut stage = begun(&json!({})).await;
    for (command, begins, ends) in [
        ("/compact", "Compacting the conversation …", "Compacted: "),
        ("/clear", "Clearing the context …", "Cleared: "),
    ] {
        assert_eq!(stage.say(command).await, "end_turn");
        let log = stage.client.log();
        assert!(log.contains(begins), "{log}");
        assert_eq!(log.matches(ends).count(), 1, "it is said once: {log}");
    }
    assert_eq!(said(&stage.client), "Fine.", "a thought has it");
    stage.check(5, &[]);
}

#[tokio::test]
async fn each_compaction_has_its_own_id() {
    let mut stage = begun(&told()).await;
    for command in ["/clear", "/compact undo", "/clear"] {
        assert_eq!(stage.say(command).await, "end_turn");
    }
    let ids = |client: &FakeClient| {
        let ids = client.updates.iter().filter_map(|(_, update)| update["compactionId"].as_str());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    let live = ids(&stage.client);
    let [first, first_end, second, second_end] = &live[..] else { panic!("{live:?}") };
    assert!(first == first_end && second == second_end && first != second, "{live:?}");
    assert_eq!(ids(&stage.elsewhere().await), [second.clone(), second.clone()]);
}

#[tokio::test]
async fn command_waits_for_the_running_turn() {
    let mut stage = begun(&told()).await;
    stage.server.replace_answers("hold | text \"One.\"\ntext \"Two.\"");
    let turn = stage.client.prompt(&stage.session, "think").await;
    stage.server.wait_for_requests(4).await;
    let compact = stage.client.prompt(&stage.session, "/compact").await;
    let taken_back = stage.client.prompt(&stage.session, "/clear").await;
    stage.client.notify("$/cancel_request", json!({"requestId": taken_back})).await;
    assert_eq!(stage.end_of(taken_back).await, "cancelled");
    assert_eq!(stage.compactions(), Vec::<String>::new(), "it waits");
    stage.server.release();
    assert_eq!(stage.end_of(turn).await, "end_turn");
    assert_eq!(stage.end_of(compact).await, "end_turn");
    assert_eq!(stage.say("and now?").await, "end_turn");
    stage.check(7, &["in_progress", "completed"]);
    assert!(stage.last().contains("Notes.") && stage.last().contains("One."), "{}", stage.last());
}

#[tokio::test]
async fn command_is_cancelled() {
    let mut stage = begun(&told()).await;
    stage.server.set_side_answers("hold");
    let compact = stage.client.prompt(&stage.session, "/compact").await;
    stage.server.wait_for_requests(4).await;
    stage.client.notify("session/cancel", json!({"sessionId": stage.session})).await;
    assert_eq!(stage.end_of(compact).await, "cancelled");
    stage.server.wait_for_disconnect(3).await;
    assert_eq!(stage.say("and now?").await, "end_turn");
    stage.check(5, &["in_progress", "cancelled"]);
    assert!(stage.last().contains("a.txt has in"), "{}", stage.last());
}

#[tokio::test]
async fn custom_template_is_used() {
    let mut stage = begun(&told()).await;
    let folder = stage.world.home().join(".crow/prompts");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let template = folder.join("compact.jinja2");
    std::fs::write(&template, "Be short about {{ focus }").expect("it can be written");
    assert_eq!(stage.say("/compact ports").await, "end_turn");
    stage.check(3, &["in_progress", "failed"]);
    assert!(stage.client.log().contains("compact.jinja2"), "{}", stage.client.log());
    std::fs::write(&template, "Be short about {{ focus }}.").expect("it can be written");
    assert_eq!(stage.say("/compact ports").await, "end_turn");
    stage.check(5, &["in_progress", "failed", "in_progress", "completed"]);
    assert_eq!(stage.server.requests()[3]["messages"][0]["content"], "Be short about ports.");
}
