//! The programs that get keys from the environment, and the processes in which keys are visible.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

use std::path::Path;

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{ModelServer, Script};
use serde_json::{Value, json};
use tokio::process::Command;

/// A part of every secret value. Only Crow and its children have it in their environment.
fn mark() -> String {
    format!("canary-{}-x", std::process::id())
}

/// Variables that a command must not have.
const SECRETS: [&str; 5] =
    ["PROVIDER_LOGIN", "ANTHROPIC_AUTH_TOKEN", "DEEPSEEK_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"];

/// Counts the processes in which the mark can be read; the mark is split so that the command itself does not match.
fn search() -> String {
    let mark = mark();
    let (front, back) = mark.split_at(4);
    format!(
        "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f | grep -q {front}''{back} && echo seen; done 2>/dev/null; \
         env | grep -c {front}''{back}; echo over"
    )
}

/// Starts the program with secrets in its environment.
fn with_secrets(words: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(SECRETS.map(|name| format!("{name}={}", mark())));
    command.arg(env!("CARGO_BIN_EXE_crow-cli")).args(words);
    command
}

fn world(model: &ModelServer) -> TestHome {
    world_with(model, "mode: auto, sandbox: off")
}

fn world_with(model: &ModelServer, permissions: &str) -> TestHome {
    let world = TestHome::new(model.base_url());
    world.configure(&format!(
        "providers:\n  fake: {{ base_url: {}, api_key: '${{PROVIDER_LOGIN}}' }}\nmodels:\n  scripted: {{ provider: fake, model: scripted, context_window: 32000, tools: full }}\nmax_retries_per_step: 0\npermissions: {{ {permissions} }}\n",
        model.base_url()
    ));
    world
}

/// Returns the last result that the model received.
fn told(model: &ModelServer) -> String {
    let results = model.requests().into_iter().flat_map(|request| {
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        messages.into_iter().filter(|message| message["role"] == "tool").collect::<Vec<Value>>()
    });
    let results: Vec<String> = results.map(|message| message["content"].to_string()).collect();
    results.into_iter().find(|text| text.contains("over")).expect("a command was run")
}

#[track_caller]
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test)
}

async fn play(model: &ModelServer, world: &TestHome, capabilities: Value) {
    let mut client = FakeClient::start_command(with_secrets(&["acp"]), &world.home());
    client.initialize(capabilities).await.expect("the agent says hello");
    let session = client.new_session(&world.project()).await;
    let id = client.prompt(&session, "go").await;
    client.response_to(id).await.expect("the turn ends");
    assert_eq!(model.rejections(), Vec::<String>::new());
}

#[test]
fn commands_see_no_key_in_the_environment_or_in_a_process() {
    run(async {
        let call = json!({"command": search()});
        let model = ModelServer::start(Script::parse(&format!("call terminal {call}\ntext \"Done.\"")));
        play(&model, &world(&model), json!({})).await;
        assert!(model.request_heads()[0].contains(&mark()), "the provider gets its key");
        assert_eq!(told(&model), "\"0\\nover\\n\"");
    });
}

/// Agents that are Crow need the keys, and do not reveal them either.
#[test]
fn child_agent_has_the_key_and_does_not_reveal_it() {
    run(async {
        let model = ModelServer::start("call task {\"prompt\":\"ALPHA\"}\ntext \"Done.\"");
        let call = json!({"command": search()});
        model.add_answers_for("ALPHA", Script::parse(&format!("call terminal {call}\ntext \"Seen.\"")));
        play(&model, &world(&model), json!({})).await;
        assert!(model.request_heads().iter().all(|head| head.contains(&mark())), "each agent has the key");
        assert_eq!(told(&model), "\"0\\nover\\n\"");
    });
}

/// The environment of a client's terminal belongs to the client: its secrets are removed there.
#[test]
fn commands_in_client_terminals_get_no_key() {
    run(async {
        let list = "env | grep -c -e PROVIDER_LOGIN -e MY_FORGE_TOKEN; env | grep VISIBLE; echo over";
        let start = format!(
            "{} sandbox-exec --free --hide-secrets --hide PROVIDER_LOGIN -- /bin/sh -c '{list}'",
            env!("CARGO_BIN_EXE_crow-cli")
        );
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &start]);
        command.env("PROVIDER_LOGIN", "x").env("MY_FORGE_TOKEN", "x").env("VISIBLE", "yes");
        let output = command.output().await.expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\nVISIBLE=yes\nover\n");
        let call = json!({"command": "env | grep -e LOGIN -e DEEPSEEK; tr '\\0' ' ' < /proc/$PPID/cmdline; echo over"});
        let freely = told_in_terminal(&call, "mode: auto, sandbox: off").await;
        let is_emptied =
            ["DEEPSEEK_KEY=\\n", "PROVIDER_LOGIN=\\n"].iter().all(|empty| freely.contains(empty));
        assert!(is_emptied && !freely.contains("sandbox-exec"), "{freely}");
        let held = told_in_terminal(&call, "mode: auto").await;
        assert!(!held.contains("_KEY=") && !held.contains("LOGIN="), "{held}");
        assert!(held.contains("--hide-secrets --hide PROVIDER_LOGIN"), "{held}");
    });
}

/// Returns the output of a command in a client's terminal.
async fn told_in_terminal(call: &Value, permissions: &str) -> String {
    let model = ModelServer::start(Script::parse(&format!("call terminal {call}\ntext \"Done.\"")));
    let world = world_with(&model, permissions);
    let mut client = FakeClient::start_command(with_secrets(&["acp"]), &world.home());
    client.initialize(json!({"terminal": true})).await.expect("the agent says hello");
    let session = client.new_session(&world.project()).await;
    let id = client.prompt(&session, "go").await;
    client.response_to(id).await.expect("the turn ends");
    told(&model)
}

/// Returns the secrets of a running server that another program can find.
#[test]
fn server_reveals_no_key() {
    run(async {
        let model = ModelServer::start("");
        let world = world(&model);
        let mut command = with_secrets(&["mcp"]);
        let mut child = command
            .env("HOME", world.home())
            .current_dir(world.project())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (mut stdin, stdout) = (stdin.expect("it is piped"), stdout.expect("it is piped"));
        tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{hello}\n").as_bytes())
            .await
            .expect("it reads");
        let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
        lines.next_line().await.expect("it answers").expect("it answers");
        let pid = child.id().expect("it runs");
        let visible =
            std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).expect("it is ours");
        assert!(!String::from_utf8_lossy(&visible).contains(&mark()), "a key can be seen");
    });
}
