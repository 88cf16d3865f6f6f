//! Spells calls: how they appear, change and print, and what is shown in them.
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

use crate::v1::opening::to_meta;

/// Spells what happens to a call; `None` for everything that is not about one.
pub(super) fn to_call_update(update: SessionUpdate) -> Option<wire::SessionUpdate> {
    Some(match update {
        SessionUpdate::Call { call, name, facets, arguments, status, content, prints } => {
            let announced = wire::ToolCall::new(call.to_string(), facets.title.clone())
                .name(name)
                .kind(tool_kind(facets.kind))
                .status(tool_status(status))
                .locations(tool_call_locations(&facets))
                .raw_input(Value::Object(arguments));
            let content: Vec<_> = content.into_iter().map(tool_content).collect();
            wire::SessionUpdate::ToolCall(match prints {
                OutputStreaming::Live { cwd } => {
                    let info = json!({ "terminal_info": { "terminal_id": call.to_string(), "cwd": cwd } });
                    announced.content(vec![terminal_content(&call.to_string())]).meta(to_meta(info))
                }
                OutputStreaming::Nothing => announced.content(content),
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
        SessionUpdate::CallAgain { call, facets, status, content } => {
            let fields = wire::ToolCallUpdateFields::new()
                .title(facets.title.clone())
                .kind(tool_kind(facets.kind))
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

fn terminal_update(call: CallId, said: Value) -> wire::SessionUpdate {
    let update = wire::ToolCallUpdate::new(call.to_string(), wire::ToolCallUpdateFields::new());
    wire::SessionUpdate::ToolCallUpdate(update.meta(to_meta(said)))
}

pub(super) fn tool_call_locations(facets: &ToolCallInfo) -> Vec<wire::ToolCallLocation> {
    let places = facets.locations.iter();
    places.map(|place| wire::ToolCallLocation::new(place.path.as_str()).line(place.line)).collect()
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
        ToolCallStatus::Running => wire::ToolCallStatus::InProgress,
        ToolCallStatus::Done => wire::ToolCallStatus::Completed,
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
