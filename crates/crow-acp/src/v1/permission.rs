//! Spells questions that need a person's word, and reads the answers.

use agent_client_protocol as sdk;
use crow_core::{CallId, Grant, GrantOffer, SessionId, ToolCallContent};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::client::{AgentPermissionRequest, GrantScope, PermissionAnswer};
use crate::outbox::{OfferedAnswers, PermissionOutcome, PermissionRequest, PermissionSubject};
use crate::v1::calls::{tool_call_locations, tool_content, tool_kind};
use crate::v1::opening::to_meta;
use crate::v1::session_id;

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_SESSION: &str = "allow_always";
const ALLOW_PROJECT: &str = "allow_project";
const REJECT_ONCE: &str = "reject_once";
const REJECT_SESSION: &str = "reject_always";
const REJECT_AND_TELL: &str = "reject_and_tell";

/// What the `_meta` of a question says that is not about a call, for our own client.
pub(super) const ASKS: &str = "crow/asks";
const OFFER: &str = "offer";
const GO_ON: &str = "go_on";

/// Where the `_meta` of a child's question says what a yes would be remembered as.
const REMEMBERS: &str = "crow/remembers";

/// Longer descriptions of a grant make no label of a button.
const LABEL_CHARS_MAX: usize = 60;

pub(crate) fn permission_request(
    session: &SessionId,
    question: PermissionRequest<'_>,
    is_child: bool,
) -> wire::RequestPermissionRequest {
    let why = question.why.map(|why| ToolCallContent::Text(format!("Why this is asked: {why}.")));
    let shown = why.into_iter().chain(question.preview.iter().cloned());
    let fields = wire::ToolCallUpdateFields::new()
        .title(question.facets.title.clone())
        .kind(tool_kind(question.facets.kind))
        .status(wire::ToolCallStatus::Pending)
        .locations(tool_call_locations(question.facets))
        .content(shown.map(tool_content).collect::<Vec<_>>())
        .raw_input(Value::Object(question.arguments.clone()));
    let call = wire::ToolCallUpdate::new(question.call.to_string(), fields);
    let options = permission_options(question.subject, question.answers);
    let request = wire::RequestPermissionRequest::new(session_id(session), call, options);
    match (question.subject, question.answers) {
        (PermissionSubject::Offer, _) => request.meta(to_meta(json!({ ASKS: OFFER }))),
        (PermissionSubject::GoOn, _) => request.meta(to_meta(json!({ ASKS: GO_ON }))),
        // The parent may have had this answer already, and keeps the next one.
        (PermissionSubject::Call, OfferedAnswers::Remembered { offer, .. })
            if is_child && !offer.session.is_empty() =>
        {
            request.meta(to_meta(json!({ REMEMBERS: offer.to_json() })))
        }
        (PermissionSubject::Call, _) => request,
    }
}

/// Lists the answers, a yes that holds once first.
fn permission_options(
    subject: PermissionSubject,
    answers: OfferedAnswers<'_>,
) -> Vec<wire::PermissionOption> {
    let option = |id: &'static str, name: &str, kind| wire::PermissionOption::new(id, name.to_owned(), kind);
    let [allow, reject] = match subject {
        PermissionSubject::Call => ["Allow once", "Reject"],
        PermissionSubject::Offer => ["Yes", "No"],
        PermissionSubject::GoOn => ["Go on", "Stop"],
    };
    let mut options = vec![option(ALLOW_ONCE, allow, wire::PermissionOptionKind::AllowOnce)];
    if let OfferedAnswers::Remembered { offer, .. } = answers {
        if !offer.session.is_empty() {
            let name = grant_label("Allow", &offer.session, "for this session");
            options.push(option(ALLOW_SESSION, &name, wire::PermissionOptionKind::AllowAlways));
        }
        if !offer.project.is_empty() {
            let name = grant_label("Always allow", &offer.project, "in this project");
            options.push(option(ALLOW_PROJECT, &name, wire::PermissionOptionKind::AllowAlways));
        }
    }
    if answers == OfferedAnswers::Session {
        let name = "Yes, always in this session";
        options.push(option(ALLOW_SESSION, name, wire::PermissionOptionKind::AllowAlways));
    }
    options.push(option(REJECT_ONCE, reject, wire::PermissionOptionKind::RejectOnce));
    if matches!(answers, OfferedAnswers::Remembered { can_tell: true, .. }) {
        let name = "Reject and say what to do instead";
        options.push(option(REJECT_AND_TELL, name, wire::PermissionOptionKind::RejectOnce));
    }
    if answers == OfferedAnswers::Session {
        let name = "Never in this session";
        options.push(option(REJECT_SESSION, name, wire::PermissionOptionKind::RejectAlways));
    }
    options
}

/// Names what a yes is remembered as: the widest of it where there is more than the call itself.
fn grant_label(verb: &str, grants: &[Grant], how_long: &str) -> String {
    let is_wider = |grant: &&Grant| !matches!(grant, Grant::Run(_));
    let described: Vec<String> = grants.iter().filter(is_wider).map(Grant::description).collect();
    let described = described.join(", ");
    let is_short = !described.is_empty() && described.chars().count() <= LABEL_CHARS_MAX;
    let is_plain = !described.contains(char::is_control);
    match is_short && is_plain {
        true => format!("{verb} {described} {how_long}"),
        false => format!("{verb} {how_long}"),
    }
}

