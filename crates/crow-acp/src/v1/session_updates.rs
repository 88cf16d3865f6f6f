//! Converts the updates of a session to notifications.

use agent_client_protocol as sdk;
use crow_core::{CommandInfo, CompactionStage, SessionId, SessionUpdate};
use sdk::v1::schema as wire;

use super::primitives::session_id;
use super::prompt_content::content_block;
use super::session_setup::config_options;
use super::{agent_tree, plan, report, tool_calls};
use crate::capabilities::AcpClientCapabilities;

/// The beginning of each notification on the wire; counted to know how many are queued.
const UPDATE_LINE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;

pub(crate) fn is_update_line(line: &str) -> bool {
    line.starts_with(UPDATE_LINE)
}

/// Converts an update; `None` if this version has no equivalent.
pub(crate) fn session_notification(
    client: AcpClientCapabilities,
    session: &SessionId,
    update: SessionUpdate,
) -> Option<wire::SessionNotification> {
    Some(wire::SessionNotification::new(session_id(session), session_update(client, update)?))
}

fn session_update(client: AcpClientCapabilities, update: SessionUpdate) -> Option<wire::SessionUpdate> {
    Some(match update {
        SessionUpdate::Prompt { message, part } => wire::SessionUpdate::UserMessageChunk(
            wire::ContentChunk::new(content_block(part)).message_id(wire::MessageId::new(message.as_str())),
        ),
        SessionUpdate::Text { message, text } => wire::SessionUpdate::AgentMessageChunk(
            wire::ContentChunk::new(text.into()).message_id(wire::MessageId::new(message.as_str())),
        ),
        SessionUpdate::Report { message, text, outcome, next } => {
            report::report_update(&message, text, outcome, &next)
        }
        SessionUpdate::Thought { message, text } => wire::SessionUpdate::AgentThoughtChunk(
            // Thinking is a message of its own, separate from the text.
            wire::ContentChunk::new(text.into())
                .message_id(wire::MessageId::new(format!("{message}-thought"))),
        ),
        SessionUpdate::Call { .. }
        | SessionUpdate::CallChanged { .. }
        | SessionUpdate::CallRestored { .. }
        | SessionUpdate::Terminal { .. }
        | SessionUpdate::Output { .. }
        | SessionUpdate::Exited { .. } => return tool_calls::to_call_update(update),
        SessionUpdate::Child { child, title, cwd, is_running } if client.children => {
            agent_tree::child_update(&child, title, cwd, is_running)
        }
        SessionUpdate::Forwarded(update) if client.children => serde_json::from_value(update).ok()?,
        SessionUpdate::Child { .. } | SessionUpdate::Forwarded(_) => return None,
        SessionUpdate::Plan(entries) => {
            wire::SessionUpdate::Plan(wire::Plan::new(entries.into_iter().map(plan::to_wire_entry).collect()))
        }
        SessionUpdate::Title(title) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().title(title))
        }
        SessionUpdate::LastChanged(updated_at) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().updated_at(updated_at))
        }
        SessionUpdate::Usage { used, size, tokens_spent, cost, is_estimate } => {
            let tokens_spent = tokens_spent.filter(|_| client.tree_depth.is_some() || client.session_tokens);
            let usage = wire::UsageUpdate::new(used, size).cost(cost.map(agent_tree::to_wire_cost));
            wire::SessionUpdate::UsageUpdate(usage.meta(agent_tree::usage_meta(tokens_spent, is_estimate)))
        }
        SessionUpdate::Mode(mode) => {
            wire::SessionUpdate::CurrentModeUpdate(wire::CurrentModeUpdate::new(mode.as_str()))
        }
        SessionUpdate::Options(options) => {
            wire::SessionUpdate::ConfigOptionUpdate(wire::ConfigOptionUpdate::new(config_options(&options)))
        }
        SessionUpdate::Commands(commands) => commands_update(commands),
        SessionUpdate::Notice(text) => notice_update(client, wire::NoticeSeverity::Warning, text),
        SessionUpdate::Compaction { id, stage, text } if client.compactions => {
            compaction_update(id, stage, text)
        }
        SessionUpdate::Compaction { text, .. } => notice_update(client, wire::NoticeSeverity::Info, text),
    })
}

/// For a client that did not declare support for notices, a thought is what every client shows.
fn notice_update(
    client: AcpClientCapabilities,
    severity: wire::NoticeSeverity,
    text: String,
) -> wire::SessionUpdate {
    match client.notices {
        true => wire::SessionUpdate::Notice(wire::Notice::new(severity, text)),
        false => wire::SessionUpdate::AgentThoughtChunk(wire::ContentChunk::new(format!("{text}\n").into())),
    }
}

fn compaction_update(id: String, stage: CompactionStage, text: String) -> wire::SessionUpdate {
    let update = |status| wire::CompactionUpdate::new(wire::CompactionId::new(id), status);
    wire::SessionUpdate::CompactionUpdate(match stage {
        CompactionStage::Started => update(wire::CompactionStatus::InProgress),
        CompactionStage::Done { summary } => {
            let blocks = std::iter::once(text).chain(summary).map(Into::into).collect::<Vec<_>>();
            update(wire::CompactionStatus::Completed).summary(blocks)
        }
        CompactionStage::Failed => update(wire::CompactionStatus::Failed).error(text),
        CompactionStage::Cancelled => update(wire::CompactionStatus::Cancelled),
    })
}

fn commands_update(commands: Vec<CommandInfo>) -> wire::SessionUpdate {
    let commands = commands.into_iter().map(|command| {
        let input = command
            .hint
            .map(|hint| wire::AvailableCommandInput::Unstructured(wire::UnstructuredCommandInput::new(hint)));
        wire::AvailableCommand::new(command.name, command.description).input(input)
    });
    let commands = commands.collect();
    wire::SessionUpdate::AvailableCommandsUpdate(wire::AvailableCommandsUpdate::new(commands))
}
