//! A small ACP agent on stdin and stdout, written by hand so that it can misbehave.
//!
//! It runs as the program `crow-fake-agent`; its arguments select the behaviors, see [`command`].

#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best in place")]

mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::helper_binary::helper_path;

/// Lines read ahead; further lines wait in the pipe.
const LINES_QUEUED_MAX: usize = 64;

/// The interval for checking whether a file exists.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Several megabytes, far more than a pipe's buffer.
const NOISE_LINES: usize = 10_000;

/// A shell's ignored signals stay ignored in the program that replaces it.
const STUBBORN_START_SCRIPT: &str = r#"trap '' HUP INT TERM; exec "$0" "$@""#;

/// Returns the program and arguments of an agent that echoes a prompt in two pieces and announces an edit. The behaviors
/// make it do more, or misbehave; they can be combined:
///
/// - `silent`: never answers; `stalls`: never opens a session; `broken`: writes to stderr and exits with 3 at once; `locked`: requires a login for a session
/// - `version=N`: announces protocol version N; `no-load`: cannot load sessions; `options`: has a mode and a model to
///   choose
/// - `resumes`: resumes any session, and lists `session-1` in every directory; `forgets`: announces that, and lists none
/// - `garbage`: prints lines that are not messages in between; `noisy`: writes megabytes to stderr
/// - `flood`: sends text until it is cancelled; `flood-deaf`: does not stop when cancelled
/// - `deaf`: ignores `session/cancel` and everything that `stubborn` ignores; `stubborn`: ignores the end of its input and
///   SIGTERM
/// - `unread`: sends many requests in a prompt and then stops reading; `steers`: announces steering and never answers it
/// - `dies`: exits with 9 in the middle of a prompt; `fails`: answers a prompt with an error;
///   `gives-up`: ends a prompt as cancelled
/// - `slow=FILE`: ends a prompt when the file exists
/// - `later=FILE`: sends a message outside of prompts when the file exists, once; with `asks` also a request
/// - `asks`, `reads=PATH`, `writes=PATH`, `terminal=COMMAND`: sends this request to its client and reports the response;
///   `sets=A=B`: the command gets a variable; `in=DIR`: it runs in this directory of the session
/// - `kindless`: its permission request omits the kind of the call; `vague`: the call has no kind and runs a command
/// - `blind`: its permission request has only the ID of the call; `mute`: of a call that it never announced; `line`: the
///   command is only in the texts of the request, and is the whole command of the terminal;
///   `again`: runs the command twice
/// - `twice`: both options of its request have one id; `leaves`: does not wait for the response; `nags`: sends requests
///   until it is cancelled
/// - `hoards=N`: creates N terminals, releases none and reports how many it got
/// - `spawns=DIR`: leaves the command of a [`crate::tracked_command::TrackedCommand`] running in the directory;
///   `strays=DIR`: the same in a process session of its own
/// - `offers`: its requests are only offers; `reports=OUTCOME`: ends a prompt with a report in a message of its own
/// - `usage`: reports its token usage; `where`: reports its directories; `env=NAME`: reports a variable, repeatable
///
/// # Panics
/// If the program `crow-fake-agent` is missing or out of date.
#[track_caller]
pub fn command(behaviors: &[&str]) -> (String, Vec<String>) {
    let program = helper_path("crow-fake-agent");
    let behaviors = behaviors.iter().map(|behavior| (*behavior).to_owned());
    if !behaviors.clone().any(|behavior| ["deaf", "stubborn"].contains(&behavior.as_str())) {
        return (program, behaviors.collect());
    }
    let start = ["-c".to_owned(), STUBBORN_START_SCRIPT.to_owned(), program];
    ("sh".to_owned(), start.into_iter().chain(behaviors).collect())
}

/// Runs the agent until its input ends, then exits.
pub fn serve(behaviors: Vec<String>) -> ! {
    FakeAgent::new(behaviors).serve()
}

struct FakeAgent {
    behaviors: Vec<String>,
    lines: Receiver<String>,
    /// Messages that wait for the end of a prompt.
    queued: VecDeque<Value>,
    /// The response to the latest request.
    last_response: Option<Value>,
    n_requests: usize,
    /// The directory of each session.
    sessions: BTreeMap<String, String>,
    /// The session of the running prompt.
    prompt_session: Option<String>,
    is_cancelled: bool,
    has_sent_late_message: bool,
    mode: String,
    model: String,
}

