//! Converts permission requests, and parses the answers.

use agent_client_protocol as sdk;
use crow_core::{Grant, GrantOffer, GrantScope, SessionId, ToolCallContent};
use sdk::v1::schema as wire;
use serde_json::{Value, json};

use crate::permission::{
    AgentPermissionRequest, ChildPermissionRequest, OfferedAnswers, PermissionAnswer, PermissionOutcome,
    PermissionRequest, PermissionSubject, undescribed_title,
};
use crate::v1::primitives::{session_id, to_meta};
use crate::v1::rpc_errors::no_user_error;
use crate::v1::tool_calls::{tool_call_locations, tool_content, tool_kind};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_SESSION: &str = "allow_always";
const ALLOW_PROJECT: &str = "allow_project";
const REJECT_ONCE: &str = "reject_once";
const REJECT_SESSION: &str = "reject_always";
const REJECT_WITH_FEEDBACK: &str = "reject_and_tell";

/// The key in `_meta` for requests that are not about a call, for our own client.
pub(super) const SUBJECT_KEY: &str = "crow/asks";
const SUBJECT_PROPOSAL: &str = "offer";
const SUBJECT_CONTINUE: &str = "go_on";

/// The key in `_meta` of a child's request for what an approval would be remembered as.
const GRANT_OFFER_KEY: &str = "crow/remembers";

/// The key in `_meta` of an option for the prefix of the commands that it allows, and of the answer for the prefix that
/// the user has written in its place.
const PREFIX_KEY: &str = "crow/prefix";

/// Longer descriptions of a grant do not fit on a button.
const LABEL_CHARS_MAX: usize = 60;

pub(crate) fn permission_request(
    session: &SessionId,
    question: PermissionRequest<'_>,
    is_child: bool,
) -> wire::RequestPermissionRequest {
    let reason = question.reason.map(|why| ToolCallContent::Text(format!("Reason: {why}.")));
    let content = reason.into_iter().chain(question.preview.iter().cloned());
    let fields = wire::ToolCallUpdateFields::new()
        .title(question.info.title.clone())
        .kind(tool_kind(question.info.kind))
        .status(wire::ToolCallStatus::Pending)
        .locations(tool_call_locations(question.info))
        .content(content.map(tool_content).collect::<Vec<_>>())
        .raw_input(Value::Object(question.arguments.clone()));
    let call = wire::ToolCallUpdate::new(question.call.to_string(), fields);
    let options = permission_options(question.subject, question.offered_answers);
    let request = wire::RequestPermissionRequest::new(session_id(session), call, options);
    match (question.subject, question.offered_answers) {
        (PermissionSubject::Proposal, _) => request.meta(to_meta(json!({ SUBJECT_KEY: SUBJECT_PROPOSAL }))),
        (PermissionSubject::Continue, _) => request.meta(to_meta(json!({ SUBJECT_KEY: SUBJECT_CONTINUE }))),
        // The parent may know this answer already, and remembers the next one.
        (PermissionSubject::Call, OfferedAnswers::Remembered { offer, .. })
            if is_child && !offer.session.is_empty() =>
        {
            request.meta(to_meta(json!({ GRANT_OFFER_KEY: offer.to_json() })))
        }
        (PermissionSubject::Call, _) => request,
    }
}

/// Lists the options, approving once first.
fn permission_options(
    subject: PermissionSubject,
    offered_answers: OfferedAnswers<'_>,
) -> Vec<wire::PermissionOption> {
    let option = |id: &'static str, name: &str, kind| wire::PermissionOption::new(id, name.to_owned(), kind);
    let [allow, reject] = match subject {
        PermissionSubject::Call => ["Allow once", "Reject"],
        PermissionSubject::Proposal => ["Yes", "No"],
        PermissionSubject::Continue => ["Go on", "Stop"],
    };
    let mut options = vec![option(ALLOW_ONCE, allow, wire::PermissionOptionKind::AllowOnce)];
    if let OfferedAnswers::Remembered { offer, .. } = offered_answers {
        if !offer.session.is_empty() {
            let name = grant_label("Allow", &offer.session, "for this session");
            options.push(option(ALLOW_SESSION, &name, wire::PermissionOptionKind::AllowAlways));
        }
        if !offer.project.is_empty() {
            let name = grant_label("Always allow", &offer.project, "in this project");
            let option = option(ALLOW_PROJECT, &name, wire::PermissionOptionKind::AllowAlways);
            let prefix = offer.editable_prefix();
            options.push(option.meta(prefix.and_then(|prefix| to_meta(json!({ PREFIX_KEY: prefix })))));
        }
    }
    if offered_answers == OfferedAnswers::Session {
        let name = "Yes, always in this session";
        options.push(option(ALLOW_SESSION, name, wire::PermissionOptionKind::AllowAlways));
    }
    options.push(option(REJECT_ONCE, reject, wire::PermissionOptionKind::RejectOnce));
    if matches!(offered_answers, OfferedAnswers::Remembered { accepts_feedback: true, .. }) {
        let name = "Reject and say what to do instead";
        options.push(option(REJECT_WITH_FEEDBACK, name, wire::PermissionOptionKind::RejectOnce));
    }
    if offered_answers == OfferedAnswers::Session {
        let name = "Never in this session";
        options.push(option(REJECT_SESSION, name, wire::PermissionOptionKind::RejectAlways));
    }
    options
}

