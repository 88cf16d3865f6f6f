//! Spells questions that need a person's word, and reads the answers.

use agent_client_protocol as sdk;
use crow_core::{CallId, Content, SessionId};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::client::{PermissionAnswer, PermissionQuestion};
use crate::outbox::{Answered, OfferAlways, Question, Subject};
use crate::v1::calls::{locations, tool_content, tool_kind};
use crate::v1::opening::meta;
use crate::v1::session_id;

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

/// What the `_meta` of a question says that is not about a call, for our own client.
pub(super) const ASKS: &str = "crow/asks";
const OFFER: &str = "offer";
const GO_ON: &str = "go_on";

pub(crate) fn permission_request(
    session: &SessionId,
    question: Question<'_>,
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
    let option = |id: &'static str, name: &str, kind| wire::PermissionOption::new(id, name, kind);
    let [allow, reject, allow_always, reject_always] = match question.subject {
        Subject::Call => ["Allow", "Reject", "Allow for this session", "Reject for this session"],
        Subject::Offer => ["Yes", "No", "Yes, always in this session", "Never in this session"],
        Subject::GoOn => ["Go on", "Stop", "Go on, always in this session", "Stop, always in this session"],
    };
    let once = [
        option(ALLOW_ONCE, allow, wire::PermissionOptionKind::AllowOnce),
        option(REJECT_ONCE, reject, wire::PermissionOptionKind::RejectOnce),
    ];
    let always = [
        option(ALLOW_ALWAYS, allow_always, wire::PermissionOptionKind::AllowAlways),
        option(REJECT_ALWAYS, reject_always, wire::PermissionOptionKind::RejectAlways),
    ];
    let options = match question.offer_always {
        OfferAlways::Yes => once.into_iter().chain(always).collect(),
        OfferAlways::No => once.to_vec(),
    };
    let call = wire::ToolCallUpdate::new(question.call.to_string(), fields);
    let request = wire::RequestPermissionRequest::new(session_id(session), call, options);
    match question.subject {
        Subject::Call => request,
        Subject::Offer => request.meta(meta(json!({ ASKS: OFFER }))),
        Subject::GoOn => request.meta(meta(json!({ ASKS: GO_ON }))),
    }
}

/// Spells a question of a child, in the place of the call that started it, with the child's own answers.
pub(crate) fn permission_request_of_child(
    session: &SessionId,
    (call, who): (CallId, &str),
    question: &PermissionQuestion,
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
    match question.subject {
        // Whether its work fails without it, the child alone knows.
        Subject::Call | Subject::Offer => request,
        Subject::GoOn => request.meta(meta(json!({ ASKS: GO_ON }))),
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

#[cfg(test)]
mod tests;
