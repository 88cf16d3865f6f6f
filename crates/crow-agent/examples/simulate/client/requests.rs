//! The client's requests and their answers.

use serde_json::{Value, json};

use super::{Action, FakeClient};

/// Think time between prompts, in milliseconds.
const THINK_TIME_MAX: u64 = 300;

/// A request of the client.
#[derive(Debug, Clone)]
pub(super) enum PendingRequest {
    Initialize,
    New,
    Load { session: String },
    Prompt { session: String, n_left: u64 },
    Steer { session: String },
    SetMode { session: String },
    Close { session: String, loads_again: bool },
}

impl FakeClient<'_> {
    pub(super) async fn send_request(&mut self, request: PendingRequest) {
        let (method, params) = self.encode_request(&request);
        if let PendingRequest::Prompt { session, .. } = &request {
            self.plan_interruptions(session);
        }
        self.next_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.pending.insert(self.next_id, request);
        self.send_line(line.to_string()).await;
    }

    fn encode_request(&mut self, request: &PendingRequest) -> (&'static str, Value) {
        match request {
            PendingRequest::Initialize => {
                ("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))
            }
            PendingRequest::New => ("session/new", json!({"cwd": self.cwd, "mcpServers": []})),
            PendingRequest::Load { session } => {
                let memory = self.memory.entry(session.clone()).or_default();
                memory.updates.clear();
                memory.loading = Some(Default::default());
                ("session/load", json!({"sessionId": session, "cwd": self.cwd, "mcpServers": []}))
            }
            PendingRequest::Prompt { session, .. } => {
                let content = json!({"type": "text", "text": format!("prompt {}", self.world.next_words())});
                let update = json!({"sessionUpdate": "user_message_chunk", "content": content});
                self.memory.entry(session.clone()).or_default().updates.push(update);
                ("session/prompt", json!({"sessionId": session, "prompt": [content]}))
            }
            PendingRequest::Steer { session } => {
                let content = json!([{"type": "text", "text": self.world.next_words()}]);
                ("_session/steering", json!({"sessionId": session, "prompt": content}))
            }
            PendingRequest::SetMode { session } => {
                let mode = self.world.draw_item(&["ask", "auto", "plan"]);
                ("session/set_mode", json!({"sessionId": session, "modeId": mode}))
            }
            PendingRequest::Close { session, .. } => ("session/close", json!({ "sessionId": session })),
        }
    }

    pub(super) fn read_response(&mut self, id: u64, message: &Value) {
        let Some(request) = self.pending.remove(&id) else {
            return self.world.add_violation(format!("request {id} was answered twice"));
        };
        let result = message.get("result");
        match request {
            PendingRequest::Initialize => self.plan_sessions(),
            PendingRequest::New => {
                if let Some(session) = result.and_then(|result| result["sessionId"].as_str()) {
                    self.memory.entry(session.to_owned()).or_default().is_open = true;
                    self.plan_prompt(session.to_owned(), self.plan.n_prompts);
                }
            }
            PendingRequest::Load { session } => self.end_load(session, message),
            PendingRequest::Prompt { session, n_left } => self.end_prompt(session, n_left, message),
            PendingRequest::Close { session, loads_again: true } => {
                self.plan_action(0, Action::Request(PendingRequest::Load { session }));
            }
            PendingRequest::Close { .. } | PendingRequest::Steer { .. } | PendingRequest::SetMode { .. } => {}
        }
    }

    fn plan_sessions(&mut self) {
        let sessions: Vec<String> = self.memory.keys().cloned().collect();
        for session in sessions {
            self.plan_action(0, Action::Request(PendingRequest::Load { session }));
        }
        for _ in 0..self.plan.n_new_sessions {
            let after_ms = self.world.draw_below(THINK_TIME_MAX);
            self.plan_action(after_ms, Action::Request(PendingRequest::New));
        }
    }

    fn plan_prompt(&mut self, session: String, n_left: u64) {
        if n_left == 0 {
            return;
        }
        if !self.world.is_calm() && self.world.draws_chance(15) {
            let session = session.clone();
            self.plan_action(0, Action::Request(PendingRequest::SetMode { session }));
        }
        let after_ms = self.world.draw_below(THINK_TIME_MAX);
        self.plan_action(after_ms, Action::Request(PendingRequest::Prompt { session, n_left: n_left - 1 }));
    }

    /// Checks that a loaded session has everything that was shown of it.
    fn end_load(&mut self, session: String, message: &Value) {
        let memory = self.memory.entry(session.clone()).or_default();
        let loaded = memory.loading.take().unwrap_or_default();
        if message.get("result").is_none() {
            let is_expected = !self.world.is_calm() || memory.shown.is_empty();
            if !is_expected {
                self.world.add_violation(format!("{session} does not load: {message}"));
            }
            return;
        }
        for missing in memory.shown.missing_in(&loaded) {
            self.world.add_violation(format!("{session} has lost something: {missing}"));
        }
        memory.shown = loaded;
        memory.is_open = true;
        self.plan_prompt(session, self.plan.n_prompts);
    }

    fn end_prompt(&mut self, session: String, n_left: u64, message: &Value) {
        let ending = match message["result"]["stopReason"].as_str() {
            Some(reason) => reason.to_owned(),
            None => format!("error {}", message["error"]["data"]["kind"].as_str().unwrap_or("unknown")),
        };
        self.world.count_ending(&ending);
        if self.world.is_calm() && ending != "end_turn" {
            self.world.add_violation(format!("{session} does not go on: {message}"));
        }
        if !self.world.is_calm() && self.world.draws_chance(10) {
            let close = PendingRequest::Close { session, loads_again: n_left > 0 };
            return self.plan_action(0, Action::Request(close));
        }
        self.plan_prompt(session, n_left);
    }
}
