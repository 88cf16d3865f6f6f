//! A JSON-RPC message as far as a relay looks at it.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// JSON-RPC's code for an unknown method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC's code for parameters that do not fit.
pub(super) const INVALID_PARAMS: i64 = -32602;

/// ACP's code for something that does not exist.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// JSON-RPC's code for an error inside of the other side.
pub(super) const INTERNAL_ERROR: i64 = -32603;

/// A message by its kind.
#[derive(Debug)]
pub(super) enum RpcMessage {
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// A response; it has either `result` or `error`.
    Response {
        id: Value,
        body: Map<String, Value>,
    },
}

impl RpcMessage {
    /// Parses a line; `None` if it is no message.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        let id = fields.remove("id").filter(|id| id.is_string() || id.is_number());
        let params = match fields.remove("params") {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        match (id, fields.remove("method")) {
            (Some(id), Some(Value::String(method))) => Some(Self::Request { id, method, params }),
            (None, Some(Value::String(method))) => Some(Self::Notification { method, params }),
            (Some(id), None) => {
                fields.retain(|name, _| name == "result" || name == "error");
                (fields.len() == 1).then_some(Self::Response { id, body: fields })
            }
            _ => None,
        }
    }
}

/// Renders a request.
pub(super) fn request_line(id: &Value, method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Renders a notification.
pub(super) fn notification_line(method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// Renders a response with a result.
pub(super) fn result_line(id: &Value, result: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// Renders a response with an error.
pub(super) fn error_line(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// Renders the response with a body that another one had.
pub(super) fn response_line(id: &Value, mut body: Map<String, Value>) -> String {
    body.insert("jsonrpc".to_owned(), json!("2.0"));
    body.insert("id".to_owned(), id.clone());
    Value::Object(body).to_string()
}

/// Replaces the session that a message is about.
pub(super) fn with_session(mut params: Map<String, Value>, session: &str) -> Map<String, Value> {
    params.insert("sessionId".to_owned(), json!(session));
    params
}