/// Returns the label of a remembered approval: the widest grant, if there is one beyond the call itself.
fn grant_label(verb: &str, grants: &[Grant], duration: &str) -> String {
    let is_wider = |grant: &&Grant| !matches!(grant, Grant::Run(_));
    let descriptions: Vec<String> = grants.iter().filter(is_wider).map(Grant::description).collect();
    let descriptions = descriptions.join(", ");
    let is_short = !descriptions.is_empty() && descriptions.chars().count() <= LABEL_CHARS_MAX;
    let is_plain = !descriptions.contains(char::is_control);
    match is_short && is_plain {
        true => format!("{verb} {descriptions} {duration}"),
        false => format!("{verb} {duration}"),
    }
}

/// Makes a child's permission request, in place of the call that started the child, with the child's own options.
pub(crate) fn child_permission_request(
    session: &SessionId,
    ChildPermissionRequest { parent_call, agent_name, request: question }: ChildPermissionRequest<'_>,
    is_child: bool,
) -> wire::RequestPermissionRequest {
    let source = ToolCallContent::Text(format!("Requested by {agent_name}."));
    let content = std::iter::once(source).chain(question.content.iter().cloned());
    let fields = wire::ToolCallUpdateFields::new()
        .title(match question.title.as_str() {
            "" => undescribed_title(agent_name),
            title => format!("{agent_name}: {title}"),
        })
        .kind(tool_kind(question.kind))
        .status(wire::ToolCallStatus::Pending)
        .content(content.map(tool_content).collect::<Vec<_>>())
        .raw_input(question.input.clone());
    let options = question.options.iter().map(|option| {
        let kind = match (option.allows, option.always) {
            (true, false) => wire::PermissionOptionKind::AllowOnce,
            (true, true) => wire::PermissionOptionKind::AllowAlways,
            (false, false) => wire::PermissionOptionKind::RejectOnce,
            (false, true) => wire::PermissionOptionKind::RejectAlways,
        };
        wire::PermissionOption::new(option.id.clone(), option.name.clone(), kind)
    });
    let call = wire::ToolCallUpdate::new(parent_call.to_string(), fields);
    let request = wire::RequestPermissionRequest::new(session_id(session), call, options.collect::<Vec<_>>());
    match (question.subject, &question.offer) {
        (PermissionSubject::Continue, _) => request.meta(to_meta(json!({ SUBJECT_KEY: SUBJECT_CONTINUE }))),
        (PermissionSubject::Call, Some(offer)) if is_child => {
            request.meta(to_meta(json!({ GRANT_OFFER_KEY: offer.to_json() })))
        }
        // Only the child knows whether its work fails without it.
        (PermissionSubject::Call | PermissionSubject::Proposal, _) => request,
    }
}

/// Parses the answer to a child's request; `None` if it was closed without one. An option that was not offered is no
/// answer.
pub(crate) fn child_permission_answer(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    question: &AgentPermissionRequest,
) -> Option<PermissionAnswer> {
    match answer.map(|answer| answer.outcome) {
        Ok(wire::RequestPermissionOutcome::Selected(selected)) => {
            let id = selected.option_id.0.to_string();
            let is_offered = question.options.iter().any(|option| option.id == id);
            is_offered.then_some(PermissionAnswer::Selected(id))
        }
        Ok(_) => None,
        Err(error) => Some(PermissionAnswer::Unavailable { reason: error.message.into() }),
    }
}

/// Parses the subject of an approval.
pub(super) fn permission_subject(request: &wire::RequestPermissionRequest) -> PermissionSubject {
    let subject = request.meta.as_ref().and_then(|meta| meta.get(SUBJECT_KEY)).and_then(Value::as_str);
    match subject {
        Some(SUBJECT_PROPOSAL) => PermissionSubject::Proposal,
        Some(SUBJECT_CONTINUE) => PermissionSubject::Continue,
        Some(_) | None => PermissionSubject::Call,
    }
}

