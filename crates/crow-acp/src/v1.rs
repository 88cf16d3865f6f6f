//! Conversion to and from ACP version 1. The only module that converts its types.
use agent_client_protocol as sdk;
use crow_core::{
    CommandInfo, CompactionStage, ContentPart, Failure, FailureKind, ImageError, SessionId, SessionUpdate,
    TurnEnd, escape_hidden_start, link, read_image_part,
};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::capabilities::AcpClientCapabilities;
use crate::incoming::PromptBlock;

mod agent_tree;
mod agent_updates;
mod client_requests;
mod elicitation;
mod error_details;
mod extensions;
mod permission;
mod plan;
mod report;
mod session_config;
mod session_setup;
mod tool_calls;

pub(crate) use agent_tree::{
    ClaimRequest, ClaimResponse, ReleaseNotification, agent_capabilities, initialize_request, turn_scope,
    turn_scope_meta,
};
pub(crate) use agent_updates::{message_id, parse_permission_request, stop_reason, to_agent_update};
pub(crate) use client_requests::{
    client_error, create_terminal, kill_terminal, read_file, read_terminal, release_terminal, terminal_id,
    terminal_output, to_terminal_exit, wait_for_exit, write_file,
};
pub(crate) use elicitation::{
    elicitation_outcome, parse_form_request, to_elicitation_request, to_elicitation_response,
};
pub(crate) use error_details::with_failure_kind;
pub(crate) use extensions::{SetModelRequest, SetModelResponse, SteerRequest, SteerResponse, steer_response};
pub(crate) use permission::{
    child_permission_answer, child_permission_request, grant_scope, no_user_error, permission_outcome,
    permission_request, permission_response,
};
pub(crate) use report::report_outcome;
pub(crate) use session_config::session_options;
pub(crate) use session_setup::{
    check_sign_in_method, client_capabilities, config_options, fork_session_response, initialize_response,
    list_sessions_response, load_session_response, new_session_response, resume_session_response,
    session_location,
};

/// The beginning of each notification on the wire; counted to know how many are queued.
const UPDATE_LINE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;

pub(crate) fn is_update_line(line: &str) -> bool {
    line.starts_with(UPDATE_LINE)
}

pub(crate) fn session_id(session: &SessionId) -> wire::SessionId {
    wire::SessionId::new(session.as_str())
}

/// Converts the end of a turn. In this version a failed turn is an error, not a stop reason.
pub(crate) fn prompt_response(end: TurnEnd) -> Result<wire::PromptResponse, Failure> {
    let reason = match end {
        TurnEnd::Completed => wire::StopReason::EndTurn,
        TurnEnd::OutputLimit => wire::StopReason::MaxTokens,
        TurnEnd::RequestLimit | TurnEnd::Repetition => wire::StopReason::MaxTurnRequests,
        TurnEnd::Refused => wire::StopReason::Refusal,
        TurnEnd::Cancelled => wire::StopReason::Cancelled,
        TurnEnd::Failed(failure) => return Err(failure),
    };
    Ok(wire::PromptResponse::new(reason))
}

/// Converts a failure to a JSON-RPC error with its kind and message.
pub(crate) fn to_rpc_error(failure: &Failure) -> sdk::Error {
    let (code, message) = match failure.kind {
        FailureKind::SessionNotFound => (-32002, "session not found"),
        FailureKind::InvalidValue => (-32602, "Invalid params"),
        FailureKind::AuthRequired => (-32000, "Authentication required"),
        FailureKind::ProviderAuth
        | FailureKind::ProviderRate
        | FailureKind::ProviderOverloaded
        | FailureKind::ProviderRejected
        | FailureKind::ModelNotFound
        | FailureKind::ContextOverflow
        | FailureKind::Connection
        | FailureKind::Protocol
        | FailureKind::Store
        | FailureKind::Config
        | FailureKind::Internal => (-32603, "Internal error"),
    };
    sdk::Error::new(code, message).data(json!({ "kind": failure.kind.as_str(), "details": failure.message }))
}

/// Converts an error of the other side to a failure.
pub(crate) fn from_rpc_error(error: &sdk::Error) -> Failure {
    let data = error.data.as_ref();
    let field = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_str);
    let kind = match (field("kind").and_then(FailureKind::parse), i32::from(error.code)) {
        (Some(kind), _) => kind,
        (None, -32002) => FailureKind::SessionNotFound,
        (None, -32602) => FailureKind::InvalidValue,
        (None, -32000) => FailureKind::AuthRequired,
        (None, _) => FailureKind::Internal,
    };
    let message = match (field("details"), data.and_then(Value::as_str)) {
        (Some(details), _) => details.to_owned(),
        (None, Some(details)) => format!("{}: {details}", error.message),
        (None, None) => error.message.clone(),
    };
    Failure::new(kind, message)
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
            report::report_update(&message, text, (outcome, &next))
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
            let tokens_spent = tokens_spent.filter(|_| client.tree_depth.is_some());
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

