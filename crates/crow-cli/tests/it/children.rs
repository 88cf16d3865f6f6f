//! Child agents: the user's view of them, the model's view, and the processes that remain.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

mod client_access;
mod external_questions;
mod killed;
mod limits;
mod messages;
mod misbehaving;
mod nested;
mod success;

use std::path::Path;
use std::time::Duration;

use crow_testkit::client::{FakeClient, TestHome, task_names};
use crow_testkit::golden::play;
use crow_testkit::tracked_command::TrackedCommand;
use crow_testkit::{ModelServer, agent};
use expect_test::Expect;
use nix::sys::stat::Mode;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// The longest start of a command on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A child in this mode asks no questions.
const AUTO: &str = "permissions: { mode: auto }";

/// The agent may be started; its questions come to the user.
const ASKS: &str = r#"permissions: { allow: ["tool(task)", "mcp(other)"] }"#;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

/// Returns a line of configuration with an agent `other` that behaves as specified.
fn other_agent(words: &[&str]) -> String {
    let (command, args) = agent::command(words);
    format!("agent_servers: {}", json!({"other": {"command": command, "args": args}}))
}

/// Runs a script in a home with an agent `other` that behaves as specified.
#[track_caller]
fn check(words: &[&str], script: &str, transcript: &Expect) {
    let script = format!("config: {}\n{script}", other_agent(words));
    transcript.assert_eq(&run(play(&binary(), &script)));
}

#[track_caller]
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test)
}

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    session: String,
    leash: TrackedCommand,
    ready: pipe::Receiver,
}

impl Stage {
    /// Starts a session with a scripted model.
    async fn start(config: &[&str], script: &str) -> Self {
        let server = ModelServer::start(script);
        let world = TestHome::new(server.base_url());
        world.add_config(&config.join("\n"));
        let leash = TrackedCommand::new(&world.project());
        let ready = world.project().join("ready");
        nix::unistd::mkfifo(&ready, Mode::S_IRWXU).expect("a pipe can be made");
        // A reader that can also write does not see end-of-file when a writer closes.
        let ready = pipe::OpenOptions::new().read_write(true).open_receiver(ready).expect("the pipe opens");
        let mut client = FakeClient::start(binary(), &world.home()).await;
        let session = client.new_session(&world.project()).await;
        Self { server, world, client, session, leash, ready }
    }

    /// Sends a prompt; returns the stop reason.
    async fn say(&mut self, text: &str) -> String {
        let id = self.client.prompt(&self.session, text).await;
        self.end_of(id).await
    }

    async fn end_of(&mut self, id: u64) -> String {
        match self.client.response_to(id).await {
            Ok(ended) => ended["stopReason"].as_str().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn cancel(&mut self) {
        self.client.notify("session/cancel", json!({"sessionId": self.session})).await;
    }

    /// Waits until the tracked command runs.
    async fn leashed(&mut self) {
        let ready = tokio::time::timeout(PATIENCE, self.ready.read_u8()).await;
        assert_eq!(ready.expect("the command starts in time").expect("the pipe can be read"), b'.');
        assert!(self.leash.is_running(), "the command holds its pipe");
    }

    /// Starts a new agent in the same home and loads the session there.
    async fn elsewhere(&self) -> FakeClient {
        let capabilities = json!({"session": {"notices": {}}});
        let mut client = FakeClient::start_with(binary(), &self.world.home(), capabilities).await;
        client.load_session(&self.session, &self.world.project()).await.expect("the session loads");
        client
    }

    /// Returns the name of the latest task.
    fn task(&self) -> String {
        let told = self.client.updates.iter().rev().find_map(|(_, update)| {
            let text = update["content"][0]["content"]["text"].as_str()?;
            text.strip_prefix("Task ")?.split_once(' ')
        });
        told.expect("a task has begun").0.to_owned()
    }

    /// Returns the last message to the model in the conversation that begins with a prompt.
    fn told(&self, beginning: &str) -> String {
        let requests = self.server.requests();
        let of_it = requests.iter().rev().find(|request| {
            let said = |message: &&Value| message["role"] == "user";
            let first = request["messages"].as_array().into_iter().flatten().find(said);
            first.is_some_and(|first| first["content"].to_string().contains(beginning))
        });
        let messages =
            of_it.expect("the model was asked")["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().expect("it was asked with words");
        self.hidden(last["content"].as_str().unwrap_or_default())
    }

    /// Masks the varying parts of a text.
    fn hidden(&self, text: &str) -> String {
        task_names::mask_task_names(&text.replace(&self.world.home().display().to_string(), "$HOME"))
    }

    /// Checks that the model rejected no request and that no process is left.
    async fn clean(&mut self, when: &str) {
        self.leash.wait_until_gone(when).await;
        assert_eq!(self.server.rejections(), Vec::<String>::new(), "{when}: the model refused a request");
    }
}

/// Returns a call of a command that signals its start and then waits.
fn leashed_call() -> String {
    let command = format!("exec 9>held; printf . >ready; {}", TrackedCommand::COMMAND);
    format!("call terminal {}", json!({"command": command}))
}

/// Returns the output of the binary in the same home.
async fn crow(stage: &Stage, args: &[&str]) -> String {
    let mut command = tokio::process::Command::new(binary());
    command.args(args).env("HOME", stage.world.home()).current_dir(stage.world.project());
    let ran = command.output().await.expect("the binary starts");
    let lines = String::from_utf8_lossy(&ran.stdout).into_owned();
    let lines = lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n");
    stage.hidden(&lines.collect::<String>())
}
