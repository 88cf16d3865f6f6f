//! User messages after many compactions, in a session of the real agent.

use super::*;

/// Compactions of a session in these tests.
const COMPACTIONS: usize = 20;

/// Sends prompts until the session was compacted often enough; returns them.
async fn talk(stage: &mut Stage, said: impl Fn(usize) -> String) -> Vec<String> {
    let mut all = Vec::new();
    while stage.compactions().iter().filter(|status| *status == "completed").count() < COMPACTIONS {
        assert!(all.len() < 6 * COMPACTIONS, "{}", stage.client.log());
        all.push(said(all.len()));
        stage.server.replace_answers("call read {\"file_path\":\"a.txt\"}\ntext \"I have read it.\"");
        assert_eq!(stage.say(&all[all.len() - 1]).await, "end_turn");
    }
    assert_eq!(stage.server.rejections(), Vec::<String>::new(), "the model refused a request");
    assert!(!stage.compactions().contains(&"failed".to_owned()), "{}", stage.client.log());
    all
}

#[tokio::test]
async fn user_messages_survive_useless_summaries() {
    let mut stage = Stage::start(&told(), Some(4000), "").await;
    stage.server.set_side_answers("text \"Things happened.\"\ntext \"complete\"");
    let said = talk(&mut stage, |n| format!("Fact {n} is {}.", 4711 + n * n)).await;
    let last = stage.last();
    for fact in said {
        assert!(last.contains(&fact), "{fact} is lost in {last}");
    }
}

#[tokio::test]
async fn messages_over_the_budget_are_in_the_summary() {
    let mut stage = Stage::start(&told(), Some(4000), "").await;
    // A good model repeats what it reads; the test ensures that it could read it.
    stage.server.set_side_answers("text \"The person's key is 4711.\"\ntext \"complete\"");
    let said =
        |n| format!("{} Step {n}. {}", if n == 0 { "My key is 4711." } else { "" }, "And so on. ".repeat(50));
    talk(&mut stage, said).await;
    let last = stage.last();
    assert!(!last.contains("My key is 4711."), "the budget was to be too small: {last}");
    assert!(last.contains("The person's key is 4711."), "{last}");
    let n_blind = stage
        .server
        .requests()
        .iter()
        .filter(|request| request.get("tools").is_none() && !request.to_string().contains("key is 4711."))
        .count();
    assert_eq!(n_blind, 0, "a summariser was not told of the fact");
}
