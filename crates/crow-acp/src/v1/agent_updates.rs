//! Parses ACP version 1 as a client. Calls are upserts here: the announcement of a call and its changes have the same
//! form, and absent fields are unchanged.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol's enums are open: what is new is passed over"
)]

use agent_client_protocol as sdk;
use crow_core::{CommandInfo, SessionId, ToolCallContent, ToolCallStatus, ToolKind};
use sdk::v1::schema as wire;
use serde_json::Value;

use super::announced_calls::is_empty_input;
use super::permission::{grant_offer, permission_subject, prefix_in};
use super::session_config::session_options;
use super::{agent_tree, plan};
use crate::agent_update::{AgentUpdate, StopReason};
use crate::permission::{AgentPermissionRequest, PermissionOption};

/// Files that a question names.
const LOCATIONS_SHOWN: usize = 8;

/// Parses an update. A change of a call may also be about the call's command, whose output or end then comes first.
pub(crate) fn to_agent_updates(update: wire::SessionUpdate) -> Vec<AgentUpdate> {
    let command = match &update {
        wire::SessionUpdate::ToolCallUpdate(call) => command_update(call),
        _ => None,
    };
    let result = match &update {
        wire::SessionUpdate::ToolCallUpdate(call) => result_update(call),
        _ => None,
    };
    let is_only_about_command = command.is_some()
        && matches!(&update, wire::SessionUpdate::ToolCallUpdate(call) if call.fields == wire::ToolCallUpdateFields::default());
    let change = if is_only_about_command { None } else { to_agent_update(update) };
    // A call that has ended takes no result.
    command.into_iter().chain(result).chain(change).collect()
}

/// Strings in a raw output that have all that a command printed; the first one counts.
const OUTPUT_KEYS: [&str; 4] = ["formatted_output", "aggregated_output", "output", "stdout"];

/// Bytes of a raw output that are passed on, from its end.
const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Parses the raw output of a call without content. Its form is the agent's own.
fn result_update(call: &wire::ToolCallUpdate) -> Option<AgentUpdate> {
    let has_content = call.fields.content.as_ref().is_some_and(|content| !content.is_empty());
    let output = call.fields.raw_output.as_ref().filter(|_| !has_content)?;
    let known = OUTPUT_KEYS.iter().find_map(|key| output.get(key)?.as_str());
    let text = match (output.as_str().or(known), output) {
        (Some(text), _) => text.to_owned(),
        (None, Value::Null) => return None,
        (None, output) => serde_json::to_string_pretty(output).ok()?,
    };
    let start = text.ceil_char_boundary(text.len().saturating_sub(RESULT_BYTES_MAX));
    let text = text[start..].to_owned();
    (!text.trim().is_empty()).then(|| AgentUpdate::CallResult { id: call.tool_call_id.0.to_string(), text })
}

