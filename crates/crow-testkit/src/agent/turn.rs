//! The fake agent's handling of a prompt.
#![expect(clippy::disallowed_methods, reason = "what it starts and what it was given is the question")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{FakeAgent, POLL_INTERVAL, write_stderr};
use crate::tracked_command::TrackedCommand;

/// The number of tokens it reports.
const USED_TOKENS: u64 = 1234;

/// Their responses are far larger than a pipe's buffer.
const UNREAD_REQUESTS: usize = 3000;

impl FakeAgent {
    pub(super) fn run_prompt(&mut self, id: &Value, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if !self.sessions.contains_key(&session) {
            return self.reply_error(id, -32002, "there is no such session");
        }
        let blocks = params["prompt"].as_array().into_iter().flatten();
        let prompt: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        self.prompt_session = Some(session.clone());
        self.is_cancelled = false;
        self.send_text(&session, "echo: ");
        if self.has_behavior("dies") {
            write_stderr("the wings fell off\n");
            process::exit(9);
        }
        self.send_text(&session, &prompt.join(" "));
        self.send_edit(&session);
        self.start_commands(&session);
        if self.has_behavior("unread") {
            self.stop_reading(&session);
        }
        self.use_client(&session);
        self.wait_for_release();
        while !self.is_cancelled && self.has_behavior("nags") {
            let request = self.permission_request(&session);
            self.send_request("session/request_permission", request);
            self.receive_line(Duration::ZERO);
        }
        while !self.is_cancelled && (self.has_behavior("flood") || self.has_behavior("flood-deaf")) {
            self.send_text(&session, "and so on ");
            self.receive_line(Duration::ZERO);
        }
        self.prompt_session = None;
        self.end_prompt(id, &session);
    }