impl FakeAgent {
    fn new(behaviors: Vec<String>) -> Self {
        let (line_sender, lines) = sync_channel(LINES_QUEUED_MAX);
        thread::spawn(move || {
            let stdin_lines = io::stdin().lock().lines().map_while(Result::ok);
            // Fails only when the agent has ended.
            let _ = stdin_lines.map(|line| line_sender.send(line)).find(Result::is_err);
        });
        Self {
            behaviors,
            lines,
            queued: VecDeque::new(),
            last_response: None,
            n_requests: 0,
            sessions: BTreeMap::new(),
            prompt_session: None,
            is_cancelled: false,
            has_sent_late_message: false,
            mode: "ask".into(),
            model: "small".into(),
        }
    }

    fn has_behavior(&self, behavior: &str) -> bool {
        self.behaviors.iter().any(|known| known == behavior)
    }

    /// Returns the value of an option such as `reads=PATH`.
    fn option_value(&self, option: &str) -> Option<String> {
        self.option_values(option).next()
    }

    fn option_values(&self, option: &str) -> impl Iterator<Item = String> {
        self.behaviors
            .iter()
            .filter_map(move |behavior| behavior.strip_prefix(option)?.strip_prefix('=').map(str::to_owned))
    }

    fn serve(mut self) -> ! {
        if self.has_behavior("broken") {
            write_stderr("cannot find the frobnicator\n");
            process::exit(3);
        }
        if self.has_behavior("noisy") {
            (0..NOISE_LINES).for_each(|line| write_stderr(&format!("{line} {}\n", "noise".repeat(100))));
        }
        loop {
            while let Some(message) = self.queued.pop_front() {
                self.handle_message(&message);
            }
            self.send_late_message();
            self.receive_line(POLL_INTERVAL);
        }
    }

    /// Handles the next line, if one arrives before the timeout.
    fn receive_line(&mut self, timeout: Duration) {
        match self.lines.recv_timeout(timeout) {
            // Responses without an id answer our invalid lines.
            Ok(line) => self.accept_message(serde_json::from_str(&line).unwrap_or_default()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected)
                if self.has_behavior("stubborn") || self.has_behavior("deaf") =>
            {
                thread::sleep(POLL_INTERVAL);
            }
            Err(RecvTimeoutError::Disconnected) => process::exit(0),
        }
    }

    fn accept_message(&mut self, message: Value) {
        match message["method"].as_str() {
            Some("session/cancel") => self.cancel(&message["params"]["sessionId"]),
            Some(_) => self.queued.push_back(message),
            None if message["id"] == self.question_id() => self.last_response = Some(message),
            None => {}
        }
    }

    fn cancel(&mut self, session: &Value) {
        if self.has_behavior("deaf") || self.has_behavior("flood-deaf") {
            return;
        }
        if session.as_str() == self.prompt_session.as_deref() {
            self.is_cancelled = true;
        }
        let is_prompt_of_session = |message: &Value| {
            message["method"] == "session/prompt" && message["params"]["sessionId"] == *session
        };
        let (cancelled, queued): (VecDeque<_>, _) = self.queued.drain(..).partition(is_prompt_of_session);
        self.queued = queued;
        for prompt in cancelled {
            self.reply(&prompt["id"], json!({"stopReason": "cancelled"}));
        }
    }

    fn write_line(&self, text: &str) {
        let mut output = io::stdout().lock();
        let result = output.write_all(format!("{text}\n").as_bytes()).and_then(|()| output.flush());
        drop(output);
        // A client that does not read has gone.
        if result.is_err() && !self.has_behavior("stubborn") && !self.has_behavior("deaf") {
            process::exit(0);
        }
    }

    fn send(&mut self, message: Value) {
        if self.has_behavior("garbage") {
            self.write_line(
                "Listening on port 3000 ...\n\n\u{1b}[1m{\"jsonrpc\": \"2.0\", \"id\"\n[]\n{\"hello\": 1}",
            );
            self.write_line(
                &json!({"jsonrpc": "2.0", "id": 99_999, "result": {"stopReason": "end_turn"}}).to_string(),
            );
        }
        self.write_line(&message.to_string());
    }

    fn reply(&mut self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn reply_error(&mut self, id: &Value, code: i64, message: &str) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn send_update(&mut self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn send_text(&mut self, session: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.send_update(
            session,
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}),
        );
    }

