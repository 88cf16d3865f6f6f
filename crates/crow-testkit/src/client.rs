//! A fake editor: starts the real binary, speaks raw JSON lines with it, and keeps what it hears as text.
//!
//! It believes nothing: every line is held against the protocol's schema, and a call of something that it
//! did not offer ends the test.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "an editor starts its agents as it likes, with the tests' own PATH"
)]

mod editor;
mod log;
pub mod names;
mod serving;
mod terminals;
#[cfg(test)]
mod tests;

pub use editor::{Editor, Odd};
pub use terminals::Lost;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use crate::contract::Contract;

/// How long anything may take before a test says what it was waiting for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends of commands that nobody has told the agent yet; more terminals than this wait their turn.
const ENDS_LEN: usize = 64;

/// A client of one agent process.
#[derive(Debug)]
pub struct FakeClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// What to answer to the next permission questions; allowed once when there is no answer left.
    pub answers: VecDeque<String>,
    /// What to answer to the next forms: a value on offer, own words, `declined` or `cancelled`; the first value when
    /// there is no answer left.
    pub forms: VecDeque<String>,
    /// What the client does for the agent.
    pub editor: Editor,
    /// Every update heard, as (session, update).
    pub updates: Vec<(String, Value)>,
    contract: Contract,
    /// Answers that nobody has asked for yet.
    answered: BTreeMap<u64, Answered>,
    /// Answers that go out after the next message.
    late: Vec<String>,
    /// Requests that wait for the end of a command, with how they are answered.
    waiting: BTreeMap<String, Option<Odd>>,
    ended: mpsc::Sender<End>,
    ends: mpsc::Receiver<End>,
    log: Vec<String>,
    hidden: Vec<(String, String)>,
}

/// A request that waited for the end of a command, and how that ended.
type End = (Value, Value);

/// What a request came to.
pub type Answered = Result<Value, Value>;

impl FakeClient {
    /// Starts `binary acp` with `home` as its world and says hello; offers nothing.
    pub async fn start(binary: &Path, home: &Path) -> Self {
        Self::start_with(binary, home, json!({})).await
    }

