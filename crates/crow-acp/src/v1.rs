//! Spells ACP version 1, and reads it. The only place that translates its types.
use agent_client_protocol as sdk;
use crow_core::{
    CommandInfo, CompactionStage, ContentPart, Failure, FailureKind, ImageError, SessionId, SessionUpdate,
    TurnEnd, escape_hidden_start, link, read_image_part,
};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::abilities::AcpClientCapabilities;
use crate::incoming::PromptBlock;

mod beyond;
mod calls;
mod client_side;
mod elicitation;
mod heard;
mod opened;
mod opening;
mod permission;
mod plan;
mod refused;
mod report;
mod tree;

pub(crate) use beyond::{SetModelRequest, SetModelResponse, SteerRequest, SteerResponse, steer_response};
pub(crate) use client_side::{
    client_error, create_terminal, kill_terminal, read_file, read_terminal, release_terminal, terminal_id,
    terminal_output, to_terminal_exit, wait_for_exit, write_file,
};
pub(crate) use elicitation::{
    elicitation_outcome, parse_form_request, to_elicitation_request, to_elicitation_response,
};
pub(crate) use heard::{message_id, parse_permission_request, stop_reason, to_agent_update};
pub(crate) use opened::session_options;
pub(crate) use opening::{
    check_sign_in_method, client_capabilities, config_options, fork_session_response, initialize_response,
    list_sessions_response, load_session_response, new_session_response, resume_session_response,
    session_location,
};
pub(crate) use permission::{
    child_permission_answer, child_permission_request, grant_scope, no_user_error, permission_outcome,
    permission_request, permission_response,
};
pub(crate) use refused::with_failure_kind;
pub(crate) use report::report_outcome;
pub(crate) use tree::{
    ClaimRequest, ClaimResponse, ReleaseNotification, agent_capabilities, initialize_request, turn_scope,
    turn_scope_meta,
};

/// How each notification starts on the wire; counted to know how many are on their way.
const UPDATE_LINE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;

pub(crate) fn is_update_line(line: &str) -> bool {
    line.starts_with(UPDATE_LINE)
}

pub(crate) fn session_id(session: &SessionId) -> wire::SessionId {
    wire::SessionId::new(session.as_str())
}

/// Spells how a turn ended. A failed turn is an error in this version, not a reason to stop.
pub(crate) fn prompt_response(end: TurnEnd) -> Result<wire::PromptResponse, Failure> {
    let reason = match end {
        TurnEnd::Done => wire::StopReason::EndTurn,
        TurnEnd::OutputLimit => wire::StopReason::MaxTokens,
        TurnEnd::RequestLimit | TurnEnd::Repeating => wire::StopReason::MaxTurnRequests,
        TurnEnd::Refused => wire::StopReason::Refusal,
        TurnEnd::Cancelled => wire::StopReason::Cancelled,
        TurnEnd::Failed(failure) => return Err(failure),
    };
    Ok(wire::PromptResponse::new(reason))
}

/// Spells a failure as a JSON-RPC error with its kind and its sentence.
pub(crate) fn to_rpc_error(failure: &Failure) -> sdk::Error {
    let (code, message) = match failure.kind {
        FailureKind::SessionNotFound => (-32002, "Session not found"),
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
    sdk::Error::new(code, message).data(json!({ "kind": failure.kind.as_str(), "details": failure.sentence }))
}

/// Reads an error of the other side as a failure.
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
    let sentence = match (field("details"), data.and_then(Value::as_str)) {
        (Some(details), _) => details.to_owned(),
        (None, Some(details)) => format!("{}: {details}", error.message),
        (None, None) => error.message.clone(),
    };
    Failure::new(kind, sentence)
}

/// Spells an update; `None` where this version has no word for it.
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
            // What a reply thinks is a message of its own beside what it says.
            wire::ContentChunk::new(text.into())
                .message_id(wire::MessageId::new(format!("{message}-thought"))),
        ),
        SessionUpdate::Call { .. }
        | SessionUpdate::CallChanged { .. }
        | SessionUpdate::CallAgain { .. }
        | SessionUpdate::Terminal { .. }
        | SessionUpdate::Output { .. }
        | SessionUpdate::Exited { .. } => return calls::to_call_update(update),
        SessionUpdate::Child { child, title, cwd, is_working } if client.children => {
            tree::child_update(&child, title, cwd, is_working)
        }
        SessionUpdate::Passed(said) if client.children => serde_json::from_value(said).ok()?,
        SessionUpdate::Child { .. } | SessionUpdate::Passed(_) => return None,
        SessionUpdate::Plan(entries) => {
            wire::SessionUpdate::Plan(wire::Plan::new(entries.into_iter().map(plan::to_wire_entry).collect()))
        }
        SessionUpdate::Title(title) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().title(title))
        }
        SessionUpdate::Changed(at) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().updated_at(at))
        }
        SessionUpdate::Usage { used, size, spent, cost, is_guess } => {
            let spent = spent.filter(|_| client.depth.is_some());
            let usage = wire::UsageUpdate::new(used, size).cost(cost.map(tree::to_wire_cost));
            wire::SessionUpdate::UsageUpdate(usage.meta(tree::usage_meta(spent, is_guess)))
        }
        SessionUpdate::Mode(mode) => {
            wire::SessionUpdate::CurrentModeUpdate(wire::CurrentModeUpdate::new(mode.as_str()))
        }
        SessionUpdate::Options(options) => {
            wire::SessionUpdate::ConfigOptionUpdate(wire::ConfigOptionUpdate::new(config_options(&options)))
        }
        SessionUpdate::Commands(offered) => commands_update(offered),
        SessionUpdate::Notice(text) => notice_update(client, wire::NoticeSeverity::Warning, text),
        SessionUpdate::Compaction { id, stage, text } if client.compactions => {
            compaction_update(id, stage, text)
        }
        SessionUpdate::Compaction { text, .. } => notice_update(client, wire::NoticeSeverity::Info, text),
    })
}

