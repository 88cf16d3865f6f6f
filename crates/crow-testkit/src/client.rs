//! A fake editor: starts the real binary, speaks raw JSON lines with it, and keeps what it hears as text.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "an editor starts its agents as it likes, with the tests' own PATH"
)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long anything may take before a test says what it was waiting for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Characters of a result that a log shows.
const SHOWN_CHARS: usize = 160;

/// A client of one agent process.
#[derive(Debug)]
pub struct FakeClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// What to answer to the next permission questions; allowed once when there is no answer left.
    pub answers: VecDeque<String>,
    log: Vec<String>,
    hidden: Vec<(String, String)>,
}

/// What a request came to.
pub type Answered = Result<Value, Value>;

impl FakeClient {
    /// Starts `binary acp` with `home` as its world and says hello.
    pub async fn start(binary: &Path, home: &Path) -> Self {
        let mut client = Self::start_silent(binary, home);
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "fake", "version": "1"}});
        client.request("initialize", hello).await.expect("the agent says hello");
        client
    }

    /// Starts `binary acp` and says nothing.
    pub fn start_silent(binary: &Path, home: &Path) -> Self {
        let mut command = Command::new(binary);
        command.arg("acp");
        Self::start_command(command, home)
    }

    /// Starts a command that becomes an agent on stdio and says nothing.
    pub fn start_command(mut command: Command, home: &Path) -> Self {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the binary starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            next_id: 0,
            answers: VecDeque::new(),
            log: Vec::new(),
            hidden: vec![(home.display().to_string(), "$HOME".into())],
        }
    }

    /// The process id of the agent.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the agent runs")
    }

    /// Replaces a text in everything logged from here on.
    pub fn hide(&mut self, text: impl Into<String>, by: impl Into<String>) {
        self.hidden.insert(0, (text.into(), by.into()));
    }

    /// Opens a session and gives its id.
    pub async fn new_session(&mut self, cwd: &Path) -> String {
        let opened = self.request("session/new", json!({"cwd": cwd, "mcpServers": []})).await;
        let session =
            opened.expect("a session opens")["sessionId"].as_str().expect("it has an id").to_owned();
        self.hide(&session, "$SESSION");
        session
    }

    /// Sends a line as it is.
    pub async fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("the agent reads");
        stdin.flush().await.expect("the agent reads");
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// Sends a request and gives its id at once.
    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
            .await;
        id
    }

    /// Sends a request and waits for its answer, hearing updates meanwhile.
    pub async fn request(&mut self, method: &str, params: Value) -> Answered {
        let id = self.send(method, params).await;
        self.answer_to(id).await
    }

    /// Waits for the answer to a request.
    pub async fn answer_to(&mut self, id: u64) -> Answered {
        loop {
            let message = self.next_message().await;
            if message["id"] == json!(id) && message.get("method").is_none() {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Hears until a logged line contains `text`.
    pub async fn until(&mut self, text: &str) {
        while !self.log.iter().any(|line| line.contains(text)) {
            self.next_message().await;
        }
    }

    /// Reads the next message, logs it if it is an update and answers it if it is a question.
    pub async fn next_message(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("nothing came after:\n{}", self.log.join("\n")));
        let line = line.expect("stdout can be read").expect("the agent still talks");
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a protocol line: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "not a protocol line: {line}");
        match message["method"].as_str() {
            Some("session/update") => self.log_update(&message["params"]["update"]),
            Some("session/request_permission") => self.decide(&message).await,
            Some("$/cancel_request") => self.say("< takes its question back"),
            Some(other) => panic!("the agent calls {other}, which this client never offered"),
            None => {}
        }
        message
    }

    async fn decide(&mut self, message: &Value) {
        let options = message["params"]["options"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&str> = options.iter().filter_map(|option| option["optionId"].as_str()).collect();
        let title = message["params"]["toolCall"]["title"].as_str().unwrap_or_default();
        let answer = self.answers.pop_front().unwrap_or_else(|| "allow_once".into());
        self.say(format!("? {title} [{}] -> {answer}", ids.join(", ")));
        let (field, value) = match answer.as_str() {
            "silence" => return,
            "null" => ("result", Value::Null),
            "error" => ("error", json!({"code": -32603, "message": "the dialog broke"})),
            "cancelled" => ("result", json!({"outcome": {"outcome": "cancelled"}})),
            chosen => ("result", json!({"outcome": {"outcome": "selected", "optionId": chosen}})),
        };
        let mut response = json!({"jsonrpc": "2.0", "id": message["id"]});
        response[field] = value;
        self.send_line(&response.to_string()).await;
    }

    /// Adds a line of the test's own.
    pub fn say(&mut self, line: impl Into<String>) {
        let mut line = line.into();
        for (text, by) in &self.hidden {
            line = line.replace(text, by);
        }
        self.log.push(line);
    }

    /// Everything heard so far, one line each; chunks of one message are one line.
    pub fn log(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for line in &self.log {
            let head = |line: &str| line.split_once("] ").map(|(head, _)| head.to_owned());
            let is_chunk = line.starts_with("< text[") || line.starts_with("< thought[");
            match lines.last_mut() {
                Some(last) if is_chunk && head(last) == head(line) => {
                    last.push_str(line.split_once("] ").map_or("", |(_, text)| text));
                }
                _ => lines.push(line.clone()),
            }
        }
        // Calls that run side by side end in any order.
        for run in lines.chunk_by_mut(|a, b| is_settled_call(a) && is_settled_call(b)) {
            run.sort();
        }
        lines.join("\n") + "\n"
    }

    fn log_update(&mut self, update: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = match update["sessionUpdate"].as_str().unwrap_or_default() {
            kind @ ("agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk") => {
                let name = match kind {
                    "agent_message_chunk" => "text",
                    "agent_thought_chunk" => "thought",
                    _ => "prompt",
                };
                let shown = text(&update["content"]["text"]).replace('\n', "⏎");
                format!("< {name}[{}] {shown}", text(&update["messageId"]))
            }
            "tool_call" => format!(
                "< call {} {} {:?} {} {}{}",
                text(&update["toolCallId"]),
                text(&update["name"]),
                text(&update["title"]),
                update["status"].as_str().unwrap_or("pending"),
                update["rawInput"],
                contents(&update["content"]),
            ),
            "tool_call_update" if update["status"] == "in_progress" && update.get("content").is_some() => {
                // How often a running program is looked at is chance.
                format!("~ {}", contents(&update["content"]))
            }
            "tool_call_update" => format!(
                "< call {} {}{}",
                text(&update["toolCallId"]),
                text(&update["status"]),
                contents(&update["content"]),
            ),
            "plan" => {
                let entries = update["entries"].as_array().cloned().unwrap_or_default();
                let entries = entries
                    .iter()
                    .map(|entry| format!("{} {}", text(&entry["status"]), text(&entry["content"])));
                format!("< plan {}", entries.collect::<Vec<_>>().join(", "))
            }
            "session_info_update" => format!("< title {}", text(&update["title"])),
            "usage_update" => format!("< usage {}/{}", update["used"], update["size"]),
            "current_mode_update" => format!("< mode {}", text(&update["currentModeId"])),
            "available_commands_update" => return,
            other => format!("< {other}"),
        };
        self.say(line);
    }

    /// Ends the process as a power cut would.
    pub async fn kill(mut self) -> String {
        self.child.kill().await.expect("the agent can be killed");
        self.log()
    }

    /// Closes stdin and waits for the process to end by itself.
    pub async fn hang_up(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.end().await
    }

    /// Waits for the process to end while its client still listens.
    pub async fn end(mut self) -> std::process::ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("the agent ends when its client does").expect("it can be waited for")
    }
}