    fn end_prompt(&mut self, id: &Value, session: &str) {
        if self.has_behavior("fails") && !self.is_cancelled {
            let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "no fuel"}});
            return self.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        if let Some(outcome) = self.option_value("reports") {
            let report = json!({
                "sessionUpdate": "agent_message_chunk", "messageId": "note-1",
                "content": {"type": "text", "text": "It is over."},
                "_meta": {"speckit": {"outcome": outcome}},
            });
            self.send_update(session, report);
        }
        let mut response = json!({"stopReason": if self.is_cancelled || self.has_behavior("gives-up") { "cancelled" } else { "end_turn" }});
        if self.has_behavior("usage") {
            self.send_update(
                session,
                json!({"sessionUpdate": "usage_update", "used": USED_TOKENS, "size": 32_000}),
            );
            response["usage"] = json!({"totalTokens": USED_TOKENS, "inputTokens": 1200, "outputTokens": 34});
        }
        self.reply(id, response);
    }

    /// Announces a call and its diff.
    fn send_edit(&mut self, session: &str) {
        let path = Path::new(&self.sessions[session]).join("notes.txt");
        let location = json!([{"path": path}]);
        self.send_update(
            session,
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Edit notes.txt", "kind": "edit",
                "status": "in_progress", "locations": location, "rawInput": {"path": "notes.txt"},
            }),
        );
        let diff = json!([{"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"}]);
        self.send_update(
            session,
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed", "content": diff,
            }),
        );
    }

    fn stop_reading(&mut self, session: &str) -> ! {
        for _ in 0..UNREAD_REQUESTS {
            self.send_request("terminal/output", json!({"sessionId": session, "terminalId": "none"}));
        }
        loop {
            thread::park();
        }
    }

    /// Waits for the file that ends the prompt.
    fn wait_for_release(&mut self) {
        if let Some(file) = self.option_value("slow") {
            while !self.is_cancelled && !Path::new(&file).exists() {
                self.receive_line(POLL_INTERVAL);
            }
        }
    }

    #[expect(clippy::zombie_processes, reason = "they are to be left behind")]
    fn start_commands(&mut self, session: &str) {
        let own_session = self
            .option_value("strays")
            .map(|directory| ("setsid", vec!["sh", "-c", TrackedCommand::COMMAND], directory));
        let same_session = self
            .option_value("spawns")
            .map(|directory| ("sh", vec!["-c", TrackedCommand::COMMAND], directory));
        let outputs = own_session.into_iter().chain(same_session).map(|(program, args, directory)| {
            let mut command = Command::new(program);
            command.args(args).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("a shell starts");
            let mut line = String::new();
            let output = BufReader::new(child.stdout.take().expect("it was asked for")).read_line(&mut line);
            output.expect("it says that it started");
            line.trim().to_owned()
        });
        for line in outputs.collect::<Vec<_>>() {
            self.send_text(session, &format!("; {line}"));
        }
    }

    fn use_client(&mut self, session: &str) {
        if self.has_behavior("asks") {
            self.ask_permission(session);
        }
        if let Some(path) = self.option_value("reads") {
            let params = json!({"sessionId": session, "path": path});
            self.request_and_report(session, "fs/read_text_file", params);
        }
        if let Some(path) = self.option_value("writes") {
            let params = json!({"sessionId": session, "path": path, "content": "written by the agent\n"});
            self.request_and_report(session, "fs/write_text_file", params);
        }
        if let Some(command) = self.option_value("terminal") {
            for _ in 0..if self.has_behavior("again") { 2 } else { 1 } {
                self.run_in_terminal(session, &command);
            }
        }
        if let Some(n_terminals) = self.option_value("hoards").and_then(|number| number.parse().ok()) {
            self.create_terminals(session, n_terminals);
        }
        for name in self.option_values("env").collect::<Vec<_>>() {
            let value = std::env::var(&name).unwrap_or_else(|_| "(not set)".to_owned());
            self.send_text(session, &format!("; {name}: {value}"));
        }
        if self.has_behavior("where") {
            let start_dir = std::env::current_dir().expect("it was started somewhere");
            let text = format!("; started in {}, works in {}", start_dir.display(), self.sessions[session]);
            self.send_text(session, &text);
        }
    }

    pub(super) fn ask_permission(&mut self, session: &str) {
        let request = self.permission_request(session);
        let mut announcement = request["toolCall"].clone();
        announcement["sessionUpdate"] = json!("tool_call");
        self.send_update(session, announcement);
        let mut request = request;
        if self.has_behavior("blind") {
            request["toolCall"] = json!({"toolCallId": "call-2"});
        }
        if self.has_behavior("mute") {
            request["toolCall"] = json!({"toolCallId": "call-3"});
        }
        if let Some(call) = request["toolCall"].as_object_mut().filter(|_| self.has_behavior("kindless")) {
            call.remove("kind");
        }
        if self.has_behavior("leaves") {
            return self.send_request("session/request_permission", request);
        }
        let response = self.request_and_report(session, "session/request_permission", request);
        let option_id = response["result"]["outcome"]["optionId"].as_str().unwrap_or_default();
        let status = if option_id.starts_with("allow") { "completed" } else { "failed" };
        self.send_update(
            session,
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-2", "status": status}),
        );
    }

    /// Builds a permission request for what it is going to request of its client, or for a dangerous command.
    fn permission_request(&self, session: &str) -> Value {
        let (kind, input) = match self.option_value("writes") {
            Some(path) => ("edit", json!({"path": path})),
            None if self.has_behavior("line") => ("other", Value::Null),
            None if self.has_behavior("vague") => ("other", json!({"command": "env -u A echo of another"})),
            None => ("execute", json!({"command": "rm -rf build"})),
        };
        let mut call = json!({
            "toolCallId": "call-2", "title": "rm -rf build", "kind": kind, "status": "pending", "rawInput": input,
        });
        if self.has_behavior("line") {
            call.as_object_mut().map(|call| call.remove("rawInput"));
            call["title"] = json!("Shell: env -u A echo of…");
            let text = json!({"type": "text", "text": "Run command `env -u A echo of another`"});
            call["content"] = json!([{"type": "content", "content": text}]);
        }
        let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let options = if self.has_behavior("twice") {
            json!([option("both", "Allow", "allow_once"), option("both", "Reject", "reject_once")])
        } else {
            json!([
                option("allow_once", "Allow", "allow_once"),
                option("allow_always", "Always allow", "allow_always"),
                option("reject_once", "Reject", "reject_once"),
            ])
        };
        let mut request = json!({"sessionId": session, "toolCall": call, "options": options});
        if self.has_behavior("offers") {
            request["_meta"] = json!({"crow/asks": "offer"});
        }
        request
    }

    fn create_terminals(&mut self, session: &str, n_terminals: usize) {
        let created = (0..n_terminals).filter(|_| {
            let params = json!({"sessionId": session, "command": "true"});
            !self.request("terminal/create", params)["result"].is_null()
        });
        let n_created = created.count();
        self.send_text(session, &format!("; it has {n_created} terminals"));
    }

    fn run_in_terminal(&mut self, session: &str, command: &str) {
        let mut params = json!({"sessionId": session, "command": "sh", "args": ["-c", command]});
        if self.has_behavior("line") {
            params = json!({"sessionId": session, "command": command});
        }
        if let Some((name, value)) =
            self.option_value("sets").as_ref().and_then(|variable| variable.split_once('='))
        {
            params["env"] = json!([{"name": name, "value": value}]);
        }
        if let Some(directory) = self.option_value("in") {
            let cwd = self.sessions.get(session).map(String::as_str).unwrap_or_default();
            params["cwd"] = json!(format!("{cwd}/{directory}"));
        }
        let created = self.request_and_report(session, "terminal/create", params);
        let Some(terminal) = created["result"]["terminalId"].as_str() else { return };
        for method in ["terminal/wait_for_exit", "terminal/output", "terminal/release"] {
            self.request_and_report(session, method, json!({"sessionId": session, "terminalId": terminal}));
        }
    }

    /// Sends a request and reports the response.
    fn request_and_report(&mut self, session: &str, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        let error = &response["error"];
        let outcome = if error.is_null() {
            response["result"].to_string()
        } else {
            format!("error {}: {}", error["code"], error["message"].as_str().unwrap_or_default())
        };
        self.send_text(session, &format!("; {method}: {outcome}"));
        response
    }
}
