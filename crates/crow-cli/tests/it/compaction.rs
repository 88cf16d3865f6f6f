//! Conversations that become too long: the model's view, the client's updates, and the stored entries.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod commands;
mod persistence;
mod retention;

use std::path::Path;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use serde_json::{Value, json};

/// The text before the entries that stay.
const FOREWORD: &str = "This conversation was compacted";

/// The replacement for output that was pruned.
const REMOVED: &str = "this output was removed";

/// The files of the project with their approximate size in tokens.
const FILES: [(&str, usize); 5] =
    [("a.txt", 2600), ("b.txt", 2600), ("c.txt", 2600), ("half.txt", 3400), ("big.txt", 6500)];

/// A provider that rejects the context size.
const OVERFLOW: &str = r#"status 400 {"error":{"message":"maximum context length is 1000 tokens","code":"context_length_exceeded"}}"#;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// A client that supports compaction updates.
fn told() -> Value {
    json!({"session": {"compaction": {}}})
}

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    session: String,
}

impl Stage {
    /// Starts a session that is compacted above `room` tokens, not counting the tools and the system prompt.
    async fn start(capabilities: &Value, room: Option<usize>, script: &str) -> Self {
        let server = ModelServer::start("text \"Hello.\"");
        let world = TestHome::new(server.base_url());
        world.add_config("permissions: { mode: auto }");
        for (name, n_tokens) in FILES {
            let lines =
                (0..n_tokens / 10).map(|line| format!("{name} has in its line {line:04} these words\n"));
            world.write_file(name, &lines.collect::<String>());
        }
        if let Some(room) = room {
            let tokens = around(&server, &world).await + room;
            world.add_config(&format!("max_compact_tokens: {tokens}"));
        }
        server.replace_answers(script);
        let mut client = FakeClient::start_with(binary(), &world.home(), capabilities.clone()).await;
        let session = client.new_session(&world.project()).await;
        Self { server, world, client, session }
    }

    /// Sends a prompt; returns the stop reason.
    async fn say(&mut self, text: &str) -> String {
        let id = self.client.prompt(&self.session, text).await;
        self.end_of(id).await
    }

