//! The content of the log, and of the logs of single sessions.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crow_testkit::ModelServer;
use crow_testkit::client::{FakeClient, TestHome};
use expect_test::expect;

/// Calls with repaired, doubtfully repaired, rejected and unknown arguments.
const CALLS: &str = r#"
    call read "{file_path: \"secret-one.txt\"}"
    call write "{\"file_path\":\"a.txt\",\"content\":\"secret-two"
    call read "secret-three"
    call read {"secret-four":"x","file_path":"a.txt"}
    text "Done."
"#;

async fn play(world: &TestHome) -> Vec<String> {
    let mut client = FakeClient::start(Path::new(env!("CARGO_BIN_EXE_crow-cli")), &world.home()).await;
    let mut sessions = Vec::new();
    for prompt in ["go", "again"] {
        let session = client.new_session(&world.project()).await;
        let id = client.prompt(&session, prompt).await;
        client.response_to(id).await.expect("the turn ends");
        sessions.push(session);
    }
    assert!(client.close_stdin().await.success());
    sessions
}

/// Returns the lines of a log about calls or turns, without their times.
fn lines(text: &str) -> String {
    let lines = text.lines().filter(|line| line.contains("arguments") || line.contains("a turn "));
    let lines = lines.filter_map(|line| line.split_once(' ')).map(|(_, line)| format!("{}\n", line.trim()));
    lines.collect()
}

#[tokio::test]
async fn repairs_of_calls_are_logged_without_their_content() {
    let server = ModelServer::start(&*format!("{CALLS}\ntext \"Again.\""));
    let world = TestHome::new(server.base_url());
    let sessions = play(&world).await;
    let folder = world.home().join(".crow/logs");
    let text = fs::read_to_string(folder.join("crow-cli.log")).expect("there is a log");
    let said =
        sessions.iter().zip(["$A", "$B"]).fold(lines(&text), |said, (id, name)| said.replace(id, name));
    expect![[r#"
        INFO crow_agent::turn_job: a turn begins session=$A
        WARN crow_tools::registry: malformed arguments were repaired tool="read"
        WARN crow_tools::registry: rejected malformed arguments tool="write" doubt=TruncatedString
        WARN crow_tools::registry: rejected unreadable arguments tool="read"
        WARN crow_tools::registry: rejected arguments that do not match the tool's schema tool="read"
        INFO crow_agent::turn_job: a turn ended session=$A end=Completed
        INFO crow_agent::turn_job: a turn begins session=$B
        INFO crow_agent::turn_job: a turn ended session=$B end=Completed
    "#]]
    .assert_eq(&said);
    assert!(!text.contains("secret"), "{text}");
    assert!(!folder.join("sessions").exists(), "no more was requested");
}

#[tokio::test]
async fn session_has_its_own_log_when_configured() {
    let server = ModelServer::start(&*format!("{CALLS}\ntext \"Again.\""));
    let world = TestHome::new(server.base_url());
    world.add_config("session_logs: true");
    let sessions = play(&world).await;
    let folder = world.home().join(".crow/logs/sessions");
    let log =
        |session: &str| fs::read_to_string(folder.join(format!("{session}.log"))).expect("there is a log");
    expect![[r#"
        INFO crow_agent::turn_job: a turn begins
        WARN crow_tools::registry: malformed arguments were repaired tool="read"
        WARN crow_tools::registry: rejected malformed arguments tool="write" doubt=TruncatedString
        WARN crow_tools::registry: rejected unreadable arguments tool="read"
        WARN crow_tools::registry: rejected arguments that do not match the tool's schema tool="read"
        INFO crow_agent::turn_job: a turn ended end=Completed
    "#]]
    .assert_eq(&lines(&log(&sessions[0])));
    expect![[r#"
        INFO crow_agent::turn_job: a turn begins
        INFO crow_agent::turn_job: a turn ended end=Completed
    "#]]
    .assert_eq(&lines(&log(&sessions[1])));
    assert!(!log(&sessions[0]).contains("secret"));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let file = folder.join(format!("{}.log", sessions[0]));
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
}
