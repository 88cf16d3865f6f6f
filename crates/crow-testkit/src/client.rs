//! A fake editor: starts an agent, exchanges raw JSON lines with it, and logs what it receives as text. The agent is the
//! real binary, or runs in the process of the test.
//!
//! It checks every line against the protocol's schema; a call of something that it did not declare fails the test.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "an editor starts its agents as it likes, with the tests' own PATH"
)]

mod editor;
mod home;
mod log;
mod serving;
pub mod task_names;
mod terminals;
#[cfg(test)]
mod tests;

pub use editor::{Editor, ResponseFault};
pub use home::TestHome;
pub use terminals::MissingProgram;

use std::collections::{BTreeMap, VecDeque};
use std::io::{PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::contract::Contract;

/// The timeout of every wait, after which the test fails and prints the open requests.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Exits of commands that were not reported to the agent yet.
const EXITS_LEN: usize = 64;

/// The agent of a client.
#[derive(Debug)]
enum Agent {
    Process(Box<Child>),
    /// A task of the test; aborted with the client.
    InProcess(AbortHandle),
}

impl Agent {
    fn child_mut(&mut self) -> &mut Child {
        match self {
            Self::Process(child) => child,
            Self::InProcess(_) => panic!("the agent is no process of its own"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Self::InProcess(task) = self {
            task.abort();
        }
    }
}

/// A client of one agent.
#[derive(Debug)]
pub struct FakeClient {
    agent: Agent,
    stdin: Option<pipe::Sender>,
    lines: Lines<BufReader<pipe::Receiver>>,
    next_id: u64,
    /// The answers to the next permission requests; the default is to allow once. `OPTION: PREFIX` answers with a prefix
    /// that the user has written.
    pub permission_answers: VecDeque<String>,
    /// The answers to the next forms: a value on offer, free text, `declined` or `cancelled`; the default is the first
    /// value.
    pub form_answers: VecDeque<String>,
    /// The client's files and terminals.
    pub editor: Editor,
    /// Every update received, as (session, update).
    pub updates: Vec<(String, Value)>,
    contract: Contract,
    /// Responses that were not waited for yet.
    responses: BTreeMap<u64, RpcResult>,
    /// Responses to send after the next message.
    delayed: Vec<String>,
    /// Requests that wait for the exit of a command, with the fault of their response.
    pending_waits: BTreeMap<String, Option<ResponseFault>>,
    exit_sender: mpsc::Sender<CommandExit>,
    exit_receiver: mpsc::Receiver<CommandExit>,
    /// Whether the agent may exit while the client talks to it.
    may_exit: bool,
    log: Vec<String>,
    masks: Vec<(String, String)>,
}

/// The id of a request that waited for the exit of a command, and the exit status.
#[derive(Debug)]
struct CommandExit {
    id: Value,
    status: Value,
}

/// The result or error of a request.
pub type RpcResult = Result<Value, Value>;

impl FakeClient {
    /// Starts `binary acp` with this home and initializes it without capabilities.
    pub async fn start(binary: &Path, home: &Path) -> Self {
        Self::start_with(binary, home, json!({})).await
    }

    /// Starts `binary acp` with this home and initializes it with these capabilities.
    pub async fn start_with(binary: &Path, home: &Path, capabilities: Value) -> Self {
        let mut client = Self::start_silent(binary, home);
        client.initialize(capabilities).await.expect("the agent says hello");
        client
    }

    /// Starts `binary acp` and sends nothing.
    pub fn start_silent(binary: &Path, home: &Path) -> Self {
        let mut command = Command::new(binary);
        command.arg("acp");
        Self::start_command(command, home)
    }

    /// Starts a command that becomes an agent on stdio and sends nothing.
    pub fn start_command(mut command: Command, home: &Path) -> Self {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the binary starts");
        let stdin = child.stdin.take().expect("stdin is piped").into_owned_fd().expect("it is a pipe");
        let stdout = child.stdout.take().expect("stdout is piped").into_owned_fd().expect("it is a pipe");
        Self::connect(Agent::Process(Box::new(child)), stdin, stdout, home)
    }

    /// Starts an agent as a task of this process, with its stdin and stdout, and sends nothing.
    pub fn start_in_process(home: &Path, start: impl FnOnce(PipeReader, PipeWriter) -> AbortHandle) -> Self {
        let (agent_stdin, stdin) = std::io::pipe().expect("a pipe can be made");
        let (stdout, agent_stdout) = std::io::pipe().expect("a pipe can be made");
        let task = start(agent_stdin, agent_stdout);
        Self::connect(Agent::InProcess(task), stdin.into(), stdout.into(), home)
    }

    fn connect(agent: Agent, stdin: OwnedFd, stdout: OwnedFd, home: &Path) -> Self {
        let stdin = pipe::Sender::from_owned_fd(stdin).expect("it is a pipe");
        let stdout = pipe::Receiver::from_owned_fd(stdout).expect("it is a pipe");
        let (exit_sender, exit_receiver) = mpsc::channel(EXITS_LEN);
        Self {
            agent,
            stdin: Some(stdin),
            lines: BufReader::new(stdout).lines(),
            next_id: 0,
            permission_answers: VecDeque::new(),
            form_answers: VecDeque::new(),
            editor: Editor::new(home),
            updates: Vec::new(),
            contract: Contract::default(),
            responses: BTreeMap::new(),
            delayed: Vec::new(),
            pending_waits: BTreeMap::new(),
            exit_sender,
            exit_receiver,
            may_exit: false,
            log: Vec::new(),
            masks: vec![(home.display().to_string(), "$HOME".into())],
        }
    }

    /// Initializes the agent with these capabilities, which the client keeps from then on.
    pub async fn initialize(&mut self, capabilities: Value) -> RpcResult {
        self.editor.set_capabilities(capabilities.clone());
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "fake", "version": "1"},
        });
        self.request("initialize", params).await
    }

    /// The process id of the agent.
    pub fn pid(&self) -> u32 {
        self.child().id().expect("the agent runs")
    }

    fn child(&self) -> &Child {
        match &self.agent {
            Agent::Process(child) => child,
            Agent::InProcess(_) => panic!("the agent is no process of its own"),
        }
    }

    fn child_mut(&mut self) -> &mut Child {
        self.agent.child_mut()
    }

    /// Lets the agent exit at any time: what is sent to it afterwards is lost.
    pub fn allow_exit(&mut self) {
        self.may_exit = true;
    }

    /// Replaces a text in all later log lines.
    pub fn mask(&mut self, text: impl Into<String>, replacement: impl Into<String>) {
        self.masks.insert(0, (text.into(), replacement.into()));
    }

    /// Creates a session and returns its id.
    pub async fn new_session(&mut self, cwd: &Path) -> String {
        let response = self.request("session/new", json!({"cwd": cwd, "mcpServers": []})).await;
        let session =
            response.expect("a session opens")["sessionId"].as_str().expect("it has an id").to_owned();
        self.mask(&session, "$SESSION");
        session
    }

    /// Loads a session.
    pub async fn load_session(&mut self, session: &str, cwd: &Path) -> RpcResult {
        self.request("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})).await
    }

    /// Sends a text prompt and returns its id at once.
    pub async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.prompt_with(session, json!([{"type": "text", "text": text}])).await
    }

    /// Sends a prompt, records it as an update of the client and returns its id at once.
    pub async fn prompt_with(&mut self, session: &str, blocks: Value) -> u64 {
        for block in blocks.as_array().into_iter().flatten() {
            let update = json!({"sessionUpdate": "user_message_chunk", "content": block});
            self.updates.push((session.to_owned(), update));
        }
        self.send("session/prompt", json!({"sessionId": session, "prompt": blocks})).await
    }

    /// Sends a raw line.
    pub async fn send_line(&mut self, line: &str) {
        self.contract.record_client_line(line);
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let sent = stdin.write_all(format!("{line}\n").as_bytes()).await;
        if !self.may_exit {
            sent.expect("the agent reads");
        }
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// Sends a request and returns its id at once.
    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
            .await;
        id
    }

    /// Sends a request and waits for its response, processing other messages meanwhile.
    pub async fn request(&mut self, method: &str, params: Value) -> RpcResult {
        let id = self.send(method, params).await;
        self.response_to(id).await
    }

    /// Waits for the response to a request, which may have arrived already.
    pub async fn response_to(&mut self, id: u64) -> RpcResult {
        loop {
            if let Some(result) = self.responses.remove(&id) {
                return result;
            }
            self.next_message().await;
        }
    }

    /// Processes messages until a log line contains `text`.
    pub async fn wait_for_line(&mut self, text: &str) {
        while !self.log.iter().any(|line| line.contains(text)) {
            self.next_message().await;
        }
    }

    /// Processes messages until every request has a response.
    pub async fn wait_for_responses(&mut self) {
        while !self.contract.unanswered().is_empty() {
            self.next_message().await;
        }
    }

    /// Reads the next message: logs an update, answers a request.
    pub async fn next_message(&mut self) -> Value {
        self.next_message_until_exit().await.expect("the agent still talks")
    }

    /// Reads the next message as `next_message` does; `None` if the agent has closed its stdout. An agent that may exit
    /// may leave half a message.
    pub async fn next_message_until_exit(&mut self) -> Option<Value> {
        let line = loop {
            let received = tokio::time::timeout(TIMEOUT, async {
                tokio::select! {
                    line = self.lines.next_line() => Ok(line),
                    ended = self.exit_receiver.recv() => Err(ended),
                }
            });
            match received.await {
                Ok(Ok(line)) => break line.expect("stdout can be read")?,
                Ok(Err(exit)) => self.answer_wait(exit.expect("this client holds the other end")).await,
                Err(_) => panic!("nothing came after:\n{}{:?}", self.log(), self.contract.unanswered()),
            }
        };
        if self.may_exit && serde_json::from_str::<Value>(&line).is_err() {
            return None;
        }
        let message = self.read_message(&line);
        for response in std::mem::take(&mut self.delayed) {
            self.send_line(&response).await;
        }
        match message["method"].as_str() {
            Some("session/update") => self.record_update(&message["params"]),
            Some("session/request_permission") => self.answer_permission(&message).await,
            Some("elicitation/create") => self.answer_form(&message).await,
            Some("$/cancel_request") => self.on_cancel_request(&message["params"]["requestId"]).await,
            Some(method) if message.get("id").is_some() => self.serve_request(method, &message).await,
            Some(_) => {}
            None => self.store_response(&message),
        }
        Some(message)
    }

    fn read_message(&mut self, line: &str) -> Value {
        let message = self.contract.check_agent_line(line);
        message.unwrap_or_else(|reason| {
            panic!("the agent broke the protocol: {reason}\nin {line}\nafter:\n{}", self.log())
        })
    }

    fn fail_if(&self, violation: Option<String>) {
        if let Some(reason) = violation {
            panic!("{reason}; after:\n{}", self.log());
        }
    }

    fn store_response(&mut self, message: &Value) {
        self.fail_if(self.editor.undeclared_option(&message["result"]));
        if let Some(id) = message["id"].as_u64() {
            let result = message.get("error").cloned().map_or_else(|| Ok(message["result"].clone()), Err);
            self.responses.insert(id, result);
        }
    }

    fn record_update(&mut self, params: &Value) {
        let update = &params["update"];
        let violation = self.editor.undeclared_update(update);
        self.fail_if(violation);
        if let Some(line) = log::render_update(&self.mask_update(update)) {
            self.add_to_log(line);
        }
        self.updates.push((params["sessionId"].as_str().unwrap_or_default().to_owned(), update.clone()));
    }

    fn mask_text(&self, text: &str) -> String {
        self.masks
            .iter()
            .fold(text.to_owned(), |text, (masked, replacement)| text.replace(masked, replacement))
    }

    /// Masks varying values before a text is truncated.
    fn mask_update(&self, update: &Value) -> Value {
        match update {
            Value::String(text) => task_names::mask_task_names(&self.mask_text(text)).into(),
            Value::Array(items) => items.iter().map(|item| self.mask_update(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.mask_update(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => update.clone(),
        }
    }

    /// Adds a line to the log.
    pub fn add_to_log(&mut self, line: impl Into<String>) {
        let line = self.mask_text(&line.into());
        self.log.push(line);
    }

    /// Returns the log, one line per update; chunks of one message are one line.
    pub fn log(&self) -> String {
        log::render_log(&self.log)
    }

    /// Kills the process and returns the log.
    pub async fn kill(mut self) -> String {
        self.child_mut().kill().await.expect("the agent can be killed");
        self.log()
    }

    /// Kills the process and processes its remaining output.
    pub async fn crash(&mut self) {
        self.child_mut().kill().await.expect("the agent can be killed");
        while let Ok(Some(line)) = self.lines.next_line().await {
            // The last line may be incomplete.
            if serde_json::from_str::<Value>(&line).is_ok() {
                self.read_message(&line);
            }
        }
    }

    /// Closes stdin and waits for the process to exit.
    pub async fn close_stdin(&mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.wait_for_exit().await
    }

    /// Closes both pipes, as the end of a client does, and waits for the process to exit.
    pub async fn disappear(self) -> ExitStatus {
        let Self { mut agent, stdin, lines, .. } = self;
        drop((stdin, lines));
        agent.child_mut().wait().await.expect("the agent ends when its client does")
    }

    /// Waits for the process to exit while stdin stays open.
    pub async fn wait_for_exit(&mut self) -> ExitStatus {
        let exit = tokio::time::timeout(TIMEOUT, async {
            while let Some(line) = self.lines.next_line().await.expect("stdout can be read") {
                self.read_message(&line);
            }
            self.child_mut().wait().await.expect("it can be waited for")
        });
        exit.await.expect("the agent ends when its client does")
    }
}
