//! The side of the agent: opens its session, sends its prompt, and keeps its requests while the parent is away.

use std::collections::{BTreeMap, HashMap, VecDeque};

use agent_client_protocol as sdk;
use crow_core::ContentPart;
use sdk::v1::schema as wire;
use serde_json::{Map, Value, json};

use super::message::{
    INTERNAL_ERROR, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcMessage, error_line, notification_line,
    request_line, response_line, result_line, with_session,
};
use super::outcome::{RelayOutcome, error_body};
use super::task::{RelayTask, ResumedSession};
use super::turn_summary::TurnSummary;
use super::{CANCEL, CANCEL_REQUEST, FORWARDED_REQUESTS, OPEN_REQUESTS_MAX, PROMPT, STEERING, UPDATE};
use crate::capabilities::{AcpClientCapabilities, ClientInfo};
use crate::incoming::TurnScope;
use crate::v1;

/// Pages of sessions that are read in search of the one that goes on.
const LIST_PAGES_MAX: usize = 100;

/// The updates that are kept for a parent that has not come yet, which takes it milliseconds.
const EARLY_BYTES_MAX: usize = 256 * 1024;

/// A step of the relay's owner.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerRelayAction {
    SendToAgent(String),
    SendToParent(String),
    /// The session cannot go on: now, or never if it is missing.
    NotResumed {
        reason: String,
        is_missing: bool,
    },
    /// The turn has ended; nothing follows.
    End(RelayOutcome),
}

/// The response that the relay waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerPhase {
    Initialize,
    /// The sessions of the directory of the one that goes on.
    List,
    Open,
    SetOption,
    Prompt,
    Ended,
}

/// Whether the parent receives what the agent says.
#[derive(Debug, PartialEq, Eq)]
enum ParentPresence {
    /// It was never attached; these updates are kept for it.
    Expected(Vec<String>),
    Attached,
    Away,
}

/// The client of an agent whose parent may be away.
#[derive(Debug)]
pub struct WorkerRelay {
    task: RelayTask,
    phase: WorkerPhase,
    /// Options that are still to be set.
    options: VecDeque<(&'static str, String)>,
    session: String,
    /// Whether the agent can resume sessions.
    can_resume: bool,
    /// The pages of its sessions that were requested.
    n_list_pages: usize,
    /// The number of the last request to the agent.
    last_id: u64,
    /// The number of the request whose response the phase waits for; steering input may follow it.
    awaited_id: u64,
    parent: ParentPresence,
    /// Requests of the agent without an answer, by their IDs as JSON.
    open_requests: BTreeMap<String, String>,
    /// IDs of the parent for the requests that were passed to the agent.
    passed_requests: HashMap<u64, Value>,
    is_complete: bool,
    turn: TurnSummary,
}

impl WorkerRelay {
    /// Creates a relay without a parent, and its first request.
    pub fn start(task: RelayTask) -> (Self, Vec<WorkerRelayAction>) {
        let client_info = ClientInfo {
            name: "crow-cli",
            version: task.version,
            capabilities: AcpClientCapabilities {
                forms: true,
                session_tokens: true,
                ..AcpClientCapabilities::default()
            },
            agent_name: None,
            wants_raw_updates: false,
        };
        let model = task.model.clone().map(|model| ("model", model));
        let options = model.into_iter().chain([("mode", task.mode.as_str().to_owned())]).collect();
        let mut relay = Self {
            task,
            phase: WorkerPhase::Initialize,
            options,
            session: String::new(),
            can_resume: false,
            n_list_pages: 0,
            last_id: 0,
            awaited_id: 1,
            parent: ParentPresence::Expected(Vec::new()),
            open_requests: BTreeMap::new(),
            passed_requests: HashMap::new(),
            is_complete: true,
            turn: TurnSummary::default(),
        };
        let line = relay.next_request("initialize", &v1::initialize_request(&client_info));
        (relay, vec![WorkerRelayAction::SendToAgent(line)])
    }

    /// Gives the session a parent that knows nothing of it: it gets all open requests. The first one also gets the updates
    /// until then.
    pub fn attach(&mut self) -> Vec<WorkerRelayAction> {
        let early = match std::mem::replace(&mut self.parent, ParentPresence::Attached) {
            ParentPresence::Expected(updates) => updates,
            ParentPresence::Attached | ParentPresence::Away => Vec::new(),
        };
        self.passed_requests.clear();
        let lines = early.into_iter().chain(self.open_requests.values().cloned());
        lines.map(WorkerRelayAction::SendToParent).collect()
    }