/// Without the client's word that it knows notices, a thought is what every client shows.
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

fn commands_update(offered: Vec<CommandInfo>) -> wire::SessionUpdate {
    let commands = offered.into_iter().map(|command| {
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
        ContentPart::FromCrow { what, text } => text_resource(what.uri(), text, None),
    }
}

fn text_resource(uri: String, text: String, mime: Option<String>) -> wire::ContentBlock {
    let text = wire::TextResourceContents::new(text, uri).mime_type(mime);
    let contents = wire::EmbeddedResourceResource::TextResourceContents(text);
    wire::ContentBlock::Resource(wire::EmbeddedResource::new(contents))
}

/// Characters of a name or a type that a client gives something of a prompt.
const NAME_CHARS_MAX: usize = 200;

/// Reads what a prompt is made of. Nothing of it becomes a [`ContentPart::FromCrow`], whatever its URI says.
pub(crate) fn prompt_blocks(blocks: Vec<wire::ContentBlock>) -> Result<Vec<PromptBlock>, Failure> {
    let parts = blocks.into_iter().map(prompt_block).collect::<Result<Vec<_>, _>>()?;
    let says_something = |spoken: &PromptBlock| !matches!(spoken, PromptBlock::Part(ContentPart::Text(text)) if text.trim().is_empty());
    if parts.iter().any(says_something) {
        Ok(parts)
    } else {
        Err(Failure::new(FailureKind::InvalidValue, "The prompt is empty. Say what should be done."))
    }
}

fn prompt_block(block: wire::ContentBlock) -> Result<PromptBlock, Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            FailureKind::InvalidValue,
            format!("The prompt holds {what}, which Crow cannot read. Send it as text or as a link."),
        )
    };
    Ok(PromptBlock::Part(match block {
        wire::ContentBlock::Text(text) => ContentPart::Text(text.text),
        wire::ContentBlock::Image(image) => match image.uri {
            Some(uri) if image.data.is_empty() => {
                return Ok(PromptBlock::ImageAt { uri, mime: image.mime_type });
            }
            Some(_) | None => {
                read_image_part(&image.mime_type, &image.data).map_err(|bad| image_failure(&bad))?
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
                return Ok(PromptBlock::ImageAt { uri: blob.uri, mime: blob.mime_type.unwrap_or_default() });
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) => embedded_resource(blob)?,
            _ => return Err(unsupported("a kind of resource this version does not know")),
        },
        wire::ContentBlock::Audio(_) => return Err(unsupported("audio")),
        _ => return Err(unsupported("a kind of content this version does not know")),
    }))
}

/// Whether an embedded resource is an image on the web without its bytes.
fn is_named_only(blob: &wire::BlobResourceContents) -> bool {
    blob.blob.is_empty() && link::is_web_image(&blob.uri, blob.mime_type.as_deref())
}

/// Reads an embedded resource of bytes: an image that models take is one, and of everything else the model hears what it
/// is and how large.
fn embedded_resource(blob: wire::BlobResourceContents) -> Result<ContentPart, Failure> {
    let mime = blob.mime_type.as_deref().unwrap_or("unknown type");
    match read_image_part(mime, &blob.blob) {
        Ok(image) => Ok(image),
        Err(ImageError::Type(_)) => {
            let n_bytes = blob.blob.len() / 4 * 3;
            let name = blob.uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or("a resource");
            let [name, mime] = [name, mime].map(|text| escape_hidden_start(text, NAME_CHARS_MAX));
            let name = format!("{name} ({mime}, about {n_bytes} bytes that are not shown)");
            Ok(ContentPart::Link { uri: blob.uri, name, mime: blob.mime_type })
        }
        Err(bad @ (ImageError::Base64 | ImageError::Bytes | ImageError::Broken | ImageError::Sides(..))) => {
            Err(image_failure(&bad))
        }
    }
}

fn image_failure(bad: &ImageError) -> Failure {
    let why = format!("An image of the prompt cannot be used: it {bad}. Send another one, or none.");
    Failure::new(FailureKind::InvalidValue, why)
}

#[cfg(test)]
mod tests;
