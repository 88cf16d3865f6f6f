//! Spells ACP version 1, and reads it. The only place that translates its types.
use agent_client_protocol as sdk;
use crow_core::{
    BadImage, CommandInfo, CompactionStage, Failure, FailureKind, Part, SessionId, TurnEnd, Update, link,
    read_image_part, visible_start,
};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::abilities::Abilities;
use crate::incoming::Spoken;

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

pub(crate) use beyond::{SetModelRequest, SetModelResponse, SteerRequest, SteerResponse, steered};
pub(crate) use client_side::{
    client_error, create_terminal, exit, kill_terminal, read_file, read_terminal, release_terminal,
    terminal_id, terminal_output, wait_for_exit, write_file,
};
pub(crate) use elicitation::{asked_form, form_request, form_response, formed};
pub(crate) use heard::{heard, message, question, stop_reason};
pub(crate) use opened::session_options;
pub(crate) use opening::{
    abilities, config_options, initialized, place, session_forked, session_loaded, session_opened,
    session_page, session_resumed, sign_in_method,
};
pub(crate) use permission::{
    answered, answered_for_child, lasting, nobody, permission_request, permission_request_of_child,
    permission_response,
};
pub(crate) use refused::with_kind;
pub(crate) use report::outcome;
pub(crate) use tree::{
    ClaimRequest, ClaimResponse, ReleaseNotification, agent_abilities, hello, until, until_meta,
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
pub(crate) fn error(failure: &Failure) -> sdk::Error {
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
pub(crate) fn failure(error: &sdk::Error) -> Failure {
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
pub(crate) fn notification(
    client: Abilities,
    session: &SessionId,
    update: Update,
) -> Option<wire::SessionNotification> {
    Some(wire::SessionNotification::new(session_id(session), session_update(client, update)?))
}

fn session_update(client: Abilities, update: Update) -> Option<wire::SessionUpdate> {
    Some(match update {
        Update::Prompt { message, part } => wire::SessionUpdate::UserMessageChunk(
            wire::ContentChunk::new(content_block(part)).message_id(wire::MessageId::new(message.as_str())),
        ),
        Update::Text { message, text } => wire::SessionUpdate::AgentMessageChunk(
            wire::ContentChunk::new(text.into()).message_id(wire::MessageId::new(message.as_str())),
        ),
        Update::Report { message, text, outcome, next } => report::spelled(&message, text, (outcome, &next)),
        Update::Thought { message, text } => wire::SessionUpdate::AgentThoughtChunk(
            // What a reply thinks is a message of its own beside what it says.
            wire::ContentChunk::new(text.into())
                .message_id(wire::MessageId::new(format!("{message}-thought"))),
        ),
        Update::Call { .. }
        | Update::CallChanged { .. }
        | Update::CallAgain { .. }
        | Update::Terminal { .. }
        | Update::Output { .. }
        | Update::Exited { .. } => return calls::spell(update),
        Update::Child { child, title, cwd, is_working } if client.children => {
            tree::child(&child, title, cwd, is_working)
        }
        Update::Passed(said) if client.children => serde_json::from_value(said).ok()?,
        Update::Child { .. } | Update::Passed(_) => return None,
        Update::Plan(entries) => {
            wire::SessionUpdate::Plan(wire::Plan::new(entries.into_iter().map(plan::spelled).collect()))
        }
        Update::Title(title) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().title(title))
        }
        Update::Changed(at) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().updated_at(at))
        }
        Update::Usage { used, size, spent, cost, is_guess } => {
            let spent = spent.filter(|_| client.depth.is_some());
            let usage = wire::UsageUpdate::new(used, size).cost(cost.map(tree::cost));
            wire::SessionUpdate::UsageUpdate(usage.meta(tree::usage_meta(spent, is_guess)))
        }
        Update::Mode(mode) => {
            wire::SessionUpdate::CurrentModeUpdate(wire::CurrentModeUpdate::new(mode.as_str()))
        }
        Update::Options(options) => {
            wire::SessionUpdate::ConfigOptionUpdate(wire::ConfigOptionUpdate::new(config_options(&options)))
        }
        Update::Commands(offered) => commands(offered),
        Update::Notice(text) => notice(client, wire::NoticeSeverity::Warning, text),
        Update::Compaction { id, stage, text } if client.compactions => compaction(id, stage, text),
        Update::Compaction { text, .. } => notice(client, wire::NoticeSeverity::Info, text),
    })
}

/// Without the client's word that it knows notices, a thought is what every client shows.
fn notice(client: Abilities, severity: wire::NoticeSeverity, text: String) -> wire::SessionUpdate {
    match client.notices {
        true => wire::SessionUpdate::Notice(wire::Notice::new(severity, text)),
        false => wire::SessionUpdate::AgentThoughtChunk(wire::ContentChunk::new(format!("{text}\n").into())),
    }
}