pub(crate) fn content_block(part: ContentPart) -> wire::ContentBlock {
    match part {
        ContentPart::Text(text) => text.into(),
        ContentPart::Image { mime, data } => wire::ContentBlock::Image(wire::ImageContent::new(data, mime)),
        ContentPart::Link { uri, name, mime } => {
            wire::ContentBlock::ResourceLink(wire::ResourceLink::new(name, uri).mime_type(mime))
        }
        ContentPart::Resource { uri, text, mime } => text_resource(uri, text, mime),
        ContentPart::FromCrow { kind: what, text } => text_resource(what.uri(), text, None),
    }
}

fn text_resource(uri: String, text: String, mime: Option<String>) -> wire::ContentBlock {
    let text = wire::TextResourceContents::new(text, uri).mime_type(mime);
    let contents = wire::EmbeddedResourceResource::TextResourceContents(text);
    wire::ContentBlock::Resource(wire::EmbeddedResource::new(contents))
}

/// The maximum length of a name or a media type from the client.
const NAME_CHARS_MAX: usize = 200;

/// Parses the content blocks of a prompt. None becomes a [`ContentPart::FromCrow`], whatever its URI.
pub(crate) fn prompt_blocks(blocks: Vec<wire::ContentBlock>) -> Result<Vec<PromptBlock>, Failure> {
    let parts = blocks.into_iter().map(prompt_block).collect::<Result<Vec<_>, _>>()?;
    let has_content = |spoken: &PromptBlock| !matches!(spoken, PromptBlock::Part(ContentPart::Text(text)) if text.trim().is_empty());
    if parts.iter().any(has_content) {
        Ok(parts)
    } else {
        Err(Failure::new(FailureKind::InvalidValue, "the prompt is empty"))
    }
}

fn prompt_block(block: wire::ContentBlock) -> Result<PromptBlock, Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            FailureKind::InvalidValue,
            format!("the prompt contains {what}, which Crow cannot read; send it as text or as a link"),
        )
    };
    Ok(PromptBlock::Part(match block {
        wire::ContentBlock::Text(text) => ContentPart::Text(text.text),
        wire::ContentBlock::Image(image) => match image.uri {
            Some(uri) if image.data.is_empty() => {
                return Ok(PromptBlock::ImageUri { uri, mime: image.mime_type });
            }
            Some(_) | None => {
                read_image_part(&image.mime_type, &image.data).map_err(|error| image_failure(&error))?
            }
        },
        wire::ContentBlock::ResourceLink(link) => {
            ContentPart::Link { uri: link.uri, name: link.name, mime: link.mime_type }
        }
        wire::ContentBlock::Resource(resource) => match resource.resource {
            wire::EmbeddedResourceResource::TextResourceContents(text) => {
                ContentPart::Resource { uri: text.uri, text: text.text, mime: text.mime_type }
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) if is_named_only(&blob) => {
                return Ok(PromptBlock::ImageUri { uri: blob.uri, mime: blob.mime_type.unwrap_or_default() });
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) => embedded_resource(blob)?,
            _ => return Err(unsupported("a kind of resource that this version does not support")),
        },
        wire::ContentBlock::Audio(_) => return Err(unsupported("audio")),
        _ => return Err(unsupported("a kind of content that this version does not support")),
    }))
}

/// Whether an embedded resource is a web image without its bytes.
fn is_named_only(blob: &wire::BlobResourceContents) -> bool {
    blob.blob.is_empty() && link::is_web_image(&blob.uri, blob.mime_type.as_deref())
}

/// Converts an embedded binary resource: an image if models accept it; of anything else the model gets the type and
/// size.
fn embedded_resource(blob: wire::BlobResourceContents) -> Result<ContentPart, Failure> {
    let mime = blob.mime_type.as_deref().unwrap_or("unknown type");
    match read_image_part(mime, &blob.blob) {
        Ok(image) => Ok(image),
        Err(ImageError::UnsupportedType(_)) => {
            let n_bytes = blob.blob.len() / 4 * 3;
            let name = blob.uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or("a resource");
            let [name, mime] = [name, mime].map(|text| escape_hidden_start(text, NAME_CHARS_MAX));
            let name = format!("{name} ({mime}, about {n_bytes} bytes, not shown)");
            Ok(ContentPart::Link { uri: blob.uri, name, mime: blob.mime_type })
        }
        Err(
            error @ (ImageError::InvalidBase64
            | ImageError::UnknownFormat
            | ImageError::Damaged
            | ImageError::TooLarge(..)),
        ) => Err(image_failure(&error)),
    }
}

fn image_failure(error: &ImageError) -> Failure {
    let reason = format!("an image of the prompt cannot be used: it {error}; send another one, or none");
    Failure::new(FailureKind::InvalidValue, reason)
}

#[cfg(test)]
mod tests;