/// Spells a question of a child, in the place of the call that started it, with the child's own answers.
pub(crate) fn child_permission_request(
    session: &SessionId,
    (call, who): (CallId, &str),
    question: &AgentPermissionRequest,
    is_child: bool,
) -> wire::RequestPermissionRequest {
    let asker = ToolCallContent::Text(format!("Asked by {who}."));
    let shown = std::iter::once(asker).chain(question.content.iter().cloned());
    let fields = wire::ToolCallUpdateFields::new()
        .title(format!("{who}: {}", question.title))
        .kind(tool_kind(question.kind))
        .status(wire::ToolCallStatus::Pending)
        .content(shown.map(tool_content).collect::<Vec<_>>())
        .raw_input(question.input.clone());
    let options = question.choices.iter().map(|choice| {
        let kind = match (choice.allows, choice.always) {
            (true, false) => wire::PermissionOptionKind::AllowOnce,
            (true, true) => wire::PermissionOptionKind::AllowAlways,
            (false, false) => wire::PermissionOptionKind::RejectOnce,
            (false, true) => wire::PermissionOptionKind::RejectAlways,
        };
        wire::PermissionOption::new(choice.id.clone(), choice.name.clone(), kind)
    });
    let call = wire::ToolCallUpdate::new(call.to_string(), fields);
    let request = wire::RequestPermissionRequest::new(session_id(session), call, options.collect::<Vec<_>>());
    match (question.subject, &question.offer) {
        (PermissionSubject::GoOn, _) => request.meta(to_meta(json!({ ASKS: GO_ON }))),
        (PermissionSubject::Call, Some(offer)) if is_child => {
            request.meta(to_meta(json!({ REMEMBERS: offer.to_json() })))
        }
        // Whether its work fails without it, the child alone knows.
        (PermissionSubject::Call | PermissionSubject::Offer, _) => request,
    }
}

/// Reads the answer to a question of a child; nothing when it was closed without one. What was not offered is no
/// answer.
pub(crate) fn child_permission_answer(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    question: &AgentPermissionRequest,
) -> Option<PermissionAnswer> {
    match answer.map(|answer| answer.outcome) {
        Ok(wire::RequestPermissionOutcome::Selected(selected)) => {
            let id = selected.option_id.0.to_string();
            let is_offered = question.choices.iter().any(|choice| choice.id == id);
            is_offered.then_some(PermissionAnswer::Chosen(id))
        }
        Ok(_) => None,
        Err(error) => Some(PermissionAnswer::Nobody { why: error.message.into() }),
    }
}

/// Reads what a yes would be about.
pub(super) fn permission_subject(request: &wire::RequestPermissionRequest) -> PermissionSubject {
    let asks = request.meta.as_ref().and_then(|meta| meta.get(ASKS)).and_then(Value::as_str);
    match asks {
        Some(OFFER) => PermissionSubject::Offer,
        Some(GO_ON) => PermissionSubject::GoOn,
        Some(_) | None => PermissionSubject::Call,
    }
}

/// Reads how long one of Crow's own answers holds beyond its call.
pub(crate) fn grant_scope(id: &str) -> Option<GrantScope> {
    match id {
        ALLOW_SESSION => Some(GrantScope::Session),
        ALLOW_PROJECT => Some(GrantScope::Project),
        _ => None,
    }
}

/// Reads what a yes would be remembered as.
pub(super) fn grant_offer(request: &wire::RequestPermissionRequest) -> Option<GrantOffer> {
    let offer = request.meta.as_ref()?.get(REMEMBERS)?.as_object()?;
    GrantOffer::from_json(offer)
}

pub(crate) fn permission_outcome(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    answers: OfferedAnswers<'_>,
) -> PermissionOutcome {
    let outcome = match answer {
        Ok(answer) => answer.outcome,
        Err(error) if matches!(i32::from(error.code), -32700 | -32602) => {
            return PermissionOutcome::Nobody { why: "the client's answer cannot be read".into() };
        }
        Err(error) => return PermissionOutcome::Nobody { why: error.message },
    };
    let selected = match outcome {
        wire::RequestPermissionOutcome::Cancelled => return PermissionOutcome::Cancelled,
        wire::RequestPermissionOutcome::Selected(selected) => selected,
        _ => return PermissionOutcome::Reject,
    };
    // An answer that was not among those offered is not a yes.
    match (&*selected.option_id.0, answers) {
        (ALLOW_ONCE, _) => PermissionOutcome::AllowOnce,
        (ALLOW_SESSION, OfferedAnswers::Session) => PermissionOutcome::AllowForSession,
        (REJECT_SESSION, OfferedAnswers::Session) => PermissionOutcome::RejectForSession,
        (ALLOW_SESSION, OfferedAnswers::Remembered { offer, .. }) if !offer.session.is_empty() => {
            PermissionOutcome::AllowForSession
        }
        (ALLOW_PROJECT, OfferedAnswers::Remembered { offer, .. }) if !offer.project.is_empty() => {
            PermissionOutcome::AllowInProject
        }
        (REJECT_AND_TELL, OfferedAnswers::Remembered { can_tell: true, .. }) => {
            PermissionOutcome::RejectAndTell
        }
        _ => PermissionOutcome::Reject,
    }
}

/// Spells that a client has nobody to ask, which is neither a no nor a cancelled turn.
pub(crate) fn no_user_error(why: &str) -> sdk::Error {
    sdk::Error::new(-32603, why)
}

/// Spells a client's answer; no answer is a cancelled one.
pub(crate) fn permission_response(chosen: Option<String>) -> wire::RequestPermissionResponse {
    wire::RequestPermissionResponse::new(match chosen {
        Some(id) => wire::RequestPermissionOutcome::Selected(wire::SelectedPermissionOutcome::new(id)),
        None => wire::RequestPermissionOutcome::Cancelled,
    })
}

#[cfg(test)]
mod tests;
