//! Fallback models for a model whose provider is overloaded or has no credit left.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, RpcResult, TestHome};
use expect_test::{Expect, expect};
use serde_json::json;

/// Three models of one provider, and one without its key.
fn models(server: &ModelServer, retries: u32) -> String {
    let url = server.base_url();
    format!(
        "providers:\n  p: {{ base_url: '{url}' }}\n  q: {{ base_url: '{url}', api_key: '${{NO_SUCH_KEY}}' }}\n\
         models:\n  first: {{ provider: p, context_window: 64000, fallbacks: [keyless, tiny, second, third] }}\n  \
         keyless: {{ provider: q }}\n  tiny: {{ provider: p, context_window: 100 }}\n  \
         second: {{ provider: p, context_window: 64000, fallbacks: [first] }}\n  third: {{ provider: p, context_window: 64000 }}\n\
         max_retries_per_step: {retries}\n"
    )
}

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    session: String,
}

impl Stage {
    async fn new(script: &str, retries: u32) -> Self {
        let server = ModelServer::start(script);
        let world = TestHome::new(server.base_url());
        world.configure(&models(&server, retries));
        world.write_file("a.txt", "apples\n");
        let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
        let capabilities = json!({"session": {"notices": {}}});
        let mut client = FakeClient::start_with(binary, &world.home(), capabilities).await;
        let session = client.new_session(&world.project()).await;
        Self { server, world, client, session }
    }

    async fn say(&mut self, text: &str) -> RpcResult {
        let id = self.client.prompt(&self.session, text).await;
        self.client.response_to(id).await
    }

    /// Returns the client's updates and the requested models, in order.
    fn told(&self) -> String {
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "a model refused a request");
        let asked = self.server.requests();
        let asked: Vec<&str> = asked.iter().filter_map(|request| request["model"].as_str()).collect();
        // The number of tokens of the tools and the prompt changes with their text.
        let log = self.client.log();
        let lines = log.lines().map(|line| match line.split_once("the context has ") {
            Some((begin, rest)) => {
                let (_, rest) = rest.split_once(' ').expect("a number");
                format!("{begin}the context has N {rest}\n")
            }
            None => format!("{line}\n"),
        });
        format!("{}asked: {}\n", lines.collect::<String>(), asked.join(", "))
    }
}

async fn check(script: &str, prompts: &[&str], expected: Expect) {
    let mut stage = Stage::new(script, 0).await;
    let mut ended = String::new();
    for prompt in prompts {
        ended += &match stage.say(prompt).await {
            Ok(answer) => format!("= {}\n", answer["stopReason"].as_str().unwrap_or_default()),
            Err(error) => format!("! {}\n", error["data"]["kind"].as_str().unwrap_or_default()),
        };
    }
    expected.assert_eq(&(stage.told() + &ended));
}

#[tokio::test]
async fn fallback_answers_for_the_rest_of_the_turn() {
    check(
        r#"
        status 529 {"error":{"type":"overloaded_error","message":"Overloaded"}}
        call read {"file_path":"a.txt"}
        text "Apples."
        text "Hello again."
        "#,
        &["what is in a.txt?", "hello"],
        expect![[r#"
            < notice warning "The fallback keyless was skipped: its key NO_SUCH_KEY is not set." ""
            < notice warning "The fallback tiny was skipped: the context has N tokens, and its limit is 88." ""
            < notice warning "The provider of first is overloaded; second answers instead." ""
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] Apples.
            < title what is in a.txt?
            < text[msg-5] Hello again.
            asked: first, second, second, first
            = end_turn
            = end_turn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn fallbacks_are_tried_in_order_and_the_first_failure_is_reported() {
    check(
        r#"
        status 429 {"error":{"message":"slow down"}}
        status 401 {"error":{"message":"bad key"}}
        status 503 {"error":{"message":"busy"}}
        "#,
        &["hello"],
        expect![[r#"
            < notice warning "The fallback keyless was skipped: its key NO_SUCH_KEY is not set." ""
            < notice warning "The fallback tiny was skipped: the context has N tokens, and its limit is 88." ""
            < notice warning "The provider of first is overloaded; second answers instead." ""
            < notice warning "The fallback second did not answer: `p` needs a key (401): bad key; configure its `api_key`." ""
            < notice warning "The provider of first is overloaded; third answers instead." ""
            < notice warning "The fallback third did not answer: `p` is overloaded or failing for `third` (503): busy; try again later." ""
            < title hello
            asked: first, second, third
            ! provider_rate
        "#]],
    )
    .await;
}

#[tokio::test]
async fn fallback_is_not_tried_for_errors_of_the_request() {
    for (status, body) in [
        (400, r#"{"error":{"message":"bad request"}}"#),
        (401, r#"{"error":{"message":"bad key"}}"#),
        (403, r#"{"error":{"message":"no"}}"#),
    ] {
        let mut stage = Stage::new(&format!("status {status} {body}"), 0).await;
        stage.say("hello").await.expect_err("the turn fails");
        assert_eq!(stage.server.n_requests(), 1, "{status}");
    }
}

#[tokio::test]
async fn fallback_answers_for_an_account_without_credit() {
    check(
        r#"
        status 402 {"error":{"message":"Insufficient Balance"}}
        text "Here."
        "#,
        &["hello"],
        expect![[r#"
            < notice warning "The fallback keyless was skipped: its key NO_SUCH_KEY is not set." ""
            < notice warning "The fallback tiny was skipped: the context has N tokens, and its limit is 88." ""
            < notice warning "The provider of first has no credit left; second answers instead." ""
            < text[msg-1] Here.
            < title hello
            asked: first, second
            = end_turn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn reply_shown_in_part_is_not_restarted() {
    check(
        r#"
        text "Begun" | chunk {"error":{"message":"overloaded","code":503}}
        text " and ended."
        "#,
        &["hello"],
        expect![[r#"
            < text[msg-1] Begun
            < notice warning "The provider is overloaded; the model is asked to continue its reply (1 of 3)." ""
            < text[msg-3]  and ended.
            < title hello
            asked: first, first
            = end_turn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn model_that_answered_is_stored_with_the_reply() {
    let script = "status 500\nstatus 500\ntext \"Here.\"\ntext \"Back.\"";
    let mut stage = Stage::new(script, 1).await;
    stage.say("hello").await.expect("the turn ends");
    stage.say("again").await.expect("the turn ends");
    assert!(stage.told().ends_with("asked: first, first, second, first\n"), "{}", stage.told());
    #[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
    let exported = std::process::Command::new(env!("CARGO_BIN_EXE_crow-cli"))
        .args(["inspect", "-s", &stage.session, "--export", "json"])
        .env("HOME", stage.world.home())
        .output()
        .expect("the program runs");
    let exported: serde_json::Value = serde_json::from_slice(&exported.stdout).expect("it is JSON");
    let messages = exported["messages"].as_array().expect("messages").iter();
    let by: Vec<String> = messages
        .filter(|message| message["role"] == "assistant")
        .map(|message| format!("{} {}", message["text"], message["answered_by"]))
        .collect();
    assert_eq!(by, ["\"Here.\" \"second\"", "\"Back.\" null"]);
}