fn to_agent_update(update: wire::SessionUpdate) -> Option<AgentUpdate> {
    Some(match update {
        wire::SessionUpdate::UserMessageChunk(chunk) => AgentUpdate::Prompt(block_text(chunk.content)?),
        wire::SessionUpdate::AgentMessageChunk(chunk) => AgentUpdate::Text(block_text(chunk.content)?),
        wire::SessionUpdate::AgentThoughtChunk(chunk) => AgentUpdate::Thought(block_text(chunk.content)?),
        wire::SessionUpdate::ToolCall(call) => AgentUpdate::Call {
            id: call.tool_call_id.0.to_string(),
            title: Some(call.title),
            kind: Some(tool_kind(&call.kind)),
            status: Some(tool_status(call.status)),
            content: Some(call.content.into_iter().filter_map(tool_content).collect()),
            input: call.raw_input,
        },
        wire::SessionUpdate::ToolCallUpdate(call) => AgentUpdate::Call {
            id: call.tool_call_id.0.to_string(),
            title: call.fields.title,
            kind: call.fields.kind.as_ref().map(tool_kind),
            status: call.fields.status.map(tool_status),
            content: call
                .fields
                .content
                .map(|content| content.into_iter().filter_map(tool_content).collect()),
            input: call.fields.raw_input,
        },
        wire::SessionUpdate::Plan(plan) => {
            AgentUpdate::Plan(plan.entries.into_iter().map(plan::from_wire_entry).collect())
        }
        wire::SessionUpdate::AvailableCommandsUpdate(update) => {
            AgentUpdate::Commands(update.available_commands.into_iter().map(command_info).collect())
        }
        wire::SessionUpdate::SessionInfoUpdate(info) => AgentUpdate::Title(info.title.value()?.clone()),
        wire::SessionUpdate::UsageUpdate(usage) => {
            let meta = usage.meta.as_ref();
            AgentUpdate::Usage {
                used: usage.used,
                size: usage.size,
                tokens_spent: agent_tree::tokens_spent(meta),
                cost: usage.cost.as_ref().and_then(agent_tree::from_wire_cost),
                is_estimate: agent_tree::is_estimate(meta),
            }
        }
        wire::SessionUpdate::ConfigOptionUpdate(update) => {
            AgentUpdate::Options(session_options(Some(update.config_options)))
        }
        wire::SessionUpdate::CurrentModeUpdate(mode) => AgentUpdate::Mode(mode.current_mode_id.0.to_string()),
        wire::SessionUpdate::SubagentUpdate(child) => agent_tree::to_child_update(&child),
        wire::SessionUpdate::Notice(notice) => AgentUpdate::Notice(notice.title),
        wire::SessionUpdate::CompactionUpdate(update) => {
            AgentUpdate::Compaction(compaction_sentence(update)?)
        }
        _ => return None,
    })
}

fn command_info(command: wire::AvailableCommand) -> CommandInfo {
    CommandInfo {
        name: command.name,
        description: command.description,
        hint: command.input.and_then(|input| match input {
            wire::AvailableCommandInput::Unstructured(input) => Some(input.hint),
            _ => None,
        }),
    }
}

/// Parses the output or the end of a call's command.
fn command_update(call: &wire::ToolCallUpdate) -> Option<AgentUpdate> {
    let meta = call.meta.as_ref()?;
    let id = call.tool_call_id.0.to_string();
    if let Some(output) = meta.get("terminal_output") {
        return Some(AgentUpdate::CallOutput { id, text: output.get("data")?.as_str()?.to_owned() });
    }
    let exit = meta.get("terminal_exit")?;
    let signal = exit.get("signal").and_then(Value::as_str).map(str::to_owned);
    Some(AgentUpdate::CallExit { id, code: exit.get("exit_code").and_then(Value::as_i64), signal })
}

/// Returns the message ID of an update, if the agent gives one.
pub(crate) fn message_id(update: &wire::SessionUpdate) -> Option<String> {
    match update {
        wire::SessionUpdate::AgentMessageChunk(chunk) | wire::SessionUpdate::AgentThoughtChunk(chunk) => {
            chunk.message_id.as_ref().map(|id| id.0.to_string())
        }
        _ => None,
    }
}

pub(crate) fn parse_permission_request(
    request: wire::RequestPermissionRequest,
) -> (SessionId, AgentPermissionRequest) {
    let (subject, offer) = (permission_subject(&request), grant_offer(&request));
    let fields = request.tool_call.fields;
    let input = fields.raw_input.map(parse_text_input).filter(|input| !is_empty_input(input));
    let mut content: Vec<_> =
        fields.content.unwrap_or_default().into_iter().filter_map(tool_content).collect();
    let locations = describe_locations(&fields.locations.unwrap_or_default());
    let title = fields.title.unwrap_or_default().trim().to_owned();
    let is_described = !title.is_empty() || input.is_some() || !content.is_empty() || locations.is_some();
    if input.is_none() && content.is_empty() {
        content.extend(locations.map(ToolCallContent::Text));
    }
    let choices = request.options.into_iter().map(|option| PermissionOption {
        id: option.option_id.0.to_string(),
        prefix: prefix_in(option.meta.as_ref()),
        name: option.name,
        allows: matches!(
            option.kind,
            wire::PermissionOptionKind::AllowOnce | wire::PermissionOptionKind::AllowAlways
        ),
        always: matches!(
            option.kind,
            wire::PermissionOptionKind::AllowAlways | wire::PermissionOptionKind::RejectAlways
        ),
    });
    let question = AgentPermissionRequest {
        subject,
        call: request.tool_call.tool_call_id.0.to_string(),
        title: if title.is_empty() && is_described { "run a tool".to_owned() } else { title },
        kind: fields.kind.as_ref().map_or(ToolKind::Other, tool_kind),
        input,
        content,
        // Nothing is approved for later that the user has not seen.
        options: choices.filter(|choice| is_described || !(choice.allows && choice.always)).collect(),
        offer: offer.filter(|_| is_described),
    };
    (SessionId::new(&*request.session_id.0), question)
}

