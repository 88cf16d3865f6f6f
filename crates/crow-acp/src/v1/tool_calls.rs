//! Converts tool calls: their announcement, changes, output and content.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol's enums are open: what is new is passed over"
)]

use agent_client_protocol as sdk;
use crow_core::{
    CallId, OutputStreaming, SessionUpdate, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::v1::primitives::to_meta;

/// Converts an update of a call; `None` for every other update.
pub(super) fn to_call_update(update: SessionUpdate) -> Option<wire::SessionUpdate> {
    Some(match update {
        SessionUpdate::Call { call, name, info, arguments, status, content, streaming } => {
            let tool_call = wire::ToolCall::new(call.to_string(), info.title.clone())
                .name(name)
                .kind(tool_kind(info.kind))
                .status(tool_status(status))
                .locations(tool_call_locations(&info))
                .raw_input(Value::Object(arguments));
            let content: Vec<_> = content.into_iter().map(tool_content).collect();
            wire::SessionUpdate::ToolCall(match streaming {
                OutputStreaming::Live { cwd } => {
                    let info = json!({ "terminal_info": { "terminal_id": call.to_string(), "cwd": cwd } });
                    tool_call.content(vec![terminal_content(&call.to_string())]).meta(to_meta(info))
                }
                OutputStreaming::Off => tool_call.content(content),
            })
        }
        SessionUpdate::Terminal { call, id } => {
            let fields = wire::ToolCallUpdateFields::new()
                .status(wire::ToolCallStatus::InProgress)
                .content(vec![terminal_content(&id)]);
            wire::SessionUpdate::ToolCallUpdate(wire::ToolCallUpdate::new(call.to_string(), fields))
        }
        SessionUpdate::Output { call, text } => {
            let output = json!({ "terminal_id": call.to_string(), "data": text });
            terminal_update(call, json!({ "terminal_output": output }))
        }
        SessionUpdate::Exited { call, code, signal } => {
            let exit = json!({ "terminal_id": call.to_string(), "exit_code": code, "signal": signal.map(|n| n.to_string()) });
            terminal_update(call, json!({ "terminal_exit": exit }))
        }
        SessionUpdate::CallChanged { call, status, content } => {
            let fields = wire::ToolCallUpdateFields::new()
                .status(tool_status(status))
                .content(content.map(|content| content.into_iter().map(tool_content).collect::<Vec<_>>()));
            wire::SessionUpdate::ToolCallUpdate(wire::ToolCallUpdate::new(call.to_string(), fields))
        }
        SessionUpdate::CallRestored { call, info, status, content } => {
            let fields = wire::ToolCallUpdateFields::new()
                .title(info.title.clone())
                .kind(tool_kind(info.kind))
                .status(tool_status(status))
                .content(content.into_iter().map(tool_content).collect::<Vec<_>>());
            wire::SessionUpdate::ToolCallUpdate(wire::ToolCallUpdate::new(call.to_string(), fields))
        }
        _ => return None,
    })
}

fn terminal_content(id: &str) -> wire::ToolCallContent {
    wire::ToolCallContent::Terminal(wire::Terminal::new(wire::TerminalId::new(id)))
}

fn terminal_update(call: CallId, meta: Value) -> wire::SessionUpdate {
    let update = wire::ToolCallUpdate::new(call.to_string(), wire::ToolCallUpdateFields::new());
    wire::SessionUpdate::ToolCallUpdate(update.meta(to_meta(meta)))
}

pub(super) fn tool_call_locations(info: &ToolCallInfo) -> Vec<wire::ToolCallLocation> {
    let locations = info.locations.iter();
    locations
        .map(|location| wire::ToolCallLocation::new(location.path.as_str()).line(location.line))
        .collect()
}

pub(super) fn tool_kind(kind: ToolKind) -> wire::ToolKind {
    match kind {
        ToolKind::Read => wire::ToolKind::Read,
        ToolKind::Edit => wire::ToolKind::Edit,
        ToolKind::Search => wire::ToolKind::Search,
        ToolKind::Execute => wire::ToolKind::Execute,
        ToolKind::Think => wire::ToolKind::Think,
        ToolKind::Fetch => wire::ToolKind::Fetch,
        ToolKind::Other => wire::ToolKind::Other,
    }
}

fn tool_status(status: ToolCallStatus) -> wire::ToolCallStatus {
    match status {
        ToolCallStatus::Pending => wire::ToolCallStatus::Pending,
        ToolCallStatus::InProgress => wire::ToolCallStatus::InProgress,
        ToolCallStatus::Completed => wire::ToolCallStatus::Completed,
        ToolCallStatus::Failed => wire::ToolCallStatus::Failed,
    }
}

pub(super) fn tool_content(content: ToolCallContent) -> wire::ToolCallContent {
    match content {
        ToolCallContent::Text(text) => wire::ToolCallContent::from(text),
        ToolCallContent::Image { mime, data } => {
            wire::ToolCallContent::from(wire::ContentBlock::Image(wire::ImageContent::new(data, mime)))
        }
        ToolCallContent::Diff { path, old, new } => wire::Diff::new(path, new).old_text(old).into(),
    }
}