    fn handle_message(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            _ if self.has_behavior("silent") => {}
            "initialize" => self.initialize(id),
            "session/new" | "session/load" if self.has_behavior("stalls") => {}
            "session/new" | "session/load" if self.has_behavior("locked") => {
                self.reply_error(id, -32000, "Authentication required");
            }
            "session/new" => {
                let session = format!("session-{}", self.sessions.len() + 1);
                self.add_session(&session, params);
                let mut response = json!({"sessionId": session});
                if self.has_behavior("options") {
                    response["configOptions"] = self.config_options();
                }
                self.reply(id, response);
            }
            "session/load" if !self.has_behavior("no-load") => {
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                self.add_session(&session, params);
                let content = json!({"type": "text", "text": "hello"});
                self.send_update(
                    &session,
                    json!({"sessionUpdate": "user_message_chunk", "content": content}),
                );
                self.send_text(&session, "echo: hello");
                self.reply(id, json!({}));
            }
            "session/list" if self.has_behavior("resumes") => {
                self.reply(id, json!({"sessions": [{"sessionId": "session-1", "cwd": params["cwd"]}]}));
            }
            "session/list" if self.has_behavior("forgets") => self.reply(id, json!({"sessions": []})),
            "session/resume" if self.has_behavior("resumes") => {
                self.add_session(params["sessionId"].as_str().unwrap_or_default(), params);
                self.reply(id, json!({}));
            }
            "session/set_config_option" if self.has_behavior("options") => self.set_option(id, params),
            "session/prompt" => self.run_prompt(id, params),
            _ if !id.is_null() => self.reply_error(id, -32601, "Method not found"),
            _ => {}
        }
    }

    fn initialize(&mut self, id: &Value) {
        let version = self.option_value("version").and_then(|version| version.parse().ok()).unwrap_or(1);
        let mut response = json!({
            "protocolVersion": version,
            "agentCapabilities": {"loadSession": !self.has_behavior("no-load")},
            "agentInfo": {"name": "test", "version": "1"},
        });
        if self.has_behavior("resumes") || self.has_behavior("forgets") {
            response["agentCapabilities"]["sessionCapabilities"] = json!({"list": {}, "resume": {}});
        }
        if self.has_behavior("steers") {
            response["_meta"] = json!({"steering": {"supported": true}});
        }
        self.reply(id, response);
    }

    fn add_session(&mut self, session: &str, params: &Value) {
        let cwd = params["cwd"].as_str().unwrap_or_default();
        self.sessions.insert(session.to_owned(), cwd.to_owned());
    }

    fn config_options(&self) -> Value {
        let option = |id: &str, current: &str, values: [&str; 2]| {
            let values = values.map(|value| json!({"value": value, "name": value}));
            json!({
                "id": id, "name": id, "category": id, "type": "select", "currentValue": current, "options": values,
            })
        };
        json!(
            [option("mode", &self.mode, ["ask", "auto"]), option("model", &self.model, ["small", "large"]),]
        )
    }

    fn set_option(&mut self, id: &Value, params: &Value) {
        let value = params["value"].as_str().unwrap_or_default().to_owned();
        match (params["configId"].as_str().unwrap_or_default(), value.as_str()) {
            ("mode", "ask" | "auto") => self.mode = value,
            ("model", "small" | "large") => self.model = value,
            _ => return self.reply_error(id, -32602, "there is no such choice"),
        }
        let options = self.config_options();
        self.reply(id, json!({"configOptions": options}));
    }

    fn question_id(&self) -> Value {
        json!(format!("question-{}", self.n_requests))
    }

    fn send_request(&mut self, method: &str, params: Value) {
        self.n_requests += 1;
        let id = self.question_id();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Sends a request and waits for the response or the end of the prompt.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.send_request(method, params);
        loop {
            if let Some(response) = self.last_response.take() {
                return response;
            }
            // A client should answer its open requests when it cancels; not every client does.
            if self.is_cancelled {
                return json!({"error": {"code": 0, "message": "it was cancelled"}});
            }
            self.receive_line(POLL_INTERVAL);
        }
    }

    fn send_late_message(&mut self) {
        let Some(session) = self.sessions.keys().next_back().cloned() else { return };
        if self.has_sent_late_message
            || !self.option_value("later").is_some_and(|file| Path::new(&file).exists())
        {
            return;
        }
        self.has_sent_late_message = true;
        self.send_text(&session, "by the way");
        if self.has_behavior("asks") {
            self.ask_permission(&session);
        }
    }
}

fn write_stderr(text: &str) {
    // A client that does not read has gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
