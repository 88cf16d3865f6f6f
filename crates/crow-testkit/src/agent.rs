//! A small ACP agent on stdin and stdout, written by hand so that it can misbehave.
//!
//! It needs no program of its own: the test binary starts itself again, with one test to run, and that test is the
//! agent. What is wrong with it is said in words, see [`command`].

#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best in place")]

#[cfg(test)]
mod tests;
mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The word that has a test binary be the agent.
const SERVE: &str = "serve";

/// Lines that were read and not yet looked at; a client that sends more has to wait.
const LINES_WAITING: usize = 64;

/// How often a file is looked for while no line comes.
const LOOK: Duration = Duration::from_millis(2);

/// Some megabytes, far more than a pipe holds.
const NOISE_LINES: usize = 10_000;

/// The harness of the tests speaks on stdout; nobody hears it, and the agent speaks where stdout was.
const START: &str = r#"exec "$0" "$@" 3>&1 >/dev/null"#;

/// What a shell ignores is ignored by the program that it becomes.
const START_STUBBORN: &str = r#"trap '' HUP INT TERM; exec "$0" "$@" 3>&1 >/dev/null"#;

const SPEAKS_ON: &str = "/dev/fd/3";

/// Makes the command line of an agent: this very test binary, running only the test `entry`, which has to call
/// [`serve_when_asked`]. It echoes a prompt in two pieces and edits a file in words only. More words make it do
/// more, or do wrong; they can be combined:
///
/// - `silent`: never answers; `broken`: complains and exits with 3 at once; `locked`: wants a log-in for a session
/// - `version=N`: speaks version N; `no-load`: cannot load; `options`: has a mode and a model to choose
/// - `garbage`: says what is no protocol in between; `noisy`: complains at great length
/// - `flood`: speaks without end until it is cancelled; `flood-deaf`: whether it is or not
/// - `deaf`: heeds neither `session/cancel` nor what `stubborn` does not; `stubborn`: heeds neither the end of its
///   input nor SIGTERM
/// - `unread`: asks a lot in a prompt and reads nothing from then on; `steers`: says that it takes words for its turn
///   and never answers them
/// - `dies`: exits with 9 in the middle of a prompt; `fails`: answers a prompt with an error
/// - `slow=FILE`: ends a prompt when there is such a file
/// - `later=FILE`: speaks when there is such a file and no prompt, once; with `asks` it asks then as well
/// - `asks`, `reads=PATH`, `writes=PATH`, `terminal=COMMAND`: asks its client for this and tells the answer; `sets=A=B`:
///   the command gets a variable
/// - `kindless`: its question does not repeat the kind of the call; `vague`: it has none, and is about a command;
/// - `twice`: its question has one id for yes and no; `leaves`: it does not wait for the answer; `nags`: it asks without
///   end until it is cancelled
/// - `hoards=N`: asks for so many terminals, gives none back and tells how many it got
/// - `spawns=FOLDER`: leaves the command of a [`crate::leash::Leash`] running in the folder; `strays=FOLDER`: in a
///   session of its own
/// - `offers`: what it asks for is only an offer; `reports=OUTCOME`: ends a prompt with a report, a message of its own
/// - `usage`: tells how many tokens it used; `where`: tells its folders; `env=NAME`: tells a variable, and so each of them
///
/// # Panics
/// When the test binary is not known to the system.
pub fn command(entry: &str, words: &[&str]) -> (String, Vec<String>) {
    let program = std::env::current_exe().expect("a test is a program");
    let ignores = words.iter().any(|word| ["deaf", "stubborn"].contains(word));
    let start = if ignores { START_STUBBORN } else { START };
    let program = program.display().to_string();
    let mut args: Vec<String> = ["-c", start, &program, entry, "--exact", "-q"].map(str::to_owned).to_vec();
    // To the harness these are names of tests that there are not.
    args.extend([SERVE].iter().chain(words).map(|word| format!("agent:{word}")));
    ("sh".to_owned(), args)
}