// The scope of an answer is in its ID, which belongs to the protocol.
impl AgentPermissionRequest {
    /// Returns the scope of an answer to another Crow's question, beyond the call.
    pub fn grant_scope(&self, answer: &PermissionAnswer) -> Option<GrantScope> {
        match answer {
            PermissionAnswer::Selected(id) => grant_scope(id),
            // A child is not asked for other prefixes than its own.
            PermissionAnswer::SelectedPrefix { .. } | PermissionAnswer::Unavailable { .. } => None,
        }
    }
}

/// Parses the scope of one of Crow's own answers beyond its call.
fn grant_scope(id: &str) -> Option<GrantScope> {
    match id {
        ALLOW_SESSION => Some(GrantScope::Session),
        ALLOW_PROJECT => Some(GrantScope::Project),
        _ => None,
    }
}

/// Parses what an approval would be remembered as.
pub(super) fn grant_offer(request: &wire::RequestPermissionRequest) -> Option<GrantOffer> {
    let offer = request.meta.as_ref()?.get(GRANT_OFFER_KEY)?.as_object()?;
    GrantOffer::from_json(offer)
}

pub(crate) fn permission_outcome(
    answer: Result<wire::RequestPermissionResponse, sdk::Error>,
    offered_answers: OfferedAnswers<'_>,
) -> PermissionOutcome {
    let (outcome, prefix) = match answer {
        Ok(answer) => (answer.outcome, prefix_in(answer.meta.as_ref())),
        Err(error) if matches!(i32::from(error.code), -32700 | -32602) => {
            return PermissionOutcome::Unavailable { reason: "the client's answer cannot be read".into() };
        }
        Err(error) => return PermissionOutcome::Unavailable { reason: error.message },
    };
    let selected = match outcome {
        wire::RequestPermissionOutcome::Cancelled => return PermissionOutcome::Cancelled,
        wire::RequestPermissionOutcome::Selected(selected) => selected,
        _ => return PermissionOutcome::Reject,
    };
    // An option that was not offered does not approve.
    match (&*selected.option_id.0, offered_answers) {
        (ALLOW_ONCE, _) => PermissionOutcome::AllowOnce,
        (ALLOW_SESSION, OfferedAnswers::Session) => PermissionOutcome::AllowForSession,
        (REJECT_SESSION, OfferedAnswers::Session) => PermissionOutcome::RejectForSession,
        (ALLOW_SESSION, OfferedAnswers::Remembered { offer, .. }) if !offer.session.is_empty() => {
            PermissionOutcome::AllowForSession
        }
        (ALLOW_PROJECT, OfferedAnswers::Remembered { offer, .. }) if !offer.project.is_empty() => {
            match prefix.filter(|prefix| offer.editable_prefix().as_ref() != Some(prefix)) {
                Some(prefix) => PermissionOutcome::AllowPrefixInProject(prefix),
                None => PermissionOutcome::AllowInProject,
            }
        }
        (REJECT_WITH_FEEDBACK, OfferedAnswers::Remembered { accepts_feedback: true, .. }) => {
            PermissionOutcome::RejectWithFeedback
        }
        _ => PermissionOutcome::Reject,
    }
}

/// Parses the prefix of an option, or of an answer.
pub(super) fn prefix_in(meta: Option<&wire::Meta>) -> Option<String> {
    meta?.get(PREFIX_KEY)?.as_str().map(str::to_owned)
}

/// Converts a client's answer; no answer counts as cancelled. The error is the reason why there is no user.
pub(crate) fn permission_response(
    answer: Option<PermissionAnswer>,
) -> Result<wire::RequestPermissionResponse, sdk::Error> {
    let select = |id: String| {
        let outcome = wire::SelectedPermissionOutcome::new(id);
        wire::RequestPermissionResponse::new(wire::RequestPermissionOutcome::Selected(outcome))
    };
    match answer {
        Some(PermissionAnswer::Selected(id)) => Ok(select(id)),
        Some(PermissionAnswer::SelectedPrefix { option, prefix }) => {
            Ok(select(option).meta(to_meta(json!({ PREFIX_KEY: prefix }))))
        }
        Some(PermissionAnswer::Unavailable { reason }) => Err(no_user_error(&reason)),
        None => Ok(wire::RequestPermissionResponse::new(wire::RequestPermissionOutcome::Cancelled)),
    }
}

#[cfg(test)]
mod tests;
