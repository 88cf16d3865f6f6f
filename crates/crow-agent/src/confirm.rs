//! Confirmations that Crow itself requests, in the form of a call without a reply.

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionRequest, PermissionSubject};
use crow_core::{
    CallId, OutputStreaming, SessionUpdate, ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus,
    ToolKind, replace_control_chars,
};
use serde_json::Map;

use crate::turn_context::{SessionState, TurnCx};

/// The content of a confirmation.
pub(crate) struct ConfirmationRequest<'a> {
    /// The part of Crow that asks.
    pub(crate) source: &'a str,
    pub(crate) title: &'a str,
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) subject: PermissionSubject,
    pub(crate) answers: OfferedAnswers<'static>,
}

/// Asks the user for a confirmation.
pub(crate) async fn ask_confirmation(
    cx: &TurnCx<'_>,
    confirmation: ConfirmationRequest<'_>,
    state: &SessionState,
) -> PermissionOutcome {
    let call = synthetic_call_id(cx, state.transcript.next_seq());
    let content: Vec<ToolCallContent> = confirmation
        .content
        .into_iter()
        .map(|content| match content {
            ToolCallContent::Text(text) => ToolCallContent::Text(replace_control_chars(&text)),
            content @ (ToolCallContent::Diff { .. } | ToolCallContent::Image { .. }) => content,
        })
        .collect();
    let info = ToolCallInfo {
        title: replace_control_chars(&crow_children::single_line(confirmation.title)),
        kind: ToolKind::Think,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let update = SessionUpdate::Call {
        call,
        name: confirmation.source.to_owned(),
        info: info.clone(),
        arguments: Map::new(),
        status: ToolCallStatus::Pending,
        content: content.clone(),
        streaming: OutputStreaming::Off,
    };
    cx.client.send_update(cx.session, update);
    let request = PermissionRequest {
        subject: confirmation.subject,
        call,
        info: &info,
        arguments: &Map::new(),
        preview: &content,
        reason: None,
        offered_answers: confirmation.answers,
    };
    let outcome = cx.client.request_permission(cx.session, request, cx.cancel).await;
    let status = if outcome.is_allowed() { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    cx.client.send_update(cx.session, SessionUpdate::CallChanged { call, status, content: None });
    outcome
}

/// Returns an id for a call without a reply: in the position of an entry, with an index beyond those of any reply.
pub(crate) fn synthetic_call_id(cx: &TurnCx<'_>, seq: u64) -> CallId {
    let number = usize::try_from(cx.runtime.next_number()).unwrap_or(usize::MAX);
    CallId::from_position(seq, number.saturating_add(CALLS_OF_A_REPLY))
}

/// More calls than any reply has.
const CALLS_OF_A_REPLY: usize = 100_000;
