//! The side of the client that gave the task: it is answered here until a worker has the task, and after that what the
//! worker sends is passed on.

use std::collections::BTreeMap;

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;
use serde_json::{Map, Value, json};

use super::message::{
    INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcMessage, error_line, notification_line,
    request_line, response_line, result_line, with_session,
};
use super::outcome::error_body;
use super::{CANCEL, CANCEL_REQUEST, FORWARDED_REQUESTS, OPEN_REQUESTS_MAX, PROMPT, STEERING, UPDATE};

/// A step of the relay's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentRelayAction {
    SendToClient(String),
    SendToWorker(String),
    /// Give this prompt to a worker, or find the one that has it.
    StartTask {
        prompt: String,
        model: Option<String>,
    },
    /// Take the task back, or end it where it runs.
    CancelTask,
}

/// The agent of a client whose task runs elsewhere. It has one session with one turn.
#[derive(Debug)]
pub struct ParentRelay {
    session: SessionId,
    version: &'static str,
    /// True if an earlier process gave the task.
    is_resumed: bool,
    model: Option<String>,
    /// The ID of the prompt without an answer.
    prompt: Option<Value>,
    had_prompt: bool,
    is_attached: bool,
    /// IDs of the worker, by those under which the client knows its requests.
    open_requests: BTreeMap<u64, Value>,
    last_id: u64,
    /// IDs of steering input without an answer.
    steering: Vec<Value>,
}

impl ParentRelay {
    /// Creates a relay for a session of this name.
    pub fn new(session: SessionId, version: &'static str) -> Self {
        Self {
            session,
            version,
            is_resumed: false,
            model: None,
            prompt: None,
            had_prompt: false,
            is_attached: false,
            open_requests: BTreeMap::new(),
            last_id: 0,
            steering: Vec::new(),
        }
    }

    /// Creates a relay for the session of a task that an earlier process gave.
    pub fn resume(session: SessionId, version: &'static str) -> Self {
        Self { is_resumed: true, ..Self::new(session, version) }
    }

    /// Handles a line of the client.
    pub fn handle_client_line(&mut self, line: &str) -> Vec<ParentRelayAction> {
        match RpcMessage::parse(line) {
            Some(RpcMessage::Request { id, method, params }) => {
                self.handle_client_request(&id, &method, &params, line)
            }
            Some(RpcMessage::Notification { method, .. }) if method == CANCEL => {
                vec![ParentRelayAction::CancelTask]
            }
            Some(RpcMessage::Response { id, body }) => {
                match id.as_u64().and_then(|id| self.open_requests.remove(&id)) {
                    Some(worker_id) => {
                        vec![ParentRelayAction::SendToWorker(response_line(&worker_id, body))]
                    }
                    None => Vec::new(),
                }
            }
            Some(RpcMessage::Notification { .. }) | None => Vec::new(),
        }
    }

    fn handle_client_request(
        &mut self,
        id: &Value,
        method: &str,
        params: &Map<String, Value>,
        line: &str,
    ) -> Vec<ParentRelayAction> {
        let answer = |line: String| vec![ParentRelayAction::SendToClient(line)];
        match method {
            "initialize" => answer(result_line(id, &self.initialize_response())),
            "session/resume" if self.is_resumed && self.is_own_session(params) => {
                answer(result_line(id, &wire::ResumeSessionResponse::new()))
            }
            "session/new" if !self.is_resumed => {
                let session = wire::SessionId::new(self.session.as_str());
                answer(result_line(id, &wire::NewSessionResponse::new(session)))
            }
            "session/set_config_option" => {
                let text = |name: &str| params.get(name).and_then(Value::as_str);
                match (text("configId"), text("value")) {
                    (Some("model"), Some(model)) => self.model = Some(model.to_owned()),
                    _ => return answer(error_line(id, INVALID_PARAMS, "tasks of a queue have only a model")),
                }
                answer(result_line(id, &wire::SetSessionConfigOptionResponse::new(Vec::new())))
            }
            PROMPT => self.start_task(id, params),
            STEERING if self.is_attached && self.steering.len() < OPEN_REQUESTS_MAX => {
                self.steering.push(id.clone());
                vec![ParentRelayAction::SendToWorker(line.to_owned())]
            }
            STEERING => answer(error_line(
                id,
                INVALID_PARAMS,
                "the task waits in its queue, and takes no messages before a worker has it",
            )),
            _ => answer(error_line(id, METHOD_NOT_FOUND, "tasks of a queue do not have that method")),
        }
    }

    fn is_own_session(&self, params: &Map<String, Value>) -> bool {
        params.get("sessionId").and_then(Value::as_str) == Some(self.session.as_str())
    }

    fn initialize_response(&self) -> wire::InitializeResponse {
        let meta = json!({ "steering": { "supported": true } });
        let mut sessions = wire::SessionCapabilities::new();
        if self.is_resumed {
            sessions = sessions.resume(wire::SessionResumeCapabilities::new());
        }
        wire::InitializeResponse::new(sdk::schema::ProtocolVersion::V1)
            .agent_capabilities(wire::AgentCapabilities::new().session_capabilities(sessions))
            .agent_info(wire::Implementation::new("crow-fleet", self.version))
            .meta(meta.as_object().cloned())
    }