    /// Whether updates are kept for a parent that has not come yet.
    pub fn has_early_updates(&self) -> bool {
        matches!(&self.parent, ParentPresence::Expected(updates) if !updates.is_empty())
    }

    /// Records that the parent is away: updates are dropped, and requests wait.
    pub fn detach(&mut self) {
        if self.parent == ParentPresence::Attached {
            self.parent = ParentPresence::Away;
        }
    }

    /// Returns the session in which another agent could go on with the task.
    pub fn resumable_session(&self) -> Option<&str> {
        (self.can_resume && self.turn.has_answered()).then_some(self.session.as_str())
    }

    /// Asks once more for the session that could not go on.
    pub fn resume_again(&mut self) -> Vec<WorkerRelayAction> {
        if self.phase != WorkerPhase::Open {
            return Vec::new();
        }
        let line = self.open_request();
        self.awaited_id = self.last_id;
        vec![WorkerRelayAction::SendToAgent(line)]
    }

    /// Returns the tokens that the task has used, as far as its agent says.
    pub fn tokens_spent(&self) -> u64 {
        self.turn.tokens_spent()
    }

    /// Returns the number of tool calls that have ended.
    pub fn n_ended_calls(&self) -> u64 {
        self.turn.n_ended_calls()
    }

    /// Whether no update was dropped so far.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Records that an update could not be passed on.
    pub fn mark_incomplete(&mut self) {
        self.is_complete = false;
    }

    /// Handles a line of the agent.
    pub fn handle_agent_line(&mut self, line: &str) -> Vec<WorkerRelayAction> {
        if self.phase == WorkerPhase::Ended {
            return Vec::new();
        }
        match RpcMessage::parse(line) {
            Some(RpcMessage::Response { id, body }) => self.handle_response(&id, body),
            Some(RpcMessage::Request { id, method, .. }) => self.handle_request(line, &id, &method),
            Some(RpcMessage::Notification { method, params }) => {
                self.handle_notification(line, &method, &params)
            }
            None => Vec::new(),
        }
    }

    /// Handles a line of the parent: an answer to a request of the agent, a cancellation, or steering input.
    pub fn handle_parent_line(&mut self, line: &str) -> Vec<WorkerRelayAction> {
        match RpcMessage::parse(line) {
            Some(RpcMessage::Response { id, body }) => match self.open_requests.remove(&id.to_string()) {
                Some(_) => vec![WorkerRelayAction::SendToAgent(response_line(&id, body))],
                None => Vec::new(),
            },
            Some(RpcMessage::Notification { method, .. }) if method == CANCEL => self.cancel(),
            Some(RpcMessage::Notification { .. }) | None => Vec::new(),
            Some(RpcMessage::Request { id, method, params }) => {
                let can_pass = self.phase == WorkerPhase::Prompt && method == STEERING;
                if !can_pass || self.passed_requests.len() >= OPEN_REQUESTS_MAX {
                    let line = error_line(&id, METHOD_NOT_FOUND, "the task does not take this at the moment");
                    return vec![WorkerRelayAction::SendToParent(line)];
                }
                let line = self.next_request(&method, &with_session(params, &self.session));
                self.passed_requests.insert(self.last_id, id);
                vec![WorkerRelayAction::SendToAgent(line)]
            }
        }
    }

    /// Cancels the turn: its open requests are answered, and its end follows.
    pub fn cancel(&mut self) -> Vec<WorkerRelayAction> {
        match self.phase {
            WorkerPhase::Ended => Vec::new(),
            WorkerPhase::Initialize | WorkerPhase::List | WorkerPhase::Open | WorkerPhase::SetOption => {
                let result = wire::PromptResponse::new(wire::StopReason::Cancelled);
                self.end(Map::from_iter([("result".to_owned(), json!(result))]))
            }
            WorkerPhase::Prompt => {
                let cancel = notification_line(CANCEL, &with_session(Map::new(), &self.session));
                let mut actions = vec![WorkerRelayAction::SendToAgent(cancel)];
                for request in std::mem::take(&mut self.open_requests).into_values() {
                    if let Some(RpcMessage::Request { id, method, .. }) = RpcMessage::parse(&request) {
                        actions.push(WorkerRelayAction::SendToAgent(cancelled_response(&id, &method)));
                    }
                }
                actions
            }
        }
    }

