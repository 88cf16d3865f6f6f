//! What the agent does with a prompt.
#![expect(clippy::disallowed_methods, reason = "what it starts and what it was given is the question")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Agent, LOOK, complain};
use crate::leash::Leash;

/// What it says of its tokens.
const USED: u64 = 1234;

/// Their answers are far more than a pipe holds.
const UNREAD_ANSWERS: usize = 3000;

impl Agent {
    pub(super) fn turn(&mut self, id: &Value, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if !self.sessions.contains_key(&session) {
            return self.refuse(id, -32002, "there is no such session");
        }
        let blocks = params["prompt"].as_array().into_iter().flatten();
        let prompt: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        self.running = Some(session.clone());
        self.is_cut = false;
        self.chunk(&session, "echo: ");
        if self.is("dies") {
            complain("the wings fell off\n");
            process::exit(9);
        }
        self.chunk(&session, &prompt.join(" "));
        self.edit(&session);
        self.start_others(&session);
        if self.is("unread") {
            self.read_nothing(&session);
        }
        self.ask_and_tell(&session);
        self.wait();
        while !self.is_cut && self.is("nags") {
            let question = self.question(&session);
            self.ask_only("session/request_permission", question);
            self.listen(Duration::ZERO);
        }
        while !self.is_cut && (self.is("flood") || self.is("flood-deaf")) {
            self.chunk(&session, "and so on ");
            self.listen(Duration::ZERO);
        }
        self.running = None;
        self.end(id, &session);
    }

