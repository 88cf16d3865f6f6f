//! The client: one agent process, raw lines, and its resource usage.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<BufReader<ChildStdout>>,
    home: Rc<TempDir>,
    next_id: u64,
}

/// An agent that speaks ACP on stdio.
#[derive(Clone)]
pub(crate) struct AgentProgram {
    pub(crate) path: PathBuf,
    pub(crate) argument: &'static str,
}

impl AgentProgram {
    /// Any build of Crow.
    pub(crate) fn crow(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), argument: "acp" }
    }

    /// The build that belongs to this benchmark.
    pub(crate) fn built() -> Self {
        Self::crow(env!("CARGO_BIN_EXE_crow-cli"))
    }
}

/// A message of the agent, and its arrival time.
pub(crate) struct ReceivedMessage {
    pub(crate) at: Instant,
    pub(crate) message: Value,
}

/// The default limit for descriptors on most systems.
const START_LIMITED: &str = r#"ulimit -Sn 1024; exec "$0" acp"#;

impl Agent {
    pub(crate) fn start(port: u16) -> Self {
        Self::start_program(&AgentProgram::built(), port)
    }

    pub(crate) fn start_program(program: &AgentProgram, port: u16) -> Self {
        Self::at(program, port, Rc::new(TempDir::new().unwrap()))
    }

    pub(crate) fn at(program: &AgentProgram, port: u16, home: Rc<TempDir>) -> Self {
        let mut command = Command::new(&program.path);
        command.arg(program.argument);
        Self::spawn(command, port, "", home)
    }

    /// Starts an agent with more configuration and a desktop's limits.
    pub(crate) fn configured(port: u16, config: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", START_LIMITED, env!("CARGO_BIN_EXE_crow-cli")]);
        Self::spawn(command, port, config, Rc::new(TempDir::new().unwrap()))
    }

    fn spawn(mut command: Command, port: u16, config: &str, home: Rc<TempDir>) -> Self {
        let directory = home.path().join(".crow");
        fs::create_dir_all(&directory).unwrap();
        fs::write(home.path().join("file.txt"), "hello\n").unwrap();
        let config = format!(
            "providers: {{ fake: {{ base_url: 'http://127.0.0.1:{port}/v1' }} }}\nmodels: {{ m: {{ provider: fake, model: m }} }}\n{config}"
        );
        fs::write(directory.join("config.yaml"), config).unwrap();
        let mut child = command
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = child.stdout.take().map(BufReader::new);
        Self { child, stdin, lines, home, next_id: 0 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn home(&self) -> Rc<TempDir> {
        self.home.clone()
    }

    pub(crate) fn hello(&mut self) {
        let id = self.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        self.answer(id);
    }

    pub(crate) fn new_session(&mut self) -> String {
        let id = self.request("session/new", &json!({"cwd": self.home.path(), "mcpServers": []}));
        self.answer(id)["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn load(&mut self, session: &str) {
        let cwd = self.home.path().to_owned();
        let id = self.request("session/load", &json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        self.answer(id);
    }

    pub(crate) fn prompt(&mut self, session: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": "go on"}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    pub(crate) fn set_mode(&mut self, session: &str, mode: &str) -> u64 {
        self.request("session/set_mode", &json!({"sessionId": session, "modeId": mode}))
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    }

    /// Reads on a thread from here on, so that the agent never blocks; forwards everything but updates.
    pub(crate) fn hear(&mut self) -> Receiver<ReceivedMessage> {
        let (sender, said) = channel();
        let lines = self.lines.take().unwrap();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let at = Instant::now();
                // There are many updates, so they are not parsed.
                if line.get(..200).unwrap_or(&line).contains("\"session/update\"") {
                    continue;
                }
                let message = serde_json::from_str(&line).unwrap();
                if sender.send(ReceivedMessage { at, message }).is_err() {
                    return;
                }
            }
        });
        said
    }

    /// Waits for the first chunk and returns its arrival time.
    pub(crate) fn first_update(&mut self) -> Instant {
        loop {
            let line = self.line();
            if line.contains("agent_message_chunk") {
                return Instant::now();
            }
        }
    }

    pub(crate) fn end_of_turn(&mut self) {
        loop {
            let line = self.line();
            assert!(!line.contains("\"error\""), "{line}");
            if line.contains("stopReason") {
                return;
            }
        }
    }

    /// Lets the agent become idle: its background work ends without a notification, so some time has to pass
    /// without requests.
    pub(crate) fn settle(&mut self) {
        let id = self.request("session/list", &json!({}));
        self.answer(id);
        std::thread::sleep(Duration::from_millis(50));
    }

    pub(crate) fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let times = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
        Duration::from_nanos(times.filter_map(|times| times.split(' ').next()?.parse::<u64>().ok()).sum())
    }

    pub(crate) fn resident_kb(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Pages that belong to this process alone.
    pub(crate) fn private_kb(&self) -> u64 {
        self.status("RssAnon:")
    }

    pub(crate) fn peak_kb(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn hang_up(&mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn answer(&mut self, id: u64) -> Value {
        let mark = format!("\"id\":{id},");
        let mark_last = format!("\"id\":{id}}}");
        loop {
            let line = self.line();
            if line.contains(&mark) || line.ends_with(&format!("{mark_last}\n")) {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["id"] == id {
                    assert!(message.get("error").is_none(), "{line}");
                    return message;
                }
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.lines.as_mut().unwrap().read_line(&mut line).unwrap(), 0, "the agent ended");
        line
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.hang_up();
    }
}
