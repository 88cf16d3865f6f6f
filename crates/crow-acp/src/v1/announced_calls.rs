//! Keeps what an agent has said about its calls. A permission request may have nothing but the ID of a call: the rest was in
//! the announcement of the call. Must not know who asks or who answers.

use std::collections::VecDeque;
use std::io;

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;
use serde::Serialize;
use serde_json::Value;

/// Calls that are under way at once; an agent that asks about an older one has to say again what it is.
const CALLS_MAX: usize = 256;

/// Total size of what is kept, as JSON: a few large files.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The calls of a connection that have not ended.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedCalls {
    /// The oldest first.
    calls: VecDeque<AnnouncedCall>,
    n_bytes: usize,
}

#[derive(Debug)]
struct AnnouncedCall {
    session: wire::SessionId,
    id: wire::ToolCallId,
    fields: wire::ToolCallUpdateFields,
    n_bytes: usize,
}

impl AnnouncedCalls {
    /// Applies an update; absent fields of a call are unchanged.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the protocol's enums are open")]
    pub(crate) fn apply_update(&mut self, session: &wire::SessionId, update: &wire::SessionUpdate) {
        let update = match update {
            wire::SessionUpdate::ToolCall(call) => wire::ToolCallUpdate::from(call.clone()),
            wire::SessionUpdate::ToolCallUpdate(call) => call.clone(),
            _ => return,
        };
        let wire::ToolCallUpdate { tool_call_id: id, mut fields, .. } = update;
        // Results are of no use to a question.
        fields.raw_output = None;
        let known = self.calls.iter().position(|call| call.id == id && call.session == *session);
        if let Some(known) = known.and_then(|index| self.calls.remove(index)) {
            self.n_bytes = self.n_bytes.saturating_sub(known.n_bytes);
            add_missing(&mut fields, &known.fields);
        }
        if matches!(fields.status, Some(wire::ToolCallStatus::Completed | wire::ToolCallStatus::Failed)) {
            return;
        }
        let n_bytes = json_size(&fields);
        self.n_bytes += n_bytes;
        self.calls.push_back(AnnouncedCall { session: session.clone(), id, fields, n_bytes });
        while self.calls.len() > CALLS_MAX || self.n_bytes > BYTES_MAX {
            let Some(oldest) = self.calls.pop_front() else { break };
            self.n_bytes = self.n_bytes.saturating_sub(oldest.n_bytes);
        }
    }

    /// Adds to a request what was said about its call before.
    pub(crate) fn complete_request(&self, request: &mut wire::RequestPermissionRequest) {
        let id = &request.tool_call.tool_call_id;
        let known = self.calls.iter().find(|call| call.id == *id && call.session == request.session_id);
        if let Some(known) = known {
            add_missing(&mut request.tool_call.fields, &known.fields);
        }
    }
}

/// Adds the fields that say nothing themselves.
fn add_missing(fields: &mut wire::ToolCallUpdateFields, known: &wire::ToolCallUpdateFields) {
    if fields.title.as_ref().is_none_or(|title| title.trim().is_empty()) {
        fields.title.clone_from(&known.title);
    }
    if fields.kind.is_none_or(|kind| kind == wire::ToolKind::Other) {
        fields.kind = known.kind.or(fields.kind);
    }
    if fields.raw_input.as_ref().is_none_or(is_empty_input) {
        fields.raw_input.clone_from(&known.raw_input);
    }
    if fields.content.as_ref().is_none_or(Vec::is_empty) {
        fields.content.clone_from(&known.content);
    }
    if fields.locations.as_ref().is_none_or(Vec::is_empty) {
        fields.locations.clone_from(&known.locations);
    }
    fields.status = fields.status.or(known.status);
}

/// Whether arguments say nothing.
pub(super) fn is_empty_input(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Counts bytes that are written to it.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the size of a value as JSON; one that cannot be written is too large.
fn json_size(value: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => BYTES_MAX,
    }
}

#[cfg(test)]
mod tests;