fn compaction(id: String, stage: CompactionStage, text: String) -> wire::SessionUpdate {
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

fn commands(offered: Vec<CommandInfo>) -> wire::SessionUpdate {
    let commands = offered.into_iter().map(|command| {
        let input = command
            .hint
            .map(|hint| wire::AvailableCommandInput::Unstructured(wire::UnstructuredCommandInput::new(hint)));
        wire::AvailableCommand::new(command.name, command.description).input(input)
    });
    let commands = commands.collect();
    wire::SessionUpdate::AvailableCommandsUpdate(wire::AvailableCommandsUpdate::new(commands))
}

fn content_block(part: Part) -> wire::ContentBlock {
    match part {
        Part::Text(text) => text.into(),
        Part::Image { mime, data } => wire::ContentBlock::Image(wire::ImageContent::new(data, mime)),
        Part::Link { uri, name, mime } => {
            wire::ContentBlock::ResourceLink(wire::ResourceLink::new(name, uri).mime_type(mime))
        }
        Part::Resource { uri, text, mime } => resource(uri, text, mime),
        Part::FromCrow { what, text } => resource(what.uri(), text, None),
    }
}

fn resource(uri: String, text: String, mime: Option<String>) -> wire::ContentBlock {
    let text = wire::TextResourceContents::new(text, uri).mime_type(mime);
    let contents = wire::EmbeddedResourceResource::TextResourceContents(text);
    wire::ContentBlock::Resource(wire::EmbeddedResource::new(contents))
}

/// Characters of a name or a type that a client gives something of a prompt.
const NAME_CHARS_MAX: usize = 200;

/// Reads what a prompt is made of. Nothing of it becomes a [`Part::FromCrow`], whatever its URI says.
pub(crate) fn parts(blocks: Vec<wire::ContentBlock>) -> Result<Vec<Spoken>, Failure> {
    let parts = blocks.into_iter().map(spoken).collect::<Result<Vec<_>, _>>()?;
    let says_something =
        |spoken: &Spoken| !matches!(spoken, Spoken::Part(Part::Text(text)) if text.trim().is_empty());
    if parts.iter().any(says_something) {
        Ok(parts)
    } else {
        Err(Failure::new(FailureKind::InvalidValue, "The prompt is empty. Say what should be done."))
    }
}

fn spoken(block: wire::ContentBlock) -> Result<Spoken, Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            FailureKind::InvalidValue,
            format!("The prompt holds {what}, which Crow cannot read. Send it as text or as a link."),
        )
    };
    Ok(Spoken::Part(match block {
        wire::ContentBlock::Text(text) => Part::Text(text.text),
        wire::ContentBlock::Image(image) => match image.uri {
            Some(uri) if image.data.is_empty() => return Ok(Spoken::ImageAt { uri, mime: image.mime_type }),
            Some(_) | None => {
                read_image_part(&image.mime_type, &image.data).map_err(|bad| refused_image(&bad))?
            }
        },
        wire::ContentBlock::ResourceLink(link) => {
            Part::Link { uri: link.uri, name: link.name, mime: link.mime_type }
        }
        wire::ContentBlock::Resource(resource) => match resource.resource {
            wire::EmbeddedResourceResource::TextResourceContents(text) => {
                Part::Resource { uri: text.uri, text: text.text, mime: text.mime_type }
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) if is_named_only(&blob) => {
                return Ok(Spoken::ImageAt { uri: blob.uri, mime: blob.mime_type.unwrap_or_default() });
            }
            wire::EmbeddedResourceResource::BlobResourceContents(blob) => embedded(blob)?,
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
fn embedded(blob: wire::BlobResourceContents) -> Result<Part, Failure> {
    let mime = blob.mime_type.as_deref().unwrap_or("unknown type");
    match read_image_part(mime, &blob.blob) {
        Ok(image) => Ok(image),
        Err(BadImage::Type(_)) => {
            let n_bytes = blob.blob.len() / 4 * 3;
            let name = blob.uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or("a resource");
            let [name, mime] = [name, mime].map(|text| visible_start(text, NAME_CHARS_MAX));
            let name = format!("{name} ({mime}, about {n_bytes} bytes that are not shown)");
            Ok(Part::Link { uri: blob.uri, name, mime: blob.mime_type })
        }
        Err(bad @ (BadImage::Base64 | BadImage::Bytes | BadImage::Broken | BadImage::Sides(..))) => {
            Err(refused_image(&bad))
        }
    }
}

fn refused_image(bad: &BadImage) -> Failure {
    let why = format!("An image of the prompt cannot be used: it {bad}. Send another one, or none.");
    Failure::new(FailureKind::InvalidValue, why)
}

#[cfg(test)]
mod tests;
