//! The agent is killed after each message: nothing that it showed is lost, and the session continues with a valid
//! history.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "an agent is started under a limit, as a shell does")]

use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, ShownContent};
use serde_json::json;

use crate::threads::map_on_threads;

/// Kills of turns that run at the same time.
const KILLS_AT_ONCE: usize = 4;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Returns what a client was shown.
fn shown_content(client: &FakeClient) -> ShownContent {
    ShownContent::from_updates(client.updates.iter().map(|(_, update)| update))
}

/// Runs a turn repeatedly, killed one message later each time, until it completes; returns the number of kills.
fn killed_everywhere(script: &str, said: &str) -> usize {
    (0..)
        .step_by(KILLS_AT_ONCE)
        .find_map(|first| {
            let kills: Vec<usize> = (first..first + KILLS_AT_ONCE).collect();
            let were_over = map_on_threads(&kills, |n_heard| is_over_after(*n_heard, script, said));
            kills.into_iter().zip(were_over).find(|(_, is_over)| *is_over).map(|(n_heard, _)| n_heard)
        })
        .expect("a turn has an end")
}

/// Runs a turn, kills the agent after this number of messages, and continues the session with another; returns whether
/// the turn had ended.
fn is_over_after(n_heard: usize, script: &str, said: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
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
        let shown = shown_content(&client);

        // A continuation may request a summary and its verification first.
        server.replace_answers("text \"Still here.\"\n".repeat(4).as_str());
        let mut second = FakeClient::start(binary(), &world.home()).await;
        let loaded = second.load_session(&session, &world.project()).await;
        if loaded.is_err() {
            // It was killed before its session was stored.
            assert!(shown.is_empty(), "{loaded:?}");
            return false;
        }
        assert_eq!(shown.missing_in(&shown_content(&second)), Vec::<String>::new(), "something is lost");
        let id = second.prompt(&session, "go on").await;
        second.response_to(id).await.expect("the session goes on");
        assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");
        is_over
    })
}

#[test]
fn crash_while_the_model_streams() {
    // One message per word, since each waits until the previous one was received.
    let words: Vec<String> = (0..8).map(|n| format!("text \"word {n} \"")).collect();
    let script =
        format!("thought \"Let me \" | hold | thought \"think.\" | hold | {}", words.join(" | hold | "));
    assert!(killed_everywhere(&script, "speak") > 10);
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
fn reply_of_a_killed_process_reaches_one_that_had_loaded_its_session() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let server = ModelServer::start("hold | text \"The important half.\" | hold");
        let world = TestHome::new(server.base_url());
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let session = client.new_session(&world.project()).await;
        client.prompt(&session, "go").await;
        server.wait_for_requests(1).await;
        let mut second = FakeClient::start(binary(), &world.home()).await;
        second.load_session(&session, &world.project()).await.expect("the session is loaded");
        server.release();
        client.wait_for_line("The important half.").await;
        client.crash().await;

        server.replace_answers("text \"Still here.\"");
        let id = second.prompt(&session, "go on").await;
        second.response_to(id).await.expect("the session goes on");
        let said = server.requests().pop().expect("the model is asked")["messages"].to_string();
        assert!(said.contains("The important half."), "{said}");
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