    /// Starts `binary acp` with `home` as its world, says hello and offers what the capabilities say.
    pub async fn start_with(binary: &Path, home: &Path, capabilities: Value) -> Self {
        let mut client = Self::start_silent(binary, home);
        client.hello(capabilities).await.expect("the agent says hello");
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
        let (ended, ends) = mpsc::channel(ENDS_LEN);
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            next_id: 0,
            answers: VecDeque::new(),
            forms: VecDeque::new(),
            editor: Editor::new(home),
            updates: Vec::new(),
            contract: Contract::default(),
            answered: BTreeMap::new(),
            late: Vec::new(),
            waiting: BTreeMap::new(),
            ended,
            ends,
            log: Vec::new(),
            hidden: vec![(home.display().to_string(), "$HOME".into())],
        }
    }

    /// Says hello with these capabilities; the client keeps to them from here on.
    pub async fn hello(&mut self, capabilities: Value) -> Answered {
        self.editor.offer(capabilities.clone());
        let hello = json!({
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "fake", "version": "1"},
        });
        self.request("initialize", hello).await
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

    /// Loads a session.
    pub async fn load(&mut self, session: &str, cwd: &Path) -> Answered {
        self.request("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})).await
    }

    /// Sends a prompt of text and gives its id at once.
    pub async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.prompt_with(session, json!([{"type": "text", "text": text}])).await
    }

    /// Sends a prompt, shows it as the client's own updates and gives its id at once.
    pub async fn prompt_with(&mut self, session: &str, blocks: Value) -> u64 {
        for block in blocks.as_array().into_iter().flatten() {
            let shown = json!({"sessionUpdate": "user_message_chunk", "content": block});
            self.updates.push((session.to_owned(), shown));
        }
        self.send("session/prompt", json!({"sessionId": session, "prompt": blocks})).await
    }

    /// Sends a line as it is.
    pub async fn send_line(&mut self, line: &str) {
        self.contract.said(line);
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

    /// Waits for the answer to a request; it may have come while another was waited for.
    pub async fn answer_to(&mut self, id: u64) -> Answered {
        loop {
            if let Some(answered) = self.answered.remove(&id) {
                return answered;
            }
            self.next_message().await;
        }
    }

    /// Hears until a logged line contains `text`.
    pub async fn until(&mut self, text: &str) {
        while !self.log.iter().any(|line| line.contains(text)) {
            self.next_message().await;
        }
    }

    /// Hears until every request has its answer.
    pub async fn settle(&mut self) {
        while !self.contract.unanswered().is_empty() {
            self.next_message().await;
        }
    }

    /// Reads the next message, logs it if it is an update and answers it if it is a question.
    pub async fn next_message(&mut self) -> Value {
        let line = loop {
            let heard = tokio::time::timeout(PATIENCE, async {
                tokio::select! {
                    line = self.lines.next_line() => Ok(line),
                    ended = self.ends.recv() => Err(ended),
                }
            });
            match heard.await {
                Ok(Ok(line)) => break line.expect("stdout can be read").expect("the agent still talks"),
                Ok(Err(ended)) => self.tell_end(ended.expect("this client holds the other end")).await,
                Err(_) => panic!("nothing came after:\n{}{:?}", self.log(), self.contract.unanswered()),
            }
        };
        let message = self.hear(&line);
        for answer in std::mem::take(&mut self.late) {
            self.send_line(&answer).await;
        }
        match message["method"].as_str() {
            Some("session/update") => self.take_update(&message["params"]),
            Some("session/request_permission") => self.decide(&message).await,
            Some("elicitation/create") => self.fill_in(&message).await,
            Some("$/cancel_request") => self.hear_taken_back(&message["params"]["requestId"]).await,
            Some(method) if message.get("id").is_some() => self.serve(method, &message).await,
            Some(_) => {}
            None => self.take_answer(&message),
        }
        message
    }

    fn hear(&mut self, line: &str) -> Value {
        let heard = self.contract.hear(line);
        heard.unwrap_or_else(|why| {
            panic!("the agent broke the protocol: {why}\nin {line}\nafter:\n{}", self.log())
        })
    }

    fn check_offered(&self, found: Option<String>) {
        if let Some(why) = found {
            panic!("{why}; after:\n{}", self.log());
        }
    }

    fn take_answer(&mut self, message: &Value) {
        self.check_offered(self.editor.unoffered_option(&message["result"]));
        if let Some(id) = message["id"].as_u64() {
            let answered = message.get("error").cloned().map_or_else(|| Ok(message["result"].clone()), Err);
            self.answered.insert(id, answered);
        }
    }

    fn take_update(&mut self, params: &Value) {
        let update = &params["update"];
        let found = self.editor.unoffered_update(update);
        self.check_offered(found);
        if let Some(line) = log::spelled(&self.without_names(update)) {
            self.say(line);
        }
        self.updates.push((params["sessionId"].as_str().unwrap_or_default().to_owned(), update.clone()));
    }

    fn without_hidden(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, (hidden, by)| text.replace(hidden, by))
    }

    /// Hides what is different each time before a text is cut.
    fn without_names(&self, update: &Value) -> Value {
        match update {
            Value::String(text) => names::hidden(&self.without_hidden(text)).into(),
            Value::Array(items) => items.iter().map(|item| self.without_names(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.without_names(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => update.clone(),
        }
    }

    /// Adds a line of the test's own.
    pub fn say(&mut self, line: impl Into<String>) {
        let line = self.without_hidden(&line.into());
        self.log.push(line);
    }

    /// Everything heard so far, one line each; chunks of one message are one line.
    pub fn log(&self) -> String {
        log::joined(&self.log)
    }

    /// Ends the process as a power cut would.
    pub async fn kill(mut self) -> String {
        self.child.kill().await.expect("the agent can be killed");
        self.log()
    }

    /// Ends the process as a power cut would, and hears what it had said by then.
    pub async fn crash(&mut self) {
        self.child.kill().await.expect("the agent can be killed");
        while let Ok(Some(line)) = self.lines.next_line().await {
            // The last line may be half of one.
            if serde_json::from_str::<Value>(&line).is_ok() {
                self.hear(&line);
            }
        }
    }

    /// Closes stdin and waits for the process to end by itself.
    pub async fn hang_up(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.end().await
    }

    /// Waits for the process to end while its client still listens.
    pub async fn end(mut self) -> ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = self.lines.next_line().await.expect("stdout can be read") {
                self.hear(&line);
            }
            self.child.wait().await.expect("it can be waited for")
        });
        ended.await.expect("the agent ends when its client does")
    }
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
            "providers:\n  fake: {{ base_url: {base_url} }}\nmodels:\n  scripted: {{ provider: fake, model: scripted, context_window: 32000 }}\nmax_retries_per_step: 0\n"
        ));
        world
    }

    /// Writes the configuration.
    pub fn configure(&self, yaml: &str) {
        let folder = self.home().join(".crow");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&folder, private).expect("the folder can be made private");
        std::fs::write(folder.join("config.yaml"), yaml).expect("the configuration can be written");
    }

    /// Says in which dialect the provider is spoken to.
    pub fn speak(&self, api: &str) {
        let file = self.home().join(".crow/config.yaml");
        let text = std::fs::read_to_string(&file).expect("the configuration can be read");
        self.configure(&text.replacen("{ base_url:", &format!("{{ api: {api}, base_url:"), 1));
    }

    /// Adds a line to the configuration.
    pub fn configure_more(&self, yaml: &str) {
        let file = self.home().join(".crow/config.yaml");
        let text = std::fs::read_to_string(&file).expect("the configuration can be read");
        std::fs::write(&file, format!("{text}{yaml}\n")).expect("the configuration can be written");
    }

    /// Adds a field to the configuration of the model.
    pub fn configure_model(&self, yaml: &str) {
        let file = self.home().join(".crow/config.yaml");
        let text = std::fs::read_to_string(&file).expect("the configuration can be read");
        let more = format!("model: scripted, {yaml}");
        let text = text.replacen("model: scripted", &more, 1);
        std::fs::write(&file, text).expect("the configuration can be written");
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