fn is_settled_call(line: &str) -> bool {
    line.starts_with("< call ")
        && (line.contains(" completed") || line.contains(" failed"))
        && !line.contains('{')
}

fn contents(content: &Value) -> String {
    let items = content.as_array().cloned().unwrap_or_default();
    let shown = items.iter().map(|item| match item["type"].as_str() {
        Some("diff") => {
            format!(
                " diff {} {} -> {}",
                item["path"].as_str().unwrap_or_default(),
                item["oldText"],
                item["newText"]
            )
        }
        _ => {
            let text: String =
                item["content"]["text"].as_str().unwrap_or_default().chars().take(SHOWN_CHARS).collect();
            format!(" {text:?}")
        }
    });
    shown.collect()
}

/// A folder that is a whole world for one agent: home, configuration and project.
#[derive(Debug)]
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// Makes a world whose only model is at `base_url`.
    pub fn new(base_url: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().expect("a folder can be made") };
        std::fs::create_dir_all(world.project()).expect("a folder can be made");
        world.configure(&format!(
            "providers:\n  fake: {{ base_url: {base_url} }}\nmodels:\n  scripted: {{ provider: fake, model: scripted, context_window: 8000 }}\nmax_retries_per_step: 0\n"
        ));
        world
    }

    /// Writes the configuration.
    pub fn configure(&self, yaml: &str) {
        let folder = self.home().join(".crow");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        std::fs::write(folder.join("config.yaml"), yaml).expect("the configuration can be written");
    }

    /// The home folder, by its real path.
    pub fn home(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).expect("the folder is there")
    }

    /// The folder the agent works in.
    pub fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Writes a file of the project.
    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.project().join(name), text).expect("the file can be written");
    }
}
