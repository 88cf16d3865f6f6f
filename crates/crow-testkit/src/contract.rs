//! Checks an agent's messages: the v1 schema, one response per request, no unknown ids.
//!
//! Works on lines without a process: the client passes every line of both sides.

mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use schema::{Part, Side, schema};

/// The fields of a JSON-RPC message.
const FIELDS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The state of one conversation.
#[derive(Debug, Default)]
pub struct Contract {
    /// Methods of the client's requests without a response, by id.
    open_requests: BTreeMap<String, Vec<String>>,
    /// Unparsable lines of the client; each may get a response without an id.
    n_unreadable: usize,
    /// Methods of the agent's requests, by id.
    agent_requests: BTreeMap<String, String>,
    /// The agent's requests without a response.
    unanswered_requests: BTreeSet<String>,
    sessions: BTreeSet<String>,
    /// Tool calls announced, by session and id.
    calls: BTreeSet<(String, String)>,
}

impl Contract {
    /// Records a line of the client, valid or not.
    pub fn record_client_line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let is_response = message.get("result").is_some() || message.get("error").is_some();
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                if let ("session/load" | "session/resume", Some(session)) =
                    (method, message["params"]["sessionId"].as_str())
                {
                    self.sessions.insert(session.to_owned());
                }
                self.open_requests.entry(id.to_string()).or_default().push(method.to_owned());
            }
            (Some(_), None) => {}
            (None, Some(id)) if is_response => {
                self.unanswered_requests.remove(&id.to_string());
            }
            (None, _) => self.n_unreadable += 1,
        }
    }

    /// Checks a line of the agent.
    ///
    /// # Errors
    ///
    /// Describes the violation.
    pub fn check_agent_line(&mut self, line: &str) -> Result<Value, String> {
        let message: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Some(fields) = message.as_object() else { return Err("it is no object".into()) };
        if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            return Err(format!("JSON-RPC knows no field `{field}`"));
        }
        if message["jsonrpc"] != "2.0" {
            return Err("it is no JSON-RPC 2.0".into());
        }
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.check_request(method, id, &message["params"]),
            (Some(method), None) => self.check_notification(method, &message["params"]),
            (None, Some(id)) => self.check_response(id, &message),
            (None, None) => Err("it has neither `method` nor `id`".into()),
        }?;
        Ok(message)
    }

    /// Returns the methods of the client's requests without a response.
    pub fn unanswered(&self) -> Vec<&str> {
        self.open_requests.values().flatten().map(String::as_str).collect()
    }

    /// Returns the method of an agent's request.
    pub fn agent_request_method(&self, id: &Value) -> Option<&str> {
        self.agent_requests.get(&id.to_string()).map(String::as_str)
    }

    fn check_request(&mut self, method: &str, id: &Value, params: &Value) -> Result<(), String> {
        check_message(Part::Request, Side::Client, method, params)?;
        self.check_session(method, params)?;
        let id = id.to_string();
        if !self.unanswered_requests.insert(id.clone()) {
            return Err(format!("request {id} is there twice"));
        }
        self.agent_requests.insert(id, method.to_owned());
        match params["toolCall"]["toolCallId"].as_str() {
            Some(call) => self.check_call(params, call),
            None => Ok(()),
        }
    }

    fn check_notification(&mut self, method: &str, params: &Value) -> Result<(), String> {
        if method.starts_with("$/") {
            check_message(Part::Notification, Side::Protocol, method, params)?;
            let id = &params["requestId"];
            return self
                .agent_request_method(id)
                .map(|_| ())
                .ok_or(format!("it cancels {id}, which it never asked"));
        }
        check_message(Part::Notification, Side::Client, method, params)?;
        self.check_session(method, params)?;
        let update = &params["update"];
        let call = update["toolCallId"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                self.calls.insert((session.to_owned(), call.to_owned()));
                Ok(())
            }
            Some("tool_call_update") => self.check_call(params, call),
            _ => Ok(()),
        }
    }

    fn check_response(&mut self, id: &Value, message: &Value) -> Result<(), String> {
        let method = match self.open_requests.get_mut(&id.to_string()) {
            Some(methods) if !methods.is_empty() => methods.remove(0),
            _ if id.is_null() && self.n_unreadable > 0 && message.get("error").is_some() => {
                self.n_unreadable -= 1;
                return check_definition("Error", &message["error"]);
            }
            _ => return Err(format!("there is no open request for the response to {id}")),
        };
        match (message.get("result"), message.get("error")) {
            (None, Some(error)) => check_definition("Error", error),
            (Some(result), None) => {
                check_message(Part::Response, Side::Agent, &method, result)?;
                if let ("session/new" | "session/fork", Some(session)) =
                    (method.as_str(), result["sessionId"].as_str())
                {
                    self.sessions.insert(session.to_owned());
                }
                Ok(())
            }
            _ => Err("an answer is a result or an error".into()),
        }
    }

    fn check_session(&self, method: &str, params: &Value) -> Result<(), String> {
        match params.get("sessionId").and_then(Value::as_str) {
            Some(session) if !method.starts_with('_') && !self.sessions.contains(session) => {
                Err(format!("the client has no session {session}"))
            }
            _ => Ok(()),
        }
    }

    fn check_call(&self, params: &Value, call: &str) -> Result<(), String> {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let is_known = self.calls.contains(&(session.to_owned(), call.to_owned()));
        is_known.then_some(()).ok_or(format!("call {call} was not announced"))
    }
}

/// Checks a value against the definition for a part of a method.
fn check_message(part: Part, side: Side, method: &str, value: &Value) -> Result<(), String> {
    match schema().definition(part, side, method) {
        Some(definition) => check_definition(definition, value),
        None if method.starts_with('_') => Ok(()),
        None => Err(format!("the protocol knows no {part:?} of {method}")),
    }
}

fn check_definition(definition: &str, value: &Value) -> Result<(), String> {
    let violations = schema().violations(definition, value);
    if violations.is_empty() {
        Ok(())
    } else {
        Err(format!("it is no {definition}: {}", violations.join("; ")))
    }
}
