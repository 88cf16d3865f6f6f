//! The fake agent does what its behaviors say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the tests start the agent as any client would")]

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crow_acp::{AcpClientCapabilities, AgentUpdate, ClientEvent, ClientInfo, TurnScope};
use crow_core::{ContentPart, Failure};
use crow_testkit::agent::command;
use crow_testkit::client::FakeClient;
use crow_testkit::tracked_command::TrackedCommand;
use expect_test::{Expect, expect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[test]
fn command_finds_the_program() {
    assert_eq!(
        command(&["silent"]),
        (env!("CARGO_BIN_EXE_crow-fake-agent").to_owned(), vec!["silent".to_owned()])
    );
}

/// Builds the agent's command; `$HOME` in a behavior is the directory.
fn program(directory: &Path, words: &[&str]) -> Command {
    let home = directory.display().to_string();
    let words: Vec<String> = words.iter().map(|word| word.replace("$HOME", &home)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, args) = command(&words);
    let mut command = Command::new(program);
    command.args(args).current_dir(directory);
    command
}

fn start(directory: &Path, words: &[&str]) -> FakeClient {
    FakeClient::start_command(program(directory, words).into(), directory)
}

/// Runs one prompt of the strict client with the agent.
#[track_caller]
fn check(words: &[&str], capabilities: Value, told: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let log = runtime.block_on(async {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "one\ntwo\n").unwrap();
        let mut client = start(directory.path(), words);
        client.initialize(capabilities).await.unwrap();
        let session = client.new_session(directory.path()).await;
        let id = client.prompt(&session, "go").await;
        let ended = client.response_to(id).await;
        client.add_to_log(ended.unwrap_or_else(|error| error).to_string());
        let log = client.log();
        assert!(client.close_stdin().await.success());
        log
    });
    told.assert_eq(&log);
}