/// Is the agent until its input ends and exits, in a binary that was started for it; does nothing in any other.
pub fn serve_when_asked() {
    let words = std::env::args().filter_map(|word| word.strip_prefix("agent:").map(str::to_owned));
    let words: Vec<String> = words.collect();
    if words.iter().any(|word| word == SERVE) {
        Agent::new(words).serve();
    }
}

struct Agent {
    words: Vec<String>,
    out: File,
    lines: Receiver<String>,
    /// Messages that wait for the end of a prompt.
    waiting: VecDeque<Value>,
    /// The answer to the latest question.
    answer: Option<Value>,
    n_asked: usize,
    /// The folder of each session.
    sessions: BTreeMap<String, String>,
    /// The session of the prompt that runs.
    running: Option<String>,
    is_cut: bool,
    has_spoken_later: bool,
    mode: String,
    model: String,
}

impl Agent {
    fn new(words: Vec<String>) -> Self {
        let (line_read, lines) = sync_channel(LINES_WAITING);
        thread::spawn(move || {
            let read = io::stdin().lock().lines().map_while(Result::ok);
            // Nobody is left to read for when this fails.
            let _ = read.map(|line| line_read.send(line)).find(Result::is_err);
        });
        Self {
            words,
            out: File::options().write(true).open(SPEAKS_ON).expect("the client listens"),
            lines,
            waiting: VecDeque::new(),
            answer: None,
            n_asked: 0,
            sessions: BTreeMap::new(),
            running: None,
            is_cut: false,
            has_spoken_later: false,
            mode: "ask".into(),
            model: "small".into(),
        }
    }

    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    /// What the words say of a thing, as in `reads=PATH`.
    fn said_of(&self, thing: &str) -> Option<String> {
        self.all_said_of(thing).next()
    }

    fn all_said_of(&self, thing: &str) -> impl Iterator<Item = String> {
        self.words
            .iter()
            .filter_map(move |word| word.strip_prefix(thing)?.strip_prefix('=').map(str::to_owned))
    }

    fn serve(mut self) -> ! {
        if self.is("broken") {
            complain("cannot find the frobnicator\n");
            process::exit(3);
        }
        if self.is("noisy") {
            (0..NOISE_LINES).for_each(|line| complain(&format!("{line} {}\n", "noise".repeat(100))));
        }
        loop {
            while let Some(message) = self.waiting.pop_front() {
                self.hear(&message);
            }
            self.speak_later();
            self.listen(LOOK);
        }
    }

