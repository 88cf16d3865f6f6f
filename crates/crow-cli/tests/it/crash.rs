//! The agent is killed after each message: nothing that it showed is lost, and the session continues with a valid
//! history.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "an agent is started under a limit, as a shell does")]

use std::collections::BTreeMap;
use std::path::Path;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use serde_json::{Value, json};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// The updates of a session that a client must never lose.
#[derive(Debug, Default)]
struct Seen {
    /// Text by kind and message.
    words: BTreeMap<String, String>,
    /// Title and status of the calls, by call.
    calls: BTreeMap<String, (String, Option<String>)>,
}

impl Seen {
    fn of(client: &FakeClient) -> Self {
        let mut seen = Self::default();
        for (_, update) in &client.updates {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match text(&update["sessionUpdate"]).as_str() {
                // Updates other than messages report a state.
                "agent_message_chunk" | "agent_thought_chunk" if update["messageId"].is_null() => {}
                kind @ ("agent_message_chunk" | "agent_thought_chunk") => {
                    let key = format!("{kind} {}", text(&update["messageId"]));
                    seen.words.entry(key).or_default().push_str(&text(&update["content"]["text"]));
                }
                "tool_call" | "tool_call_update" => {
                    let call = seen.calls.entry(text(&update["toolCallId"])).or_default();
                    if let Some(title) = update["title"].as_str() {
                        title.clone_into(&mut call.0);
                    }
                    let status = update["status"].as_str();
                    call.1 =
                        status.filter(|status| ["completed", "failed"].contains(status)).map(str::to_owned);
                }
                _ => {}
            }
        }
        seen
    }

    /// Fails unless the loaded session contains all of this.
    fn is_in(&self, loaded: &Self) {
        for (message, words) in &self.words {
            let told = loaded.words.get(message).map(String::as_str).unwrap_or_default();
            assert!(told.starts_with(words.as_str()), "{message}: {words:?} was shown, {told:?} is there");
        }
        for (call, (title, ended)) in &self.calls {
            let told = loaded.calls.get(call);
            assert_eq!(told.map(|(title, _)| title), Some(title), "{call}");
            if ended.is_some() {
                assert_eq!(told.map(|(_, ended)| ended), Some(ended), "{call}");
            }
        }
    }
}

/// Runs a turn repeatedly, killed one message later each time, until it completes; returns the number of kills.
fn killed_everywhere(script: &str, said: &str) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        for n_heard in 0.. {
            let server = ModelServer::start(script);
            let world = TestHome::new(server.base_url());
            world.add_config("permissions: { mode: auto, sandbox: off }\nmax_compact_tokens: 3000");
            world.write_file("a.txt", "one\ntwo\n");
            let mut client = FakeClient::start(binary(), &world.home()).await;
            let session = client.new_session(&world.project()).await;
            let id = client.prompt(&session, said).await;
            let mut is_over = false;
            for _ in 0..n_heard {
                let message = client.next_message().await;
                server.release();
                is_over = message["id"] == json!(id) && message.get("method").is_none();
                if is_over {
                    break;
                }
            }
            client.crash().await;
            let seen = Seen::of(&client);

            // A continuation may request a summary and its verification first.
            server.replace_answers("text \"Still here.\"\n".repeat(4).as_str());
            let mut second = FakeClient::start(binary(), &world.home()).await;
            let loaded = second.load_session(&session, &world.project()).await;
            if loaded.is_err() {
                // It was killed before its session was stored.
                assert!(seen.words.is_empty() && seen.calls.is_empty(), "{loaded:?}");
                continue;
            }
            seen.is_in(&Seen::of(&second));
            let id = second.prompt(&session, "go on").await;
            second.response_to(id).await.expect("the session goes on");
            assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
            if is_over {
                return n_heard;
            }
        }
        unreachable!("a turn has an end")
    })
}

#[test]
fn crash_while_the_model_streams() {
    // One message per word, since each waits until the previous one was received.
    let words: Vec<String> = (0..24).map(|n| format!("text \"word {n} \"")).collect();
    let script =
        format!("thought \"Let me \" | hold | thought \"think.\" | hold | {}", words.join(" | hold | "));
    assert!(killed_everywhere(&script, "speak") > 20);
}

#[test]
fn crash_while_tools_run() {
    let script = r#"
        text "I look." | call read {"file_path":"a.txt"} | call terminal {"command":"seq 1 200"}
        call write {"file_path":"b.txt","content":"new\n"} | call todo {"entries":[{"content":"Go on","status":"pending"}]}
        thought "Now." | call edit {"file_path":"b.txt","old_string":"new","new_string":"newer"} | call terminal {"command":"exit 3"}
        text "All " | text "done." | usage 100 10
    "#;
    assert!(killed_everywhere(script, "work") > 20);
}

#[test]
fn crash_during_compaction() {
    let script = r#"
        call terminal {"command":"seq 1 3000"} | usage 2500 5
        call terminal {"command":"seq 1 3000"} | usage 2900 5
        call terminal {"command":"seq 1 3000"} | usage 9000 5
        text "Summed up."
        text "COMPLETE"
        text "Done."
        text "Done."
    "#;
    assert!(killed_everywhere(script, "print much") > 10);
}

#[test]
fn fork_of_an_interrupted_turn_has_its_text() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let server = ModelServer::start("text \"half a \" | hold | text \"sentence\"");
        let world = TestHome::new(server.base_url());
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let session = client.new_session(&world.project()).await;
        client.prompt(&session, "speak").await;
        client.wait_for_line("half a").await;
        client.crash().await;
        server.replace_answers("text \"Still here.\"");
        let mut second = FakeClient::start(binary(), &world.home()).await;
        let forked = json!({"sessionId": session, "cwd": world.project(), "mcpServers": []});
        let forked = second.request("session/fork", forked).await.expect("it can be copied");
        let copy = forked["sessionId"].as_str().expect("a copy has a name").to_owned();
        let id = second.prompt(&copy, "go on").await;
        second.response_to(id).await.expect("the copy goes on");
        let said = server.requests().pop().expect("it was asked")["messages"].to_string();
        assert!(said.contains("half a"), "{said}");
        assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
    });
}

#[test]
fn file_size_limit_fails_the_turn() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let server = ModelServer::start("text \"yes\"\n".repeat(40).as_str());
        let world = TestHome::new(server.base_url());
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "ulimit -f 400; exec \"$0\" acp"]).arg(binary());
        let mut client = FakeClient::start_command(command, &world.home());
        client.initialize(json!({})).await.expect("the agent says hello");
        let session = client.new_session(&world.project()).await;
        let mut failed = None;
        for _ in 0..40 {
            let id = client.prompt(&session, &"word ".repeat(4_000)).await;
            failed = client.response_to(id).await.err();
            if failed.is_some() {
                break;
            }
        }
        assert_eq!(failed.expect("the limit is reached")["data"]["kind"], "store");
        client.load_session(&session, &world.project()).await.expect("the agent lives on");
    });
}