#[test]
fn agent_echoes_and_edits() {
    check(
        &[],
        json!({}),
        &expect![[r#"
            < text[m] echo: go
            < call call-1  "Edit notes.txt" in_progress {"path":"notes.txt"}
            < call call-1 completed diff $HOME/notes.txt "old\n" -> "new\n"
            {"stopReason":"end_turn"}
        "#]],
    );
}

#[test]
fn agent_requests_permission() {
    check(
        &["asks"],
        json!({}),
        &expect![[r#"
            < text[m] echo: go
            < call call-1  "Edit notes.txt" in_progress {"path":"notes.txt"}
            < call call-1 completed diff $HOME/notes.txt "old\n" -> "new\n"
            < call call-2  "rm -rf build" pending {"command":"rm -rf build"}
            ? rm -rf build [allow_once, allow_always, reject_once] -> allow_once
            < text[m] ; session/request_permission: {"outcome":{"outcome":"selected","optionId":"allow_once"}}
            < call call-2 completed
            {"stopReason":"end_turn"}
        "#]],
    );
}

#[test]
fn agent_uses_files_and_terminals_of_its_client() {
    check(
        &["reads=$HOME/a", "writes=$HOME/b", "terminal=echo hi"],
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}),
        &expect![[r#"
            < text[m] echo: go
            < call call-1  "Edit notes.txt" in_progress {"path":"notes.txt"}
            < call call-1 completed diff $HOME/notes.txt "old\n" -> "new\n"
            > fs read $HOME/a
            < text[m] ; fs/read_text_file: {"content":"one\ntwo\n"}
            > fs write $HOME/b
            < text[m] ; fs/write_text_file: {}
            > terminal create term-1: sh -c echo hi
            < text[m] ; terminal/create: {"terminalId":"term-1"}; terminal/wait_for_exit: {"exitCode":0,"signal":null}
            ~ terminal output term-1
            < text[m] ; terminal/output: {"output":"hi\n","truncated":false,"exitStatus":{"exitCode":0,"signal":null}}
            > terminal release term-1
            < text[m] ; terminal/release: {}
            {"stopReason":"end_turn"}
        "#]],
    );
}

#[test]
fn agent_reports_directories_and_variables() {
    check(
        &["where", "env=HOME", "env=NONE"],
        json!({}),
        &expect![[r#"
        < text[m] echo: go
        < call call-1  "Edit notes.txt" in_progress {"path":"notes.txt"}
        < call call-1 completed diff $HOME/notes.txt "old\n" -> "new\n"
        < text[m] ; HOME: $HOME; NONE: (not set); started in $HOME, works in $HOME
        {"stopReason":"end_turn"}
    "#]],
    );
}

#[test]
fn usage_of_a_turn_is_reported() {
    check(
        &["usage"],
        json!({}),
        &expect![[r#"
        < text[m] echo: go
        < call call-1  "Edit notes.txt" in_progress {"path":"notes.txt"}
        < call call-1 completed diff $HOME/notes.txt "old\n" -> "new\n"
        < usage 1234/32000
        {"stopReason":"end_turn","usage":{"totalTokens":1234,"inputTokens":1200,"outputTokens":34}}
    "#]],
    );
}

#[test]
fn turn_fails_on_request() {
    check(
        &["fails"],
        json!({}),
        &expect![[r#"
            < text[m] echo: go
            < call call-1  "Edit notes.txt" in_progress {"path":"notes.txt"}
            < call call-1 completed diff $HOME/notes.txt "old\n" -> "new\n"
            {"code":-32603,"message":"Internal error","data":{"details":"no fuel"}}
        "#]],
    );
}

#[tokio::test]
async fn options_are_set() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = start(directory.path(), &["options"]);
    client.initialize(json!({})).await.unwrap();
    let session = client.new_session(directory.path()).await;
    let mut choose = async |option: &str, value: &str| {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        client.request("session/set_config_option", params).await
    };
    let chosen = choose("model", "large").await.unwrap();
    assert_eq!(chosen["configOptions"][1]["currentValue"], "large");
    assert_eq!(choose("model", "huge").await.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn session_is_loaded_unless_unsupported() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = start(directory.path(), &[]);
    client.initialize(json!({})).await.unwrap();
    client.load_session("brave-otter", directory.path()).await.unwrap();
    assert_eq!(client.log(), "< prompt[] hello\n< text[m] echo: hello\n");
    let mut other = start(directory.path(), &["no-load"]);
    let hello = other.initialize(json!({})).await.unwrap();
    assert_eq!(hello["agentCapabilities"]["loadSession"], false);
    assert_eq!(other.load_session("brave-otter", directory.path()).await.unwrap_err()["code"], -32601);
}

#[tokio::test]
async fn running_prompt_is_cancelled() {
    for words in [["flood"], ["slow=$HOME/never"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut client = start(directory.path(), &words);
        client.initialize(json!({})).await.unwrap();
        let session = client.new_session(directory.path()).await;
        let id = client.prompt(&session, "go").await;
        client.wait_for_line("completed").await;
        client.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(client.response_to(id).await.unwrap()["stopReason"], "cancelled");
        assert!(client.close_stdin().await.success());
    }
}

#[tokio::test]
async fn agent_waits_for_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = start(directory.path(), &["slow=$HOME/go", "later=$HOME/more", "asks"]);
    client.initialize(json!({})).await.unwrap();
    let session = client.new_session(directory.path()).await;
    let id = client.prompt(&session, "go").await;
    client.wait_for_line("completed").await;
    std::fs::write(directory.path().join("go"), "").unwrap();
    assert_eq!(client.response_to(id).await.unwrap()["stopReason"], "end_turn");
    let n_heard = client.log().len();
    std::fs::write(directory.path().join("more"), "").unwrap();
    client.wait_for_line("by the way").await;
    while client.log().matches("? rm -rf build").count() < 2 {
        client.next_message().await;
    }
    assert!(!client.log()[..n_heard].contains("by the way"));
}

/// Runs one prompt of Crow's client with the agent; returns the received text, the failure and the exit status.
async fn drive(words: &[&str]) -> (String, Option<Failure>, ExitStatus) {
    let directory = tempfile::tempdir().unwrap();
    let mut child: Child = program(directory.path(), words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (lines, _written) =
        crow_acp::stdio_transport(child.stdout.take().unwrap(), child.stdin.take().unwrap()).unwrap();
    let (events, mut heard) = mpsc::channel(1024);
    let hello = ClientInfo {
        name: "crow-cli",
        version: "1",
        capabilities: AcpClientCapabilities::default(),
        agent_name: None,
        wants_raw_updates: false,
    };
    let driven = crow_acp::drive_agent(lines, hello, events, async |agent| {
        let session = agent.new_session(directory.path()).await?;
        agent
            .send_prompt(&session.session, vec![ContentPart::Text("go".into())], TurnScope::WithoutTasks)
            .await
    });
    let failure = driven.await.and_then(|ended| ended).err();
    let mut text = String::new();
    while let Some(event) = heard.recv().await {
        if let ClientEvent::Update { update: AgentUpdate::Text(piece), .. } = event {
            text += &piece;
        }
    }
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    (text, failure, status)
}

#[tokio::test]
async fn garbage_does_not_prevent_a_client_from_reading() {
    let (text, failure, status) = drive(&["garbage", "noisy"]).await;
    assert_eq!((text.as_str(), failure, status.code()), ("echo: go", None, Some(0)));
}

#[tokio::test]
async fn agent_exits_with_its_behaviors_status() {
    for (words, heard, code) in [(["broken"], "", 3), (["dies"], "echo: ", 9), (["locked"], "", 0)] {
        let (text, failure, status) = drive(&words).await;
        assert_eq!((text.as_str(), status.code()), (heard, Some(code)), "{words:?}");
        assert!(failure.is_some(), "{words:?}");
    }
}

#[tokio::test]
async fn agent_announces_its_protocol_version() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = start(directory.path(), &["version=7"]);
    assert_eq!(client.initialize(json!({})).await.unwrap()["protocolVersion"], 7);
}

#[tokio::test]
async fn stubborn_agent_has_to_be_killed() {
    for words in [&["stubborn", "flood"][..], &["deaf", "flood"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut client = start(directory.path(), words);
        client.initialize(json!({})).await.unwrap();
        let session = client.new_session(directory.path()).await;
        let id = client.prompt(&session, "go").await;
        let pid = Pid::from_raw(client.pid().cast_signed());
        kill(pid, Signal::SIGTERM).unwrap();
        client.notify("session/cancel", json!({"sessionId": session})).await;
        if words.contains(&"deaf") {
            // More output than a pipe's buffer after it could have received both.
            for _ in 0..5000 {
                client.next_message().await;
            }
        } else {
            assert_eq!(client.response_to(id).await.unwrap()["stopReason"], "cancelled");
        }
        let status = end_by(client, Signal::SIGKILL).await;
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    }
}

#[tokio::test]
async fn silent_agent_ends_on_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let client = start(directory.path(), &["silent"]);
    let status = end_by(client, Signal::SIGTERM).await;
    assert_eq!(status.signal(), Some(Signal::SIGTERM as i32));
}

async fn end_by(mut client: FakeClient, signal: Signal) -> ExitStatus {
    kill(Pid::from_raw(client.pid().cast_signed()), signal).unwrap();
    client.wait_for_exit().await
}

#[tokio::test]
async fn leaked_command_is_detected() {
    for word in ["spawns=$HOME", "strays=$HOME"] {
        let directory = tempfile::tempdir().unwrap();
        let mut leash = TrackedCommand::new(directory.path());
        let mut client = start(directory.path(), &[word]);
        client.initialize(json!({})).await.unwrap();
        let session = client.new_session(directory.path()).await;
        let id = client.prompt(&session, "go").await;
        client.response_to(id).await.unwrap();
        assert!(client.log().contains("; started"), "{}", client.log());
        assert!(client.close_stdin().await.success());
        assert!(leash.is_running(), "{word}: it lives on");
        leash.release();
        leash.wait_until_gone("let go").await;
    }
}