    /// Takes in the next line if it comes in time.
    fn listen(&mut self, patience: Duration) {
        match self.lines.recv_timeout(patience) {
            // Answers without an id are about our garbage.
            Ok(line) => self.take(serde_json::from_str(&line).unwrap_or_default()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if self.is("stubborn") || self.is("deaf") => {
                thread::sleep(LOOK);
            }
            Err(RecvTimeoutError::Disconnected) => process::exit(0),
        }
    }

    fn take(&mut self, message: Value) {
        match message["method"].as_str() {
            Some("session/cancel") => self.cancel(&message["params"]["sessionId"]),
            Some(_) => self.waiting.push_back(message),
            None if message["id"] == self.question_id() => self.answer = Some(message),
            None => {}
        }
    }

    fn cancel(&mut self, session: &Value) {
        if self.is("deaf") || self.is("flood-deaf") {
            return;
        }
        if session.as_str() == self.running.as_deref() {
            self.is_cut = true;
        }
        let is_of = |message: &Value| {
            message["method"] == "session/prompt" && message["params"]["sessionId"] == *session
        };
        let (cut, waiting): (VecDeque<_>, _) = self.waiting.drain(..).partition(is_of);
        self.waiting = waiting;
        for prompt in cut {
            self.reply(&prompt["id"], json!({"stopReason": "cancelled"}));
        }
    }

    fn write(&mut self, text: &str) {
        let written = self.out.write_all(format!("{text}\n").as_bytes());
        // Who does not read does not want it.
        if written.is_err() && !self.is("stubborn") && !self.is("deaf") {
            process::exit(0);
        }
    }

    fn say(&mut self, message: Value) {
        if self.is("garbage") {
            self.write(
                "Listening on port 3000 ...\n\n\u{1b}[1m{\"jsonrpc\": \"2.0\", \"id\"\n[]\n{\"hello\": 1}",
            );
            self.write(
                &json!({"jsonrpc": "2.0", "id": 99_999, "result": {"stopReason": "end_turn"}}).to_string(),
            );
        }
        self.write(&message.to_string());
    }

    fn reply(&mut self, id: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&mut self, id: &Value, code: i64, message: &str) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn update(&mut self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.say(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn chunk(&mut self, session: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.update(
            session,
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}),
        );
    }

    fn hear(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            _ if self.is("silent") => {}
            "initialize" => self.hello(id),
            "session/new" | "session/load" if self.is("locked") => {
                self.refuse(id, -32000, "Authentication required");
            }
            "session/new" => {
                let session = format!("session-{}", self.sessions.len() + 1);
                self.open(&session, params);
                let mut opened = json!({"sessionId": session});
                if self.is("options") {
                    opened["configOptions"] = self.options();
                }
                self.reply(id, opened);
            }
            "session/load" if !self.is("no-load") => {
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                self.open(&session, params);
                let content = json!({"type": "text", "text": "hello"});
                self.update(&session, json!({"sessionUpdate": "user_message_chunk", "content": content}));
                self.chunk(&session, "echo: hello");
                self.reply(id, json!({}));
            }
            "session/set_config_option" if self.is("options") => self.set_option(id, params),
            "session/prompt" => self.turn(id, params),
            _ if !id.is_null() => self.refuse(id, -32601, "Method not found"),
            _ => {}
        }
    }

    fn hello(&mut self, id: &Value) {
        let version = self.said_of("version").and_then(|version| version.parse().ok()).unwrap_or(1);
        let mut hello = json!({
            "protocolVersion": version,
            "agentCapabilities": {"loadSession": !self.is("no-load")},
            "agentInfo": {"name": "test", "version": "1"},
        });
        if self.is("steers") {
            hello["_meta"] = json!({"steering": {"supported": true}});
        }
        self.reply(id, hello);
    }

    fn open(&mut self, session: &str, params: &Value) {
        let cwd = params["cwd"].as_str().unwrap_or_default();
        self.sessions.insert(session.to_owned(), cwd.to_owned());
    }

    fn options(&self) -> Value {
        let option = |id: &str, chosen: &str, values: [&str; 2]| {
            let values = values.map(|value| json!({"value": value, "name": value}));
            json!({
                "id": id, "name": id, "category": id, "type": "select", "currentValue": chosen, "options": values,
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
            _ => return self.refuse(id, -32602, "there is no such choice"),
        }
        let options = self.options();
        self.reply(id, json!({"configOptions": options}));
    }

    fn question_id(&self) -> Value {
        json!(format!("question-{}", self.n_asked))
    }

    fn ask_only(&mut self, method: &str, params: Value) {
        self.n_asked += 1;
        let id = self.question_id();
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Asks the client and waits for its answer, or for the end of the prompt.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.ask_only(method, params);
        loop {
            if let Some(answer) = self.answer.take() {
                return answer;
            }
            // A client answers its questions when it cancels; not every client does.
            if self.is_cut {
                return json!({"error": {"code": 0, "message": "it was cancelled"}});
            }
            self.listen(LOOK);
        }
    }

    fn speak_later(&mut self) {
        let Some(session) = self.sessions.keys().next_back().cloned() else { return };
        if self.has_spoken_later || !self.said_of("later").is_some_and(|file| Path::new(&file).exists()) {
            return;
        }
        self.has_spoken_later = true;
        self.chunk(&session, "by the way");
        if self.is("asks") {
            self.ask_permission(&session);
        }
    }
}

fn complain(text: &str) {
    // Who does not read does not want it.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