    fn start_task(&mut self, id: &Value, params: &Map<String, Value>) -> Vec<ParentRelayAction> {
        let rejected =
            |reason: &str| vec![ParentRelayAction::SendToClient(error_line(id, INVALID_PARAMS, reason))];
        if std::mem::replace(&mut self.had_prompt, true) {
            return rejected("a task of a queue has one turn; start another task");
        }
        let blocks = params.get("prompt").and_then(Value::as_array);
        let texts: Option<Vec<&str>> =
            blocks.into_iter().flatten().map(|block| block.get("text").and_then(Value::as_str)).collect();
        let Some(texts) = texts.filter(|texts| !texts.is_empty()) else {
            return rejected("tasks of a queue take text only");
        };
        self.prompt = Some(id.clone());
        vec![ParentRelayAction::StartTask { prompt: texts.join("\n"), model: self.model.clone() }]
    }

    /// Records that lines from and to a worker are passed on.
    pub fn attach(&mut self) {
        self.is_attached = true;
    }

    /// Withdraws the requests of a worker that no longer has the task.
    pub fn detach(&mut self) -> Vec<ParentRelayAction> {
        self.is_attached = false;
        let withdrawn = std::mem::take(&mut self.open_requests).into_keys().map(|id| {
            let line = notification_line(CANCEL_REQUEST, &json!({ "requestId": id }));
            ParentRelayAction::SendToClient(line)
        });
        let unsent = std::mem::take(&mut self.steering).into_iter().map(|id| {
            let line = error_line(&id, INTERNAL_ERROR, "the worker that had the task is gone");
            ParentRelayAction::SendToClient(line)
        });
        withdrawn.chain(unsent).collect()
    }

    /// Handles a line of the worker. Lines that a client does not expect are dropped: the worker is another machine.
    pub fn handle_worker_line(&mut self, line: &str) -> Vec<ParentRelayAction> {
        match RpcMessage::parse(line) {
            Some(RpcMessage::Notification { method, params }) if method == UPDATE => {
                let line = notification_line(UPDATE, &with_session(params, self.session.as_str()));
                vec![ParentRelayAction::SendToClient(line)]
            }
            Some(RpcMessage::Notification { method, params }) if method == CANCEL_REQUEST => {
                let worker_id = params.get("requestId");
                let known = self.open_requests.iter().find(|(_, id)| Some(*id) == worker_id);
                let Some(id) = known.map(|(id, _)| *id) else { return Vec::new() };
                self.open_requests.remove(&id);
                let line = notification_line(CANCEL_REQUEST, &json!({ "requestId": id }));
                vec![ParentRelayAction::SendToClient(line)]
            }
            Some(RpcMessage::Request { id, method, params }) => {
                if !FORWARDED_REQUESTS.contains(&method.as_str())
                    || self.open_requests.len() >= OPEN_REQUESTS_MAX
                {
                    let line = error_line(&id, METHOD_NOT_FOUND, "this client does not take that request");
                    return vec![ParentRelayAction::SendToWorker(line)];
                }
                self.last_id += 1;
                self.open_requests.insert(self.last_id, id);
                let params = with_session(params, self.session.as_str());
                let line = request_line(&json!(self.last_id), &method, &params);
                vec![ParentRelayAction::SendToClient(line)]
            }
            Some(RpcMessage::Response { id, body }) => {
                let Some(index) = self.steering.iter().position(|known| *known == id) else {
                    return Vec::new();
                };
                self.steering.swap_remove(index);
                vec![ParentRelayAction::SendToClient(response_line(&id, body))]
            }
            Some(RpcMessage::Notification { .. }) | None => Vec::new(),
        }
    }

    /// Cancels the turn at the worker.
    pub fn cancel(&self) -> ParentRelayAction {
        let params = with_session(Map::new(), self.session.as_str());
        ParentRelayAction::SendToWorker(notification_line(CANCEL, &params))
    }

    /// Shows the client a line about the task itself.
    pub fn show_notice(&self, text: &str) -> ParentRelayAction {
        let notice = wire::Notice::new(wire::NoticeSeverity::Warning, text);
        self.show_update(wire::SessionUpdate::Notice(notice))
    }

    /// Shows the client the answer that it missed.
    pub fn show_answer(&self, text: &str) -> ParentRelayAction {
        let block = wire::ContentBlock::Text(wire::TextContent::new(text));
        self.show_update(wire::SessionUpdate::AgentMessageChunk(wire::ContentChunk::new(block)))
    }

    fn show_update(&self, update: wire::SessionUpdate) -> ParentRelayAction {
        let session = wire::SessionId::new(self.session.as_str());
        let line = notification_line(UPDATE, &wire::SessionNotification::new(session, update));
        ParentRelayAction::SendToClient(line)
    }

    /// Answers the prompt with the worker's response.
    pub fn finish(&mut self, response: Map<String, Value>) -> Vec<ParentRelayAction> {
        let mut actions = self.detach();
        if let Some(id) = self.prompt.take() {
            actions.push(ParentRelayAction::SendToClient(response_line(&id, response)));
        }
        actions
    }

    /// Answers the prompt with an error.
    pub fn fail(&mut self, reason: &str) -> Vec<ParentRelayAction> {
        self.finish(error_body(reason))
    }

    /// Answers the prompt as cancelled.
    pub fn finish_cancelled(&mut self) -> Vec<ParentRelayAction> {
        let result = wire::PromptResponse::new(wire::StopReason::Cancelled);
        self.finish(Map::from_iter([("result".to_owned(), json!(result))]))
    }
}