    fn end(&mut self, id: &Value, session: &str) {
        if self.is("fails") && !self.is_cut {
            let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "no fuel"}});
            return self.say(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        if let Some(outcome) = self.said_of("reports") {
            let report = json!({
                "sessionUpdate": "agent_message_chunk", "messageId": "note-1",
                "content": {"type": "text", "text": "It is over."},
                "_meta": {"speckit": {"outcome": outcome}},
            });
            self.update(session, report);
        }
        let mut ended = json!({"stopReason": if self.is_cut { "cancelled" } else { "end_turn" }});
        if self.is("usage") {
            self.update(session, json!({"sessionUpdate": "usage_update", "used": USED, "size": 32_000}));
            ended["usage"] = json!({"totalTokens": USED, "inputTokens": 1200, "outputTokens": 34});
        }
        self.reply(id, ended);
    }

    /// Announces a call and shows what it would have changed.
    fn edit(&mut self, session: &str) {
        let path = Path::new(&self.sessions[session]).join("notes.txt");
        let location = json!([{"path": path}]);
        self.update(
            session,
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Edit notes.txt", "kind": "edit",
                "status": "in_progress", "locations": location, "rawInput": {"path": "notes.txt"},
            }),
        );
        let diff = json!([{"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"}]);
        self.update(
            session,
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed", "content": diff,
            }),
        );
    }

    fn read_nothing(&mut self, session: &str) -> ! {
        for _ in 0..UNREAD_ANSWERS {
            self.ask_only("terminal/output", json!({"sessionId": session, "terminalId": "none"}));
        }
        loop {
            thread::park();
        }
    }

    /// Waits for the file that lets a prompt end.
    fn wait(&mut self) {
        if let Some(file) = self.said_of("slow") {
            while !self.is_cut && !Path::new(&file).exists() {
                self.listen(LOOK);
            }
        }
    }

    #[expect(clippy::zombie_processes, reason = "they are to be left behind")]
    fn start_others(&mut self, session: &str) {
        // Where we speak is not theirs.
        let script = format!("exec 3>&-; {}", Leash::COMMAND);
        let alone = self.said_of("strays").map(|folder| ("setsid", vec!["sh", "-c", &script], folder));
        let here = self.said_of("spawns").map(|folder| ("sh", vec!["-c", &*script], folder));
        let others = alone.into_iter().chain(here).map(|(program, args, folder)| {
            let mut command = Command::new(program);
            command.args(args).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("a shell starts");
            let mut said = String::new();
            let output = BufReader::new(child.stdout.take().expect("it was asked for")).read_line(&mut said);
            output.expect("it says that it started");
            said.trim().to_owned()
        });
        for said in others.collect::<Vec<_>>() {
            self.chunk(session, &format!("; {said}"));
        }
    }

    fn ask_and_tell(&mut self, session: &str) {
        if self.is("asks") {
            self.ask_permission(session);
        }
        if let Some(path) = self.said_of("reads") {
            let params = json!({"sessionId": session, "path": path});
            self.tell(session, "fs/read_text_file", params);
        }
        if let Some(path) = self.said_of("writes") {
            let params = json!({"sessionId": session, "path": path, "content": "written by the agent\n"});
            self.tell(session, "fs/write_text_file", params);
        }
        if let Some(command) = self.said_of("terminal") {
            self.run(session, &command);
        }
        if let Some(n_wanted) = self.said_of("hoards").and_then(|number| number.parse().ok()) {
            self.hoard(session, n_wanted);
        }
        for name in self.all_said_of("env").collect::<Vec<_>>() {
            let value = std::env::var(&name).unwrap_or_else(|_| "(not set)".to_owned());
            self.chunk(session, &format!("; {name}: {value}"));
        }
        if self.is("where") {
            let started = std::env::current_dir().expect("it was started somewhere");
            let told = format!("; started in {}, works in {}", started.display(), self.sessions[session]);
            self.chunk(session, &told);
        }
    }

    pub(super) fn ask_permission(&mut self, session: &str) {
        let question = self.question(session);
        let mut announced = question["toolCall"].clone();
        announced["sessionUpdate"] = json!("tool_call");
        self.update(session, announced);
        let mut question = question;
        if let Some(call) = question["toolCall"].as_object_mut().filter(|_| self.is("kindless")) {
            call.remove("kind");
        }
        if self.is("leaves") {
            return self.ask_only("session/request_permission", question);
        }
        let answer = self.tell(session, "session/request_permission", question);
        let chosen = answer["result"]["outcome"]["optionId"].as_str().unwrap_or_default();
        let status = if chosen.starts_with("allow") { "completed" } else { "failed" };
        self.update(
            session,
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-2", "status": status}),
        );
    }

    /// Asks whether it may do what it wants of its client later, or something bad.
    fn question(&self, session: &str) -> Value {
        let (kind, input) = match self.said_of("writes") {
            Some(path) => ("edit", json!({"path": path})),
            None if self.is("vague") => ("other", json!({"command": "env -u A echo of another"})),
            None => ("execute", json!({"command": "rm -rf build"})),
        };
        let call = json!({
            "toolCallId": "call-2", "title": "rm -rf build", "kind": kind, "status": "pending", "rawInput": input,
        });
        let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let options = if self.is("twice") {
            json!([option("both", "Allow", "allow_once"), option("both", "Reject", "reject_once")])
        } else {
            json!([
                option("allow_once", "Allow", "allow_once"),
                option("allow_always", "Always allow", "allow_always"),
                option("reject_once", "Reject", "reject_once"),
            ])
        };
        let mut question = json!({"sessionId": session, "toolCall": call, "options": options});
        if self.is("offers") {
            question["_meta"] = json!({"crow/asks": "offer"});
        }
        question
    }

    fn hoard(&mut self, session: &str, n_wanted: usize) {
        let got = (0..n_wanted).filter(|_| {
            let params = json!({"sessionId": session, "command": "true"});
            !self.ask("terminal/create", params)["result"].is_null()
        });
        let n_got = got.count();
        self.chunk(session, &format!("; it has {n_got} terminals"));
    }

    fn run(&mut self, session: &str, command: &str) {
        let mut params = json!({"sessionId": session, "command": "sh", "args": ["-c", command]});
        if let Some((name, value)) =
            self.said_of("sets").as_ref().and_then(|variable| variable.split_once('='))
        {
            params["env"] = json!([{"name": name, "value": value}]);
        }
        let created = self.tell(session, "terminal/create", params);
        let Some(terminal) = created["result"]["terminalId"].as_str() else { return };
        for method in ["terminal/wait_for_exit", "terminal/output", "terminal/release"] {
            self.tell(session, method, json!({"sessionId": session, "terminalId": terminal}));
        }
    }

    /// Asks the client and says what it answered.
    fn tell(&mut self, session: &str, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        let error = &answer["error"];
        let told = if error.is_null() {
            answer["result"].to_string()
        } else {
            format!("error {}: {}", error["code"], error["message"].as_str().unwrap_or_default())
        };
        self.chunk(session, &format!("; {method}: {told}"));
        answer
    }
}