    async fn end_of(&mut self, id: u64) -> String {
        match self.client.response_to(id).await {
            Ok(ended) => ended["stopReason"].as_str().unwrap_or_default().to_owned(),
            Err(error) => error["data"]["kind"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Opens the session in another process.
    async fn elsewhere(&self) -> FakeClient {
        let capabilities = self.client.editor.capabilities().clone();
        let mut other = FakeClient::start_with(binary(), &self.world.home(), capabilities).await;
        other.load_session(&self.session, &self.world.project()).await.expect("the session loads");
        other
    }

    /// Returns the texts of the requests since the tools were measured, without the system prompt.
    fn requests(&self) -> Vec<String> {
        let is_said = |message: &&Value| message["role"] != "system";
        let spelled = |request: &Value| {
            let messages = request["messages"].as_array().into_iter().flatten().filter(is_said);
            messages.map(|message| format!("{message}\n")).collect::<String>()
        };
        self.server.requests().iter().map(spelled).filter(|request| !request.contains("measure")).collect()
    }

    fn last(&self) -> String {
        self.requests().pop().expect("there was a request")
    }

    /// Returns the results of the compactions reported to the client.
    fn compactions(&self) -> Vec<String> {
        compactions(&self.client)
    }

    /// Checks the number of requests since the tools were measured, and the reported compactions.
    #[track_caller]
    fn check(&self, n_requests: usize, compactions: &[&str]) {
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "the model refused a request");
        assert_eq!(self.compactions(), compactions, "{}", self.client.log());
        assert_eq!(self.requests().len(), n_requests, "{}", self.client.log());
    }
}

fn compactions(client: &FakeClient) -> Vec<String> {
    let updates = client.updates.iter().filter(|(_, update)| update["sessionUpdate"] == "compaction_update");
    updates.map(|(_, update)| update["status"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the approximate tokens of a request without its messages.
async fn around(server: &ModelServer, world: &TestHome) -> usize {
    let mut client = FakeClient::start(binary(), &world.home()).await;
    let session = client.new_session(&world.project()).await;
    let id = client.prompt(&session, "measure").await;
    client.response_to(id).await.expect("the model answers");
    assert!(client.close_stdin().await.success());
    let request = &server.requests()[0];
    (request["tools"].to_string().len() + request["messages"][0].to_string().len()) / 4
}

/// Runs one prompt with a room of 5200 tokens; returns the stage if the turn ended with this stop reason.
async fn played(script: &str, ended: &str) -> Stage {
    let mut stage = Stage::start(&told(), Some(5200), script).await;
    assert_eq!(stage.say("read them: the key is 4711").await, ended, "{}", stage.client.log());
    stage
}

#[tokio::test]
async fn old_output_is_removed_first() {
    let script = r#"
        call read {"file_path":"a.txt"}
        text "A."
        call read {"file_path":"b.txt"}
        text "B."
        text "C."
        call read {"file_path":"c.txt"}
        text "D."
    "#;
    let mut stage = Stage::start(&told(), Some(8450), script).await;
    for said in ["one", "two", "three", "four"] {
        assert_eq!(stage.say(said).await, "end_turn");
    }
    // No summary was requested.
    stage.check(7, &["in_progress", "completed"]);
    let last = stage.last();
    assert!(last.contains(REMOVED) && !last.contains(FOREWORD) && !last.contains("a.txt has in"), "{last}");
    assert!(last.contains("\"one\"") && last.contains("\"four\"") && last.contains("c.txt has in"), "{last}");
}

#[tokio::test]
async fn compaction_runs_within_a_turn() {
    let script = r#"
        call read {"file_path":"a.txt"}
        call read {"file_path":"b.txt"}
        text "A and B were read."
        text "complete"
        text "Done."
    "#;
    let stage = played(script, "end_turn").await;
    stage.check(5, &["in_progress", "completed"]);
    let [_, _, sum_up, verify, last] = &stage.requests()[..] else { panic!("five requests") };
    assert!(sum_up.contains("the key is 4711") && sum_up.contains("a.txt has in"), "{sum_up}");
    assert!(verify.contains("A and B were read.") && verify.contains("COMPLETE"), "{verify}");
    assert!(last.contains(FOREWORD) && last.contains("A and B were read."), "{last}");
    assert!(last.contains("the key is 4711") && !last.contains("a.txt has in"), "{last}");
    assert!(last.contains("b.txt has in"), "what is new stays: {last}");
    let tools = stage.server.requests()[3].get("tools").cloned();
    assert_eq!(tools, None, "a summary needs no tools");
}

#[tokio::test]
async fn overflow_error_is_retried_once() {
    // Of a single result, only one that fills more than half of the context is removed.
    let script = format!(
        r#"
        call read {{"file_path":"half.txt"}}
        {OVERFLOW}
        text "A was read."
        text "complete"
        text "Done."
        "#
    );
    let stage = played(&script, "end_turn").await;
    let last = stage.last();
    assert!(last.contains("the key is 4711") && !last.contains("half.txt has in"), "{last}");
    // Without the tool output, there is nothing left to summarize.
    let n_requests = stage.requests().len();
    stage.check(n_requests, &["in_progress", "completed"]);
}

#[tokio::test]
async fn second_overflow_error_ends_the_turn() {
    let stage = played(
        &format!("call read {{\"file_path\":\"a.txt\"}}\n{OVERFLOW}\n{OVERFLOW}\n{OVERFLOW}\n{OVERFLOW}"),
        "context_overflow",
    )
    .await;
    assert!(stage.requests().len() <= 5, "{}", stage.client.log());
}

#[tokio::test]
async fn prompt_longer_than_the_window() {
    let script = format!("{OVERFLOW}\ntext \"It is long.\"\ntext \"complete\"\ntext \"Done.\"");
    let mut stage = Stage::start(&told(), Some(5200), &script).await;
    let long = format!("The key is 4711. {} Now sort it.", "many words ".repeat(10_000));
    assert_eq!(stage.say(&long).await, "end_turn");
    stage.check(4, &["in_progress", "completed"]);
    let last = stage.last();
    assert!(last.contains("The key is 4711.") && last.contains("Now sort it."), "{last}");
    assert!(last.len() < 16_000, "{}", last.len());
}

#[tokio::test]
async fn result_longer_than_the_window() {
    let script = format!(
        r#"
        call read {{"file_path":"big.txt"}}
        {OVERFLOW}
        text "Too big."
        text "complete"
        text "Done."
        "#
    );
    let mut stage = Stage::start(&told(), Some(1000), &script).await;
    assert_eq!(stage.say("read it: the key is 4711").await, "end_turn");
    let last = stage.last();
    assert!(last.contains("the key is 4711") && !last.contains("big.txt has in"), "{last}");
    assert_eq!(stage.server.rejections(), Vec::<String>::new());
}

#[tokio::test]
async fn provider_with_wrong_token_counts() {
    let reading = |files: &[&str], usage: &str| {
        let call = |file| format!("call read {{\"file_path\":\"{file}\"}} | usage {usage}\n");
        files.iter().map(call).collect::<String>()
    };
    // A count of zero is ignored; a tiny one counts as half of the estimate.
    for (usage, files) in [("0 0", &["a.txt", "b.txt"][..]), ("1 1", &["a.txt", "b.txt", "big.txt"])] {
        let read = reading(files, usage);
        let script = format!("{read}text \"Notes.\"\ntext \"complete\"\ntext \"Done.\" | usage {usage}");
        let stage = played(&script, "end_turn").await;
        stage.check(files.len() + 3, &["in_progress", "completed"]);
    }
    // With an enormous count every request seems too long, which causes an occasional attempt and nothing else.
    let usage = "9000000000000000000 9000000000000000000";
    let mut stage = Stage::start(&told(), Some(5200), "").await;
    stage.server.set_side_answers("text \"Notes.\"\ntext \"complete\"");
    for said in ["one", "two", "three"] {
        stage.server.replace_answers(
            format!("{}text \"Done.\" | usage {usage}", reading(&["a.txt", "b.txt"], usage)).as_str(),
        );
        assert_eq!(stage.say(said).await, "end_turn");
    }
    assert_eq!(stage.server.rejections(), Vec::<String>::new(), "the model refused a request");
    assert!(stage.requests().len() <= 3 * (3 + 3 * 2), "{}", stage.client.log());
    for said in ["one", "two", "three"] {
        assert!(stage.last().contains(said), "{}", stage.last());
    }
}

/// An invalid summary: the turn continues unchanged, and the next attempt is in the next turn.
#[track_caller]
fn check_rejected(summary: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let script = format!(
            r#"
            call read {{"file_path":"a.txt"}}
            call read {{"file_path":"b.txt"}}
            {summary}
            call read {{"file_path":"c.txt"}}
            text "Done."
            "#
        );
        let mut stage = played(&script, "end_turn").await;
        stage.check(5, &["in_progress", "failed"]);
        let last = stage.last();
        assert!(last.contains("a.txt has in") && last.contains("c.txt has in"), "{last}");
        stage.server.replace_answers("text \"Notes.\"\ntext \"complete\"\ntext \"Yes.\"");
        assert_eq!(stage.say("and now?").await, "end_turn");
        stage.check(8, &["in_progress", "failed", "in_progress", "completed"]);
        assert!(stage.last().contains("Notes."), "{}", stage.last());
    });
}

#[test]
fn useless_summary() {
    check_rejected(&format!("text {:?}", "much more ".repeat(5000)));
    check_rejected("text \"  \"");
    check_rejected("text \"Half of\" | finish length");
    check_rejected("text \"Half of\" | cut");
    check_rejected("status 500 {\"error\":{\"message\":\"no\"}}");
}

#[tokio::test]
async fn cancel_during_the_summary() {
    let script = r#"
        call read {"file_path":"a.txt"}
        call read {"file_path":"b.txt"}
        hold
    "#;
    let mut stage = Stage::start(&told(), Some(5200), script).await;
    let id = stage.client.prompt(&stage.session, "read them").await;
    stage.client.wait_for_line("< compaction in_progress").await;
    stage.server.wait_for_requests(4).await;
    stage.client.notify("session/cancel", json!({"sessionId": stage.session})).await;
    assert_eq!(stage.end_of(id).await, "cancelled");
    stage.server.wait_for_disconnect(3).await;
    stage.check(3, &["in_progress", "cancelled"]);
    assert_eq!(compactions(&stage.elsewhere().await), Vec::<String>::new(), "nothing is stored");
    stage.server.replace_answers("text \"Notes.\"\ntext \"complete\"\ntext \"Yes.\"");
    assert_eq!(stage.say("go on").await, "end_turn");
    stage.check(6, &["in_progress", "cancelled", "in_progress", "completed"]);
}
