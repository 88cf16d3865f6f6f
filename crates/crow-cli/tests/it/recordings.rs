//! `CROW_RECORD`: a recorded session can be replayed, and its files contain no key.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{Answer, ModelServer, Script};

const KEY: &str = "sk-live-0123456789abcdef";

const HEADER: &str = "tenant-0123456789abcdef";

/// Returns a home whose provider needs a key and a header.
fn keyed(server: &ModelServer) -> TestHome {
    let world = TestHome::new(server.base_url());
    world.configure(&format!(
        "providers:\n  fake: {{ base_url: {}, api_key: \"${{FAKE_API_KEY}}\", headers: {{ X-Tenant: {HEADER} }} }}\nmodels:\n  scripted: {{ provider: fake, model: scripted, context_window: 32000, tools: full }}\nmax_retries_per_step: 1\npermissions: {{ mode: auto }}\n",
        server.base_url()
    ));
    std::fs::write(world.home().join(".crow/.env"), format!("FAKE_API_KEY={KEY}\n"))
        .expect("it can be written");
    world.write_file("a.txt", "apples\n");
    world
}

/// Runs a session; returns all updates. `folder` is the directory of the recording.
#[expect(clippy::disallowed_methods, reason = "an editor starts the program as it likes")]
async fn play(world: &TestHome, folder: Option<&Path>) -> String {
    let mut command = tokio::process::Command::new("env");
    command.args(folder.map(|folder| format!("CROW_RECORD={}", folder.display())));
    command.args([env!("CARGO_BIN_EXE_crow-cli"), "acp"]);
    let mut client = FakeClient::start_command(command, &world.home());
    client.initialize(serde_json::json!({})).await.expect("the agent says hello");
    let session = client.new_session(&world.project()).await;
    for text in ["read it", "and now?"] {
        let id = client.prompt(&session, text).await;
        client.response_to(id).await.expect("the turn ends");
    }
    let log = client.log();
    client.kill().await;
    log
}

#[tokio::test]
async fn recorded_session_is_replayed_elsewhere() {
    let echo = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"You sent {KEY} for {HEADER}.\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let server = ModelServer::start(Script::new([
        Answer::parse(r#"text "I look." | call read {"file_path":"a.txt"} | usage 100 20"#),
        Answer::parse(r#"header "retry-after" "0" | status 503 {"error":{"message":"busy"}}"#),
        Answer::raw(echo).split(7),
        Answer::parse(r#"thought "Hm." | text "Fine." | usage 150 5"#),
    ]));
    let world = keyed(&server);
    let folder = world.home().join("recorded");
    let live = play(&world, Some(&folder)).await;
    assert!(live.contains(KEY), "{live}");
    assert_eq!(server.rejections(), Vec::<String>::new(), "the model refused a request");

    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("it is there")
        .map(|file| file.expect("it is there").path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in &files {
        let text = std::fs::read_to_string(file).expect("it can be read");
        assert!(!text.contains(KEY) && !text.contains(HEADER), "{}: {text}", file.display());
        assert!(!text.to_ascii_lowercase().contains("authorization"), "{}: {text}", file.display());
    }
    let second = std::fs::read_to_string(&files[2]).expect("it can be read");
    assert!(second.contains("[secret]") && second.ends_with("\n"), "{second}");

    let server = ModelServer::replay(&folder);
    let again = play(&keyed(&server), None).await;
    assert_eq!(server.rejections(), Vec::<String>::new(), "something else was asked");
    assert_eq!(again, live.replace(KEY, "[secret]").replace(HEADER, "[secret]"));
}

#[tokio::test]
async fn directory_that_cannot_be_used_is_reported() {
    let server = ModelServer::start("text \"Hello\"");
    let world = keyed(&server);
    #[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_crow-cli"))
        .args(["run", "hello"])
        .current_dir(world.project())
        .env_clear()
        .env("HOME", world.home())
        .env("CROW_RECORD", world.project().join("a.txt"))
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&said.stderr);
    assert!(told.contains("could not record in ") && told.contains("CROW_RECORD"), "{told}");
    assert_eq!((said.status.code(), server.n_requests()), (Some(3), 0), "{told}");
}
