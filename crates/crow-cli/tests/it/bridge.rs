//! `crow-cli acp-bridge` and `crow-cli acp --listen`: a WebSocket client's view of them, and the processes that
//! remain.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod fixture;
mod unauthenticated;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
};

use crow_testkit::{ModelServer, client::TestHome, tracked_command::TrackedCommand};
use expect_test::{Expect, expect};
use futures_util::SinkExt;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use self::fixture::{Client, Server, command};

/// An agent that repeats its input.
const ECHO: &str = "exec cat";

#[track_caller]
fn check(heard: &str, expected: &Expect) {
    expected.assert_eq(heard);
}

fn nowhere() -> TestHome {
    TestHome::new("http://127.0.0.1:9/v1")
}

/// Runs a command that exits at once; returns the exit code and the output.
#[track_caller]
fn check_refused(world: &TestHome, args: &[&str], expected: &Expect) {
    let output = command(world, args).output().expect("it runs");
    let stderr =
        String::from_utf8_lossy(&output.stderr).replace(&world.home().display().to_string(), "$HOME");
    let stdout = String::from_utf8_lossy(&output.stdout);
    check(&format!("{:?} {stdout}{stderr}", output.status.code()), expected);
}

#[tokio::test]
async fn clients_without_a_token_or_from_a_web_page_are_rejected() {
    let server = Server::to_script(ECHO);
    let token = format!("Bearer {}", server.token);
    let cases: [&[(&'static str, &str)]; 6] = [
        &[],
        &[("authorization", "Bearer wrong")],
        &[("authorization", &token), ("origin", "https://evil.example")],
        &[("authorization", &token), ("host", "evil.example")],
        &[("authorization", &token), ("host", "localhost")],
        &[("authorization", &token)],
    ];
    let mut heard = String::new();
    for headers in cases {
        match server.client_with(headers).await {
            Ok(_) => heard.push_str("let in\n"),
            Err(error) => heard.push_str(&format!("{error}\n")),
        }
    }
    check(
        &heard,
        &expect![[r#"
        HTTP error: 401 Unauthorized
        HTTP error: 401 Unauthorized
        HTTP error: 403 Forbidden
        HTTP error: 403 Forbidden
        let in
        let in
    "#]],
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(&server.token_file).expect("the token").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn client_has_its_own_agent() {
    let server = Server::to_script("echo \"{\\\"pid\\\":$$}\"; exec cat");
    let (mut one, mut other) = (server.client().await, server.client().await);
    let pids = [one.hear().await, other.hear().await];
    assert_ne!(pids[0], pids[1]);
    one.say("{\"to\":\"one\"}").await;
    other.say("{\"to\":\n\"other\"}").await;
    check(&one.hear().await, &expect![[r#"{"to":"one"}"#]]);
    check(&other.hear().await, &expect![[r#"{"to": "other"}"#]]);
}

#[tokio::test]
async fn slow_and_many_connections_do_not_block_other_clients() {
    let server = Server::to_script(ECHO);
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        stream.write_all(b"GET /acp HTTP/1.1\r\nHost: 127").expect("it listens");
        slow.push(stream);
    }
    let mut client = server.client().await;
    client.say("{}").await;
    check(&client.hear().await, &expect!["{}"]);
    // Further connections are rejected, with a response or without.
    let mut rest = Vec::new();
    let _ = slow[0].read_to_end(&mut rest);
    client.say("{}").await;
    check(&client.hear().await, &expect!["{}"]);
}

#[tokio::test]
async fn odd_frames_do_no_harm_to_the_bridge() {
    let server = Server::to_script(ECHO);
    let mut client = server.client().await;
    client.socket.send(Message::binary(vec![0, 0xFF, 2])).await.expect("it listens");
    let answer = client.hear().await;
    assert!(answer.contains("-32700") && answer.contains("binary"), "{answer}");
    client.say("").await;
    client.say("{}").await;
    check(&client.hear().await, &expect!["{}"]);
}

#[tokio::test]
async fn message_of_fifty_megabytes_is_echoed() {
    let server = Server::to_script(ECHO);
    let mut client = server.client().await;
    let large = format!("{{\"large\":\"{}\"}}", "x".repeat(50_000_000));
    client.say(large.clone()).await;
    let back = client.hear().await;
    assert!(back == large, "{} bytes of {} came back", back.len(), large.len());
}

/// Returns the resident memory of a process in KiB.
fn resident(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn client_that_does_not_read_stops_the_agent() {
    // Writes to a file after each hundred megabytes that were read.
    let script = "echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}'; for n in 1 2 3 4 5 6; do head -c 100000000 /dev/zero | tr '\\0' '{' | fold -w 1000000; echo $n > took; done";
    let server = Server::to_script(script);
    let mut client = server.client().await;
    // Its first output has arrived, and it is blocked long before it has written everything.
    client.hear().await;
    check(&client.hear().await[..4], &expect!["{{{{"]);
    let leaving = tokio::task::spawn_blocking(move || {
        server.wait_until_it_rests();
        let took = fs::read_to_string(server.world.project().join("took")).unwrap_or_default();
        (took, resident(&server))
    });
    let (took, n_kib) = leaving.await.expect("it rests");
    assert!(took.is_empty() || took == "1\n", "the agent went on to say {took}");
    assert!(n_kib < 400_000, "{n_kib} KiB");
}

#[tokio::test]
async fn agent_exit_reason_is_in_the_close_frame() {
    let mut heard = String::new();
    for script in [
        "echo '{\"last\":1}'; echo 'no key for the model' >&2; exit 3",
        "exit 0",
        "kill -9 $$",
        "echo 'usage: agent --stdio'; exit 2",
    ] {
        let server = Server::to_script(script);
        let mut client = server.client().await;
        loop {
            let said = client.hear().await;
            heard.push_str(&format!("{said}\n"));
            if said.starts_with("close") {
                break;
            }
        }
    }
    check(
        &heard,
        &expect![[r#"
        {"last":1}
        close 1011: the agent exited with code 3: no key for the model
        close 1011: the agent exited with code 0
        close 1011: the agent was killed by signal 9
        close 1011: the agent exited with code 2: usage: agent --stdio
    "#]],
    );
}

#[tokio::test]
async fn agent_stderr_is_logged() {
    let world = nowhere();
    let log = world.home().join("bridge.log");
    let args =
        ["acp-bridge", "--log-file", &log.display().to_string(), "sh", "-c", "echo 'no key' >&2; exec cat"];
    let server = Server::start(world, &args);
    let mut client = server.client().await;
    client.say("{}").await;
    client.hear().await;
    drop(client);
    server.signal(Signal::SIGTERM);
    let mut server = server;
    server.ended();
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(logged.contains("no key"), "{logged}");
    assert!(!logged.contains(&server.token), "the token is in the log");
    assert_eq!(server.log(), "");
}

/// Waits until the tracked command has started.
async fn started(client: &mut Client) {
    check(&client.hear().await, &expect!["{started"]);
}

/// Returns the tracked command as an agent that writes one line.
fn leashed() -> String {
    TrackedCommand::COMMAND.replace("echo started", "echo {started")
}

#[tokio::test]
async fn client_disconnect_ends_its_agent() {
    for how in ["goodbye", "nothing", "half a message"] {
        let server = Server::to_script(&leashed());
        let mut leash = TrackedCommand::new(&server.world.project());
        let mut client = server.client().await;
        started(&mut client).await;
        match how {
            "goodbye" => client.socket.close(None).await.expect("it listens"),
            "nothing" => drop(client),
            _ => {
                use tokio::io::AsyncWriteExt as _;
                let half = [0x81, 0x80 | 100, 1, 2, 3, 4, 5, 6, 7];
                client.socket.get_mut().write_all(&half).await.expect("it listens");
                drop(client);
            }
        }
        leash.wait_until_gone(how).await;
    }
}

#[tokio::test]
async fn bridge_exit_or_kill_ends_its_agents() {
    for (signal, code) in [(Signal::SIGTERM, Some(0)), (Signal::SIGINT, Some(130)), (Signal::SIGKILL, None)] {
        let mut server = Server::to_script(&leashed());
        let mut leash = TrackedCommand::new(&server.world.project());
        let mut client = server.client().await;
        started(&mut client).await;
        server.signal(signal);
        let last = client.hear().await;
        if signal == Signal::SIGKILL {
            assert!(last.contains("error") || last == "the end", "{last}");
        } else {
            check(&last, &expect!["close 1001: the server is shutting down"]);
        }
        drop(client);
        leash.wait_until_gone(signal.as_str()).await;
        let (ended, said) = server.ended();
        assert_eq!((ended.code(), said.as_str()), (code, ""));
        assert_eq!(Path::new(&server.token_file).exists(), signal == Signal::SIGKILL);
    }
}

#[tokio::test]
async fn options_belong_to_the_bridge_unless_they_follow_two_dashes() {
    let world = nowhere();
    let token = world.home().join("token");
    fs::create_dir(world.home().join("there")).expect("a folder");
    let (there, token) = (world.home().join("there").display().to_string(), token.display().to_string());
    let say = "printf '{\"said\":\"%s\"}\\n' \"$PWD $*\"; exec cat";
    let cases: [&[&str]; 3] = [
        &["--cwd", &there, "sh", "-c", say, "sh", "acp", "--model", "x", "-q"],
        &["sh", "-c", say, "sh", "acp", "--model", "x", "-q", "--cwd", &there, "--token-file", &token],
        &["--token-file", &token, "--", "sh", "-c", say, "sh", "--cwd", "--port", "1", "--help"],
    ];
    let mut heard = String::new();
    let home = world.home().display().to_string();
    let mut world = world;
    for case in cases {
        let args: Vec<&str> = ["acp-bridge"].into_iter().chain(case.iter().copied()).collect();
        let mut server = Server::start(world, &args);
        let said = server.client().await.hear().await;
        heard.push_str(&format!("{}\n", said.replace(&home, "$HOME")));
        server.signal(Signal::SIGTERM);
        server.ended();
        world = server.into_world();
    }
    check(
        &heard,
        &expect![[r#"
        {"said":"$HOME/there acp --model x -q"}
        {"said":"$HOME/there acp --model x -q"}
        {"said":"$HOME/project --cwd --port 1 --help"}
    "#]],
    );
    assert_eq!(fs::read_to_string(token).expect("the token stays").len(), 64);
}

#[test]
fn command_that_cannot_be_served_is_an_error() {
    let world = nowhere();
    let refused = |args: &[&str], expected: &Expect| {
        let args: Vec<&str> = ["acp-bridge"].into_iter().chain(args.iter().copied()).collect();
        check_refused(&world, &args, expected);
    };
    refused(
        &["no-such-agent", "acp"],
        &expect![[r#"
            Some(2) error: the program no-such-agent was not found
            hint: give the command that starts the agent, such as `acp-bridge codex-acp`
        "#]],
    );
    refused(
        &["./missing"],
        &expect![[r#"
            Some(2) error: the program ./missing was not found
            hint: give the command that starts the agent, such as `acp-bridge codex-acp`
        "#]],
    );
    refused(
        &["--cwd", "missing", "cat"],
        &expect![[r#"
            Some(2) error: the directory $HOME/project/missing does not exist
        "#]],
    );
    refused(
        &["--host", "no host", "cat"],
        &expect![[r#"
        Some(2) error: could not listen on no host: unknown host
    "#]],
    );
    refused(
        &["--log-file", "/missing/log", "cat"],
        &expect![[r#"
        Some(1) error: could not write the log /missing/log: No such file or directory (os error 2)
    "#]],
    );
    refused(
        &["--token-file", "/missing/token", "cat"],
        &expect![[r#"
        Some(1) error: could not use the token file /missing/token: No such file or directory (os error 2)
    "#]],
    );
    let short = world.home().join("short");
    fs::write(&short, "short").expect("a file");
    fs::set_permissions(&short, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its mode");
    refused(
        &["--token-file", &short.display().to_string(), "cat"],
        &expect![[r#"
        Some(1) error: could not use the token file $HOME/short: a token has 16 to 4096 printable ASCII characters and no spaces
    "#]],
    );
}

#[test]
fn address_that_is_unavailable_is_an_error_and_leaves_no_token() {
    let world = nowhere();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let port = address.port().to_string();
    check_refused(
        &world,
        &["acp-bridge", "--host", "192.0.2.1", "cat"],
        &expect![[r#"
        Some(1) error: could not listen on 192.0.2.1:0: Cannot assign requested address (os error 99)
    "#]],
    );
    for args in [&["acp-bridge", "--port", &port, "cat"][..], &["acp", "--listen", &address.to_string()]] {
        let output = command(&world, args).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).replace(&port, "PORT");
        let said = format!("{:?} {said}", output.status.code());
        check(
            &said,
            &expect![[r#"
            Some(1) error: could not listen on 127.0.0.1:PORT: Address already in use (os error 98)
        "#]],
        );
    }
    let left = fs::read_dir(world.home().join(".crow")).expect("the folder").flatten();
    let left: Vec<_> = left.filter(|entry| entry.path().extension().is_some_and(|e| e == "token")).collect();
    assert!(left.is_empty(), "{left:?}");
}

const SCRIPT: &str = "text \"Let me look. \" | call read {\"file_path\": \"a.txt\"}\ntext \"It says one.\"";

async fn whole_turn(args: &[&str]) -> (String, String) {
    let models = ModelServer::start(SCRIPT);
    let world = TestHome::new(models.base_url());
    world.add_config("permissions: { mode: auto, sandbox: off }");
    world.write_file("a.txt", "one\n");
    let project = world.project();
    let server = Server::start(world, args);
    let mut client = server.client().await;
    let first = client.turn(&project, "What does a.txt say?").await;
    models.replace_answers(SCRIPT);
    let mut second = server.client().await;
    let second_turn = second.turn(&project, "What does a.txt say?").await;
    assert_eq!(models.rejections(), Vec::<String>::new(), "the model refused a request");
    (first, second_turn)
}

#[tokio::test]
async fn turn_runs_through_the_bridge_and_acp_listen() {
    let crow = env!("CARGO_BIN_EXE_crow-cli");
    let bridged = whole_turn(&["acp-bridge", crow, "acp"]).await;
    let served = whole_turn(&["acp", "--listen", "127.0.0.1:0"]).await;
    check(
        &bridged.0,
        &expect![[r#"
        agent_message_chunk  Let me look. 
        tool_call  Read a.txt
        tool_call_update in_progress 
        tool_call_update completed 
        agent_message_chunk  It says one.
        "end_turn""#]],
    );
    assert_eq!(bridged.0, bridged.1);
    assert_eq!(bridged, served);
}

#[tokio::test]
async fn acp_listen_answers_initialize_before_later_requests() {
    let world = nowhere();
    let project = world.project();
    let server = Server::start(world, &["acp", "--listen", "127.0.0.1:0"]);
    let mut client = server.client().await;
    let asked = [
        ("initialize", json!({"protocolVersion": 1})),
        ("session/list", json!({})),
        ("session/new", json!({"cwd": project, "mcpServers": []})),
    ];
    for (method, params) in &asked {
        client
            .say(json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).to_string())
            .await;
    }
    let mut answered = Vec::new();
    while answered.len() < asked.len() {
        let said: Value = serde_json::from_str(&client.hear().await).expect("it is a message");
        assert_eq!(said.get("error"), None, "{said}");
        answered.extend(said["id"].as_str().map(str::to_owned));
    }
    assert_eq!(answered[0], "initialize");
    answered.sort();
    assert_eq!(answered, ["initialize", "session/list", "session/new"]);
}

#[tokio::test]
async fn acp_listen_ends_with_its_turns() {
    let models = ModelServer::start("text \"Let me \" | hold | text \"think.\"");
    let world = TestHome::new(models.base_url());
    let project = world.project();
    let mut server = Server::start(world, &["acp", "--listen", "127.0.0.1:0"]);
    let mut client = server.client().await;
    let turning = tokio::spawn(async move {
        let mut heard = Vec::new();
        client.begin(&project, "go").await;
        loop {
            let said = client.hear().await;
            if said.contains("Let me") {
                heard.push("Let me".to_owned());
                return (client, heard);
            }
        }
    });
    let (mut client, _) = turning.await.expect("it speaks");
    server.signal(Signal::SIGTERM);
    let last = loop {
        let said = client.hear().await;
        if !said.starts_with('{') {
            break said;
        }
    };
    check(&last, &expect!["close 1001: the server is shutting down"]);
    assert_eq!(server.ended().0.code(), Some(0));
}

#[tokio::test]
async fn log_has_the_reason_for_a_disconnect() {
    let world = nowhere();
    let log = world.home().join("bridge.log");
    let server = Server::start(
        world,
        &["acp-bridge", "--log-file", &log.display().to_string(), "sh", "-c", &leashed()],
    );
    let mut leash = TrackedCommand::new(&server.world.project());
    let mut client = server.client().await;
    started(&mut client).await;
    drop(client);
    leash.wait_until_gone("cut off").await;
    let mut server = server;
    server.signal(Signal::SIGTERM);
    server.ended();
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(logged.contains("the other side disconnected without closing the connection"), "{logged}");
}

#[tokio::test]
async fn acp_listen_accepts_a_host_name() {
    let server = Server::start(nowhere(), &["acp", "--listen", "localhost:0"]);
    check(&server.url.replace(&server.port().to_string(), "PORT"), &expect!["ws://localhost:PORT/acp"]);
    for wrong in ["localhost", "::1:80", ":80", "h:x"] {
        let output = command(&nowhere(), &["acp", "--listen", wrong]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("expected HOST:PORT, such as"), "{wrong}: {said}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn bridge_that_cannot_print_its_address_does_not_serve() {
    let world = nowhere();
    for args in [&["acp", "--listen", "127.0.0.1:0"][..], &["acp-bridge", "cat"]] {
        let (reader, stdout) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(&world, args).stdout(stdout).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        check(
            &format!("{:?} {said}", output.status.code()),
            &expect![[r#"
            Some(1) error: could not announce the address on stdout: Broken pipe (os error 32)
        "#]],
        );
    }
}

#[test]
fn address_reachable_from_elsewhere_is_a_warning() {
    let world = nowhere();
    let mut server = Server::start(world, &["acp-bridge", "--host", "0.0.0.0", "cat"]);
    server.signal(Signal::SIGTERM);
    let port = server.port().to_string();
    let (ended, said) = server.ended();
    assert_eq!(ended.code(), Some(0));
    check(
        &said.replace(&port, "PORT"),
        &expect![[r#"
            warning: 0.0.0.0:PORT is reachable from other machines without encryption: the token can be read on the network
        "#]],
    );
}