    /// Ends the turn because the agent is gone.
    pub fn fail(&mut self, reason: &str) -> Vec<WorkerRelayAction> {
        if self.phase == WorkerPhase::Ended { Vec::new() } else { self.end(error_body(reason)) }
    }

    fn end(&mut self, response: Map<String, Value>) -> Vec<WorkerRelayAction> {
        self.phase = WorkerPhase::Ended;
        self.open_requests.clear();
        let answer = self.turn.take_answer();
        vec![WorkerRelayAction::End(RelayOutcome { response, answer, is_complete: self.is_complete })]
    }

    fn next_request(&mut self, method: &str, params: &impl serde::Serialize) -> String {
        self.last_id += 1;
        request_line(&json!(self.last_id), method, params)
    }

    fn handle_response(&mut self, id: &Value, body: Map<String, Value>) -> Vec<WorkerRelayAction> {
        let number = id.as_u64().unwrap_or_default();
        if let Some(parent_id) = self.passed_requests.remove(&number) {
            let line = response_line(&parent_id, body);
            return self.send_if_attached(line);
        }
        if number != self.awaited_id {
            return Vec::new();
        }
        if matches!(self.phase, WorkerPhase::List | WorkerPhase::Open)
            && self.task.session.is_some()
            && let Some(error) = body.get("error")
        {
            let reason = error.get("message").and_then(Value::as_str).unwrap_or("the agent gives no reason");
            let code = error.get("code").and_then(Value::as_i64);
            let is_missing = self.phase == WorkerPhase::List || code == Some(RESOURCE_NOT_FOUND);
            return vec![WorkerRelayAction::NotResumed { reason: reason.to_owned(), is_missing }];
        }
        if self.phase == WorkerPhase::Prompt || body.contains_key("error") {
            return self.end(body);
        }
        let result = body.get("result");
        match self.phase {
            WorkerPhase::Initialize => {
                let pointer = "/agentCapabilities/sessionCapabilities/resume";
                self.can_resume =
                    result.and_then(|result| result.pointer(pointer)).is_some_and(Value::is_object);
                if self.task.session.is_some() && !self.can_resume {
                    let reason = "the agent cannot resume sessions".to_owned();
                    return vec![WorkerRelayAction::NotResumed { reason, is_missing: true }];
                }
            }
            WorkerPhase::List => {
                let listed = result.and_then(|result| result.get("sessions")).and_then(Value::as_array);
                let is_listed = |session: &ResumedSession| {
                    listed.into_iter().flatten().any(|listed| listed["sessionId"] == session.id)
                };
                if !self.task.session.as_ref().is_some_and(is_listed) {
                    let cursor = result.and_then(|result| result.get("nextCursor")).and_then(Value::as_str);
                    return vec![self.list_further(cursor)];
                }
            }
            WorkerPhase::Open => {
                let opened = result.and_then(|result| result.get("sessionId")).and_then(Value::as_str);
                match self.task.session.as_ref().map(|session| session.id.as_str()).or(opened) {
                    Some(session) => session.clone_into(&mut self.session),
                    None => return self.end(error_body("the agent opened no session")),
                }
            }
            WorkerPhase::SetOption | WorkerPhase::Prompt | WorkerPhase::Ended => {}
        }
        let line = self.next_step();
        self.awaited_id = self.last_id;
        vec![WorkerRelayAction::SendToAgent(line)]
    }

    fn list_further(&mut self, cursor: Option<&str>) -> WorkerRelayAction {
        let Some(cursor) = cursor.filter(|_| self.n_list_pages < LIST_PAGES_MAX) else {
            return WorkerRelayAction::NotResumed {
                reason: "session not found".to_owned(),
                is_missing: true,
            };
        };
        let line = self.list_request(Some(cursor));
        self.awaited_id = self.last_id;
        WorkerRelayAction::SendToAgent(line)
    }

