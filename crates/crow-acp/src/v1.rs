//! Spells ACP version 1, and reads it. The only place that translates its types.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol's enums are open: what is new is passed over"
)]

use agent_client_protocol as sdk;
use crow_core::{
    Content, Facets, Failure, FailureKind, Mode, Options, Part, PlanEntry, PlanStatus, SessionId, Status,
    ToolKind, TurnEnd, Update,
};
use sdk::schema::ProtocolVersion;
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::incoming::{Opened, SessionPage};
use crate::outbox::{Answered, OfferAlways, Question};

mod heard;

pub(crate) use heard::{heard, question, stop_reason};

/// How each notification starts on the wire; counted to know how many are on their way.
const UPDATE_LINE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;

pub(crate) fn is_update_line(line: &str) -> bool {
    line.starts_with(UPDATE_LINE)
}

pub(crate) fn session_id(session: &SessionId) -> wire::SessionId {
    wire::SessionId::new(session.as_str())
}

pub(crate) fn initialized(version: &str) -> wire::InitializeResponse {
    let capabilities = wire::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(wire::PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(wire::SessionCapabilities::new().list(wire::SessionListCapabilities::new()));
    wire::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(wire::Implementation::new("crow-cli", version).title("Crow".to_owned()))
}

pub(crate) fn session_opened(opened: &Opened) -> wire::NewSessionResponse {
    wire::NewSessionResponse::new(session_id(&opened.session))
        .modes(modes(opened.options.mode))
        .config_options(config_options(&opened.options))
}

pub(crate) fn session_loaded(opened: &Opened) -> wire::LoadSessionResponse {
    wire::LoadSessionResponse::new()
        .modes(modes(opened.options.mode))
        .config_options(config_options(&opened.options))
}

pub(crate) fn session_page(page: SessionPage) -> wire::ListSessionsResponse {
    let sessions = page.sessions.into_iter().map(|info| {
        wire::SessionInfo::new(session_id(&info.session), info.cwd).title(info.title).updated_at(info.updated)
    });
    wire::ListSessionsResponse::new(sessions.collect::<Vec<_>>()).next_cursor(page.next)
}

fn modes(current: Mode) -> wire::SessionModeState {
    let all = Mode::ALL.map(|mode| {
        wire::SessionMode::new(mode.as_str(), mode.as_str()).description(mode.description().to_owned())
    });
    wire::SessionModeState::new(current.as_str(), all.to_vec())
}

pub(crate) fn config_options(options: &Options) -> Vec<wire::SessionConfigOption> {
    let modes = Mode::ALL.map(|mode| {
        wire::SessionConfigSelectOption::new(mode.as_str(), mode.as_str())
            .description(mode.description().to_owned())
    });
    let mode = wire::SessionConfigOption::new(
        "mode",
        "Mode",
        wire::SessionConfigKind::Select(wire::SessionConfigSelect::new(
            options.mode.as_str(),
            modes.to_vec(),
        )),
    )
    .category(wire::SessionConfigOptionCategory::Mode);
    let models = options.models.iter().map(|model| {
        wire::SessionConfigSelectOption::new(wire::SessionConfigValueId::new(model.as_str()), model.as_str())
    });
    let model = options.model.as_deref().map(|current| {
        wire::SessionConfigOption::new(
            "model",
            "Model",
            wire::SessionConfigKind::Select(wire::SessionConfigSelect::new(
                wire::SessionConfigValueId::new(current),
                models.collect::<Vec<_>>(),
            )),
        )
        .category(wire::SessionConfigOptionCategory::Model)
    });
    std::iter::once(mode).chain(model).collect()
}

/// Spells how a turn ended. A failed turn is an error in this version, not a reason to stop.
pub(crate) fn prompt_response(end: TurnEnd) -> Result<wire::PromptResponse, Failure> {
    let reason = match end {
        TurnEnd::Done => wire::StopReason::EndTurn,
        TurnEnd::OutputLimit => wire::StopReason::MaxTokens,
        TurnEnd::RequestLimit => wire::StopReason::MaxTurnRequests,
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
    Failure::new(kind, field("details").unwrap_or(&error.message))
}

/// Spells an update; `None` where this version has no word for it.
pub(crate) fn notification(session: &SessionId, update: Update) -> Option<wire::SessionNotification> {
    Some(wire::SessionNotification::new(session_id(session), session_update(update)?))
}

fn session_update(update: Update) -> Option<wire::SessionUpdate> {
    Some(match update {
        Update::Prompt { message, part } => wire::SessionUpdate::UserMessageChunk(
            wire::ContentChunk::new(content_block(part)).message_id(wire::MessageId::new(message.as_str())),
        ),
        Update::Text { message, text } => wire::SessionUpdate::AgentMessageChunk(
            wire::ContentChunk::new(text.into()).message_id(wire::MessageId::new(message.as_str())),
        ),
        Update::Thought { message, text } => wire::SessionUpdate::AgentThoughtChunk(
            wire::ContentChunk::new(text.into()).message_id(wire::MessageId::new(message.as_str())),
        ),
        Update::Call { call, name, facets, arguments, status, content } => wire::SessionUpdate::ToolCall(
            wire::ToolCall::new(call.to_string(), facets.title.clone())
                .name(name)
                .kind(tool_kind(facets.kind))
                .status(tool_status(status))
                .locations(locations(&facets))
                .content(content.into_iter().map(tool_content).collect())
                .raw_input(Value::Object(arguments)),
        ),
        Update::CallChanged { call, status, content } => {
            let fields = wire::ToolCallUpdateFields::new()
                .status(tool_status(status))
                .content(content.map(|content| content.into_iter().map(tool_content).collect::<Vec<_>>()));
            wire::SessionUpdate::ToolCallUpdate(wire::ToolCallUpdate::new(call.to_string(), fields))
        }
        Update::Plan(entries) => {
            wire::SessionUpdate::Plan(wire::Plan::new(entries.into_iter().map(plan_entry).collect()))
        }
        Update::Title(title) => {
            wire::SessionUpdate::SessionInfoUpdate(wire::SessionInfoUpdate::new().title(title))
        }
        Update::Usage { used, size } => wire::SessionUpdate::UsageUpdate(wire::UsageUpdate::new(used, size)),
        Update::Mode(mode) => {
            wire::SessionUpdate::CurrentModeUpdate(wire::CurrentModeUpdate::new(mode.as_str()))
        }
        Update::Options(options) => {
            wire::SessionUpdate::ConfigOptionUpdate(wire::ConfigOptionUpdate::new(config_options(&options)))
        }
        Update::Commands(commands) => {
            let commands = commands.into_iter().map(|command| {
                let input = command.hint.map(|hint| {
                    wire::AvailableCommandInput::Unstructured(wire::UnstructuredCommandInput::new(hint))
                });
                wire::AvailableCommand::new(command.name, command.description).input(input)
            });
            wire::SessionUpdate::AvailableCommandsUpdate(wire::AvailableCommandsUpdate::new(
                commands.collect(),
            ))
        }
        // Without the client's word that it knows notices, a thought is what every client shows.
        Update::Notice(text) => {
            wire::SessionUpdate::AgentThoughtChunk(wire::ContentChunk::new(format!("{text}\n").into()))
        }
    })
}

fn locations(facets: &Facets) -> Vec<wire::ToolCallLocation> {
    let places = facets.locations.iter();
    places.map(|place| wire::ToolCallLocation::new(place.path.as_str()).line(place.line)).collect()
}

fn plan_entry(entry: PlanEntry) -> wire::PlanEntry {
    let status = match entry.status {
        PlanStatus::Pending => wire::PlanEntryStatus::Pending,
        PlanStatus::InProgress => wire::PlanEntryStatus::InProgress,
        PlanStatus::Completed => wire::PlanEntryStatus::Completed,
    };
    wire::PlanEntry::new(entry.text, wire::PlanEntryPriority::Medium, status)
}

fn tool_kind(kind: ToolKind) -> wire::ToolKind {
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

fn tool_status(status: Status) -> wire::ToolCallStatus {
    match status {
        Status::Pending => wire::ToolCallStatus::Pending,
        Status::Running => wire::ToolCallStatus::InProgress,
        Status::Done => wire::ToolCallStatus::Completed,
        Status::Failed => wire::ToolCallStatus::Failed,
    }
}

fn tool_content(content: Content) -> wire::ToolCallContent {
    match content {
        Content::Text(text) => wire::ToolCallContent::from(text),
        Content::Image { mime, data } => {
            wire::ToolCallContent::from(wire::ContentBlock::Image(wire::ImageContent::new(data, mime)))
        }
        Content::Diff { path, old, new } => wire::Diff::new(path, new).old_text(old).into(),
    }
}

fn content_block(part: Part) -> wire::ContentBlock {
    match part {
        Part::Text(text) => text.into(),
        Part::Image { mime, data } => wire::ContentBlock::Image(wire::ImageContent::new(data, mime)),
        Part::Link { uri, name } => wire::ContentBlock::ResourceLink(wire::ResourceLink::new(name, uri)),
        Part::Resource { uri, text } => {
            let text = wire::TextResourceContents::new(text, uri);
            wire::ContentBlock::Resource(wire::EmbeddedResource::new(
                wire::EmbeddedResourceResource::TextResourceContents(text),
            ))
        }
    }
}

/// Reads what a prompt is made of.
pub(crate) fn parts(blocks: Vec<wire::ContentBlock>) -> Result<Vec<Part>, Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            FailureKind::InvalidValue,
            format!("The prompt holds {what}, which Crow cannot read. Send it as text or as a link."),
        )
    };
    let parts = blocks.into_iter().map(|block| match block {
        wire::ContentBlock::Text(text) => Ok(Part::Text(text.text)),
        wire::ContentBlock::Image(image) => Ok(Part::Image { mime: image.mime_type, data: image.data }),
        wire::ContentBlock::ResourceLink(link) => Ok(Part::Link { uri: link.uri, name: link.name }),
        wire::ContentBlock::Resource(resource) => match resource.resource {
            wire::EmbeddedResourceResource::TextResourceContents(text) => {
                Ok(Part::Resource { uri: text.uri, text: text.text })
            }
            _ => Err(unsupported("a binary resource")),
        },
        wire::ContentBlock::Audio(_) => Err(unsupported("audio")),
        _ => Err(unsupported("a kind of content this version does not know")),
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let says_something = |part: &Part| !matches!(part, Part::Text(text) if text.trim().is_empty());
    if parts.iter().any(says_something) {
        Ok(parts)
    } else {
        Err(Failure::new(FailureKind::InvalidValue, "The prompt is empty. Say what should be done."))
    }
}

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

pub(crate) fn permission_request(
    session: &SessionId,
    question: Question<'_>,
) -> wire::RequestPermissionRequest {
    let fields = wire::ToolCallUpdateFields::new()
        .title(question.facets.title.clone())
        .kind(tool_kind(question.facets.kind))
        .status(wire::ToolCallStatus::Pending)
        .locations(locations(question.facets))
        .raw_input(Value::Object(question.arguments.clone()));
    let option = |id: &'static str, name: &str, kind| wire::PermissionOption::new(id, name, kind);
    let once = [
        option(ALLOW_ONCE, "Allow", wire::PermissionOptionKind::AllowOnce),
        option(REJECT_ONCE, "Reject", wire::PermissionOptionKind::RejectOnce),
    ];
    let always = [
        option(ALLOW_ALWAYS, "Allow for this session", wire::PermissionOptionKind::AllowAlways),
        option(REJECT_ALWAYS, "Reject for this session", wire::PermissionOptionKind::RejectAlways),
    ];
    let options = match question.offer_always {
        OfferAlways::Yes => once.into_iter().chain(always).collect(),
        OfferAlways::No => once.to_vec(),
    };
    let call = wire::ToolCallUpdate::new(question.call.to_string(), fields);
    wire::RequestPermissionRequest::new(session_id(session), call, options)
}

pub(crate) fn answered(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    offer_always: OfferAlways,
) -> Answered {
    let outcome = match answer {
        Ok(answer) => answer.outcome,
        Err(error) if matches!(i32::from(error.code), -32700 | -32602) => {
            return Answered::Nobody { why: "the client's answer cannot be read".into() };
        }
        Err(error) => return Answered::Nobody { why: error.message },
    };
    match outcome {
        wire::RequestPermissionOutcome::Cancelled => Answered::Cancelled,
        wire::RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
            ALLOW_ONCE => Answered::AllowOnce,
            ALLOW_ALWAYS if offer_always == OfferAlways::Yes => Answered::AllowAlways,
            REJECT_ALWAYS => Answered::RejectAlways,
            // An answer that was not among those offered is not a yes.
            _ => Answered::RejectOnce,
        },
        _ => Answered::RejectOnce,
    }
}

/// Spells that a client has nobody to ask, which is neither a no nor a cancelled turn.
pub(crate) fn nobody(why: &str) -> sdk::Error {
    sdk::Error::new(-32603, why)
}

/// Spells a client's answer; no answer is a cancelled one.
pub(crate) fn permission_response(chosen: Option<String>) -> wire::RequestPermissionResponse {
    wire::RequestPermissionResponse::new(match chosen {
        Some(id) => wire::RequestPermissionOutcome::Selected(wire::SelectedPermissionOutcome::new(id)),
        None => wire::RequestPermissionOutcome::Cancelled,
    })
}