/// Parses arguments that an agent gives as the text of an object.
fn parse_text_input(input: Value) -> Value {
    let object = input.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object);
    object.unwrap_or(input)
}

/// Names the files of a call; `None` if there are none.
fn describe_locations(locations: &[wire::ToolCallLocation]) -> Option<String> {
    let names = locations.iter().take(LOCATIONS_SHOWN).map(|location| match location.line {
        Some(line) => format!("{}:{line}", location.path.display()),
        None => location.path.display().to_string(),
    });
    let names: Vec<String> = names.collect();
    let n_more = locations.len() - names.len();
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Files: {}{more}.", names.join(", ")))
}

pub(crate) fn stop_reason(reason: wire::StopReason) -> StopReason {
    match reason {
        wire::StopReason::MaxTokens => StopReason::MaxTokens,
        wire::StopReason::MaxTurnRequests => StopReason::MaxTurnRequests,
        wire::StopReason::Refusal => StopReason::Refusal,
        wire::StopReason::Cancelled => StopReason::Cancelled,
        _ => StopReason::EndTurn,
    }
}

/// Formats the result of a compaction as a sentence; `None` while it is running.
fn compaction_sentence(update: wire::CompactionUpdate) -> Option<String> {
    match update.status {
        wire::CompactionStatus::Completed => {
            let summary = update.summary.take().unwrap_or_default();
            let text = summary.into_iter().next().and_then(block_text);
            Some(text.unwrap_or_else(|| "the conversation was compacted".to_owned()))
        }
        wire::CompactionStatus::Failed => {
            let error = update.error.take();
            Some(error.unwrap_or_else(|| "the conversation could not be compacted".to_owned()))
        }
        _ => None,
    }
}

fn block_text(block: wire::ContentBlock) -> Option<String> {
    match block {
        wire::ContentBlock::Text(text) => Some(text.text),
        wire::ContentBlock::ResourceLink(link) => Some(format!("[{}]({})", link.name, link.uri)),
        wire::ContentBlock::Image(image) => Some(format!("[image {}]", image.mime_type)),
        _ => None,
    }
}

fn tool_kind(kind: &wire::ToolKind) -> ToolKind {
    match kind {
        wire::ToolKind::Read => ToolKind::Read,
        wire::ToolKind::Edit | wire::ToolKind::Delete | wire::ToolKind::Move => ToolKind::Edit,
        wire::ToolKind::Search => ToolKind::Search,
        wire::ToolKind::Execute => ToolKind::Execute,
        wire::ToolKind::Think => ToolKind::Think,
        wire::ToolKind::Fetch => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn tool_status(status: wire::ToolCallStatus) -> ToolCallStatus {
    match status {
        wire::ToolCallStatus::InProgress => ToolCallStatus::InProgress,
        wire::ToolCallStatus::Completed => ToolCallStatus::Completed,
        wire::ToolCallStatus::Failed => ToolCallStatus::Failed,
        _ => ToolCallStatus::Pending,
    }
}

fn tool_content(content: wire::ToolCallContent) -> Option<ToolCallContent> {
    match content {
        wire::ToolCallContent::Content(content) => match content.content {
            wire::ContentBlock::Image(image) => {
                Some(ToolCallContent::Image { mime: image.mime_type, data: image.data })
            }
            other => block_text(other).map(ToolCallContent::Text),
        },
        wire::ToolCallContent::Diff(diff) => Some(ToolCallContent::Diff {
            path: diff.path.to_string_lossy().into_owned(),
            old: diff.old_text,
            new: diff.new_text,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