    fn list_request(&mut self, cursor: Option<&str>) -> String {
        self.n_list_pages += 1;
        let cwd = self.task.session.as_ref().map(|session| session.first_cwd.clone());
        let params = wire::ListSessionsRequest::new().cwd(cwd).cursor(cursor.map(str::to_owned));
        self.next_request("session/list", &params)
    }

    fn next_step(&mut self) -> String {
        let session = wire::SessionId::new(self.session.as_str());
        if self.phase == WorkerPhase::Initialize && self.task.session.is_some() {
            self.phase = WorkerPhase::List;
            return self.list_request(None);
        }
        if matches!(self.phase, WorkerPhase::Initialize | WorkerPhase::List) {
            self.phase = WorkerPhase::Open;
            return self.open_request();
        }
        if let Some((option, value)) = self.options.pop_front() {
            self.phase = WorkerPhase::SetOption;
            let (option, value) =
                (wire::SessionConfigId::new(option), wire::SessionConfigValueId::new(value));
            let params = wire::SetSessionConfigOptionRequest::new(session, option, value);
            return self.next_request("session/set_config_option", &params);
        }
        self.phase = WorkerPhase::Prompt;
        let blocks = vec![v1::content_block(ContentPart::Text(self.task.prompt.clone()))];
        let params =
            wire::PromptRequest::new(session, blocks).meta(v1::turn_scope_meta(TurnScope::WithTasks));
        self.next_request(PROMPT, &params)
    }

    fn open_request(&mut self) -> String {
        let cwd = self.task.cwd.clone();
        match self.task.session.clone() {
            Some(session) => {
                let params = wire::ResumeSessionRequest::new(wire::SessionId::new(session.id), cwd);
                self.next_request("session/resume", &params)
            }
            None => self.next_request("session/new", &wire::NewSessionRequest::new(cwd)),
        }
    }

    fn handle_request(&mut self, line: &str, id: &Value, method: &str) -> Vec<WorkerRelayAction> {
        let is_known = self.phase == WorkerPhase::Prompt && FORWARDED_REQUESTS.contains(&method);
        if !is_known {
            let line = error_line(id, METHOD_NOT_FOUND, "this client does not have that method");
            return vec![WorkerRelayAction::SendToAgent(line)];
        }
        if self.open_requests.len() >= OPEN_REQUESTS_MAX {
            let line = error_line(id, INTERNAL_ERROR, "too many requests are open; wait for their answers");
            return vec![WorkerRelayAction::SendToAgent(line)];
        }
        self.open_requests.insert(id.to_string(), line.to_owned());
        self.send_if_attached(line.to_owned())
    }

    fn handle_notification(
        &mut self,
        line: &str,
        method: &str,
        params: &Map<String, Value>,
    ) -> Vec<WorkerRelayAction> {
        match method {
            UPDATE if self.phase == WorkerPhase::Prompt => {
                self.turn.follow_update(params);
                self.send_update(line)
            }
            CANCEL_REQUEST => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                match self.open_requests.remove(&id) {
                    Some(_) => self.send_if_attached(line.to_owned()),
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn send_if_attached(&self, line: String) -> Vec<WorkerRelayAction> {
        match self.parent {
            ParentPresence::Attached => vec![WorkerRelayAction::SendToParent(line)],
            ParentPresence::Expected(_) | ParentPresence::Away => Vec::new(),
        }
    }

    fn send_update(&mut self, line: &str) -> Vec<WorkerRelayAction> {
        match &mut self.parent {
            ParentPresence::Attached => return vec![WorkerRelayAction::SendToParent(line.to_owned())],
            ParentPresence::Expected(updates) => {
                let n_bytes: usize = updates.iter().map(String::len).sum();
                if n_bytes + line.len() <= EARLY_BYTES_MAX {
                    updates.push(line.to_owned());
                    return Vec::new();
                }
                self.parent = ParentPresence::Away;
            }
            ParentPresence::Away => {}
        }
        self.is_complete = false;
        Vec::new()
    }
}

/// The answer to a request whose turn was cancelled.
fn cancelled_response(id: &Value, method: &str) -> String {
    if method == "session/request_permission" {
        let outcome = wire::RequestPermissionOutcome::Cancelled;
        return result_line(id, &wire::RequestPermissionResponse::new(outcome));
    }
    result_line(id, &json!({ "action": "cancel" }))
}
