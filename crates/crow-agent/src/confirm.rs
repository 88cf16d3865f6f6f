//! Questions of Crow's own to the person, in the form of a call that no reply made.

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionRequest, PermissionSubject};
use crow_core::{
    CallId, OutputStreaming, SessionUpdate, ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus,
    ToolKind,
};
use serde_json::Map;

use crate::run_turn::{SessionState, TurnCx};

/// What is asked about.
pub(crate) struct ConfirmationRequest<'a> {
    /// Which part of Crow asks.
    pub(crate) by: &'a str,
    pub(crate) title: &'a str,
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) subject: PermissionSubject,
    pub(crate) answers: OfferedAnswers<'static>,
}

/// Asks whether something may be.
pub(crate) async fn ask_confirmation(
    cx: &TurnCx<'_>,
    matter: ConfirmationRequest<'_>,
    talk: &SessionState,
) -> PermissionOutcome {
    let call = synthetic_call_id(cx, talk);
    let content: Vec<ToolCallContent> = matter
        .content
        .into_iter()
        .map(|content| match content {
            ToolCallContent::Text(text) => ToolCallContent::Text(replace_control_chars(&text)),
            content @ (ToolCallContent::Diff { .. } | ToolCallContent::Image { .. }) => content,
        })
        .collect();
    let facets = ToolCallInfo {
        title: replace_control_chars(&crate::children::single_line(matter.title)),
        kind: ToolKind::Think,
        locations: Vec::new(),
        touch: ToolAccess::Nothing,
    };
    let announced = SessionUpdate::Call {
        call,
        name: matter.by.to_owned(),
        facets: facets.clone(),
        arguments: Map::new(),
        status: ToolCallStatus::Pending,
        content: content.clone(),
        prints: OutputStreaming::Nothing,
    };
    cx.client.send_update(cx.session, announced);
    let question = PermissionRequest {
        subject: matter.subject,
        call,
        facets: &facets,
        arguments: &Map::new(),
        preview: &content,
        why: None,
        answers: matter.answers,
    };
    let answered = cx.client.request_permission(cx.session, question, cx.cut).await;
    let status = if answered.is_allowed() { ToolCallStatus::Done } else { ToolCallStatus::Failed };
    cx.client.send_update(cx.session, SessionUpdate::CallChanged { call, status, content: None });
    answered
}

/// Names a call that no reply makes: at the place of the next entry, beyond what any reply has.
pub(crate) fn synthetic_call_id(cx: &TurnCx<'_>, talk: &SessionState) -> CallId {
    let beyond = usize::try_from(cx.kit.next_number()).unwrap_or(usize::MAX);
    CallId::from_position(talk.transcript.next_seq(), beyond.saturating_add(CALLS_OF_A_REPLY))
}

/// As many as no reply has calls.
const CALLS_OF_A_REPLY: usize = 100_000;

/// Takes out what would do something to whoever shows a text, or turn its letters around: names and words of a repository
/// and of a model are in it.
pub(crate) fn replace_control_chars(text: &str) -> String {
    let is_odd = |char: char| {
        (char.is_control() && char != '\n')
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|char| if is_odd(char) { char::REPLACEMENT_CHARACTER } else { char }).collect()
}
