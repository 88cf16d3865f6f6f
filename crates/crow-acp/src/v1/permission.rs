//! Spells questions that need a person's word, and reads the answers.

use agent_client_protocol as sdk;
use crow_core::{CallId, Content, Grant, GrantOffer, SessionId};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::client::{Lasting, PermissionAnswer, PermissionQuestion};
use crate::outbox::{Answered, Answers, Question, Subject};
use crate::v1::calls::{locations, tool_content, tool_kind};
use crate::v1::opening::meta;
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
    question: Question<'_>,
    is_child: bool,
) -> wire::RequestPermissionRequest {
    let why = question.why.map(|why| Content::Text(format!("Why this is asked: {why}.")));
    let shown = why.into_iter().chain(question.preview.iter().cloned());
    let fields = wire::ToolCallUpdateFields::new()
        .title(question.facets.title.clone())
        .kind(tool_kind(question.facets.kind))
        .status(wire::ToolCallStatus::Pending)
        .locations(locations(question.facets))
        .content(shown.map(tool_content).collect::<Vec<_>>())
        .raw_input(Value::Object(question.arguments.clone()));
    let call = wire::ToolCallUpdate::new(question.call.to_string(), fields);
    let options = options(question.subject, question.answers);
    let request = wire::RequestPermissionRequest::new(session_id(session), call, options);
    match (question.subject, question.answers) {
        (Subject::Offer, _) => request.meta(meta(json!({ ASKS: OFFER }))),
        (Subject::GoOn, _) => request.meta(meta(json!({ ASKS: GO_ON }))),
        // The parent may have had this answer already, and keeps the next one.
        (Subject::Call, Answers::Remembered { offer, .. }) if is_child && !offer.session.is_empty() => {
            request.meta(meta(json!({ REMEMBERS: offer.to_json() })))
        }
        (Subject::Call, _) => request,
    }
}

/// Lists the answers, a yes that holds once first.
fn options(subject: Subject, answers: Answers<'_>) -> Vec<wire::PermissionOption> {
    let option = |id: &'static str, name: &str, kind| wire::PermissionOption::new(id, name.to_owned(), kind);
    let [allow, reject] = match subject {
        Subject::Call => ["Allow once", "Reject"],
        Subject::Offer => ["Yes", "No"],
        Subject::GoOn => ["Go on", "Stop"],
    };
    let mut options = vec![option(ALLOW_ONCE, allow, wire::PermissionOptionKind::AllowOnce)];
    if let Answers::Remembered { offer, .. } = answers {
        if !offer.session.is_empty() {
            let name = label("Allow", &offer.session, "for this session");
            options.push(option(ALLOW_SESSION, &name, wire::PermissionOptionKind::AllowAlways));
        }
        if !offer.project.is_empty() {
            let name = label("Always allow", &offer.project, "in this project");
            options.push(option(ALLOW_PROJECT, &name, wire::PermissionOptionKind::AllowAlways));
        }
    }
    if answers == Answers::Session {
        let name = "Yes, always in this session";
        options.push(option(ALLOW_SESSION, name, wire::PermissionOptionKind::AllowAlways));
    }
    options.push(option(REJECT_ONCE, reject, wire::PermissionOptionKind::RejectOnce));
    if matches!(answers, Answers::Remembered { can_tell: true, .. }) {
        let name = "Reject and say what to do instead";
        options.push(option(REJECT_AND_TELL, name, wire::PermissionOptionKind::RejectOnce));
    }
    if answers == Answers::Session {
        let name = "Never in this session";
        options.push(option(REJECT_SESSION, name, wire::PermissionOptionKind::RejectAlways));
    }
    options
}

/// Names what a yes is remembered as: the widest of it where there is more than the call itself.
fn label(verb: &str, grants: &[Grant], how_long: &str) -> String {
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
pub(crate) fn permission_request_of_child(
    session: &SessionId,
    (call, who): (CallId, &str),
    question: &PermissionQuestion,
    is_child: bool,
) -> wire::RequestPermissionRequest {
    let asker = Content::Text(format!("Asked by {who}."));
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
        (Subject::GoOn, _) => request.meta(meta(json!({ ASKS: GO_ON }))),
        (Subject::Call, Some(offer)) if is_child => request.meta(meta(json!({ REMEMBERS: offer.to_json() }))),
        // Whether its work fails without it, the child alone knows.
        (Subject::Call | Subject::Offer, _) => request,
    }
}

/// Reads the answer to a question of a child; nothing when it was closed without one. What was not offered is no
/// answer.
pub(crate) fn answered_for_child(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    question: &PermissionQuestion,
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
pub(super) fn subject(request: &wire::RequestPermissionRequest) -> Subject {
    let asks = request.meta.as_ref().and_then(|meta| meta.get(ASKS)).and_then(Value::as_str);
    match asks {
        Some(OFFER) => Subject::Offer,
        Some(GO_ON) => Subject::GoOn,
        Some(_) | None => Subject::Call,
    }
}

/// Reads how long one of Crow's own answers holds beyond its call.
pub(crate) fn lasting(id: &str) -> Option<Lasting> {
    match id {
        ALLOW_SESSION => Some(Lasting::Session),
        ALLOW_PROJECT => Some(Lasting::Project),
        _ => None,
    }
}

/// Reads what a yes would be remembered as.
pub(super) fn offer(request: &wire::RequestPermissionRequest) -> Option<GrantOffer> {
    let offer = request.meta.as_ref()?.get(REMEMBERS)?.as_object()?;
    GrantOffer::from_json(offer)
}

pub(crate) fn answered(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    answers: Answers<'_>,
) -> Answered {
    let outcome = match answer {
        Ok(answer) => answer.outcome,
        Err(error) if matches!(i32::from(error.code), -32700 | -32602) => {
            return Answered::Nobody { why: "the client's answer cannot be read".into() };
        }
        Err(error) => return Answered::Nobody { why: error.message },
    };
    let selected = match outcome {
        wire::RequestPermissionOutcome::Cancelled => return Answered::Cancelled,
        wire::RequestPermissionOutcome::Selected(selected) => selected,
        _ => return Answered::Reject,
    };
    // An answer that was not among those offered is not a yes.
    match (&*selected.option_id.0, answers) {
        (ALLOW_ONCE, _) => Answered::AllowOnce,
        (ALLOW_SESSION, Answers::Session) => Answered::AllowForSession,
        (REJECT_SESSION, Answers::Session) => Answered::RejectForSession,
        (ALLOW_SESSION, Answers::Remembered { offer, .. }) if !offer.session.is_empty() => {
            Answered::AllowForSession
        }
        (ALLOW_PROJECT, Answers::Remembered { offer, .. }) if !offer.project.is_empty() => {
            Answered::AllowInProject
        }
        (REJECT_AND_TELL, Answers::Remembered { can_tell: true, .. }) => Answered::RejectAndTell,
        _ => Answered::Reject,
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

#[cfg(test)]
mod tests;
