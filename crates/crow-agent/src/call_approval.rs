//! Approves a call before it runs: by the policy, or by the user, one question at a time.

use std::pin::pin;
use std::sync::atomic::Ordering;

use crow_acp::{
    ElicitationForm, ElicitationOutcome, FormSubject, OfferedAnswers, PermissionOutcome, PermissionRequest,
    PermissionSubject,
};
use crow_core::{
    ApprovalSource, ContentPart, GrantOffer, GrantScope, PermissionDecision, SessionUpdate, ToolAccess,
    ToolCall, ToolCallContent, ToolCallInfo, ToolResult,
};
use crow_tools::{ToolCx, ToolRegistry};
use futures_util::future::{Either, select};

use crate::permission_gate::PermissionGate;
use crate::turn_context::TurnCx;

pub(crate) const ACCESS_CHANGED: &str =
    "not run: its target has changed since it was allowed; check it again";
const CANCELLED: &str = "not run: the turn was cancelled";
const REJECTED: &str = "not run: the user rejected it";
const AWAITS_INSTRUCTIONS: &str =
    "not run: the user rejected an earlier call and will give instructions with the next message";

/// A call with everything that is needed to run it.
#[derive(Clone, Copy)]
pub(crate) struct PreparedCall<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) info: &'a ToolCallInfo,
    pub(crate) tool_cx: ToolCx<'a>,
}

/// The source of what a permission request shows.
#[derive(Clone, Copy)]
enum PreviewSource<'a> {
    /// The tool of the call.
    Tool(&'a ToolRegistry),
    /// The content of a server's request to the model.
    Request(&'a [ToolCallContent]),
}

/// Decides whether a call may run and returns the source of the approval, or the result of a call that may not run.
pub(crate) async fn approve_call(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    prepared: PreparedCall<'_>,
    gate: &PermissionGate,
) -> Result<ApprovalSource, ToolResult> {
    gate.warn_sandbox_limits(cx, prepared.info);
    approve(cx, PreviewSource::Tool(tools), prepared, gate).await
}

/// Decides whether a request of an MCP server may be carried out, which the content shows. The error is the reason why
/// not.
pub(crate) async fn approve_server_request(
    cx: &TurnCx<'_>,
    prepared: PreparedCall<'_>,
    gate: &PermissionGate,
    content: &[ToolCallContent],
) -> Result<(), String> {
    let approval = approve(cx, PreviewSource::Request(content), prepared, gate).await;
    approval.map(drop).map_err(|result| rejection_reason(&result))
}

/// Returns the reason in the result of a call that may not run.
pub(crate) fn rejection_reason(result: &ToolResult) -> String {
    let texts = result.for_model.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    });
    let text: String = texts.collect();
    text.strip_prefix("not run: ").map_or_else(|| text.clone(), str::to_owned)
}

async fn approve(
    cx: &TurnCx<'_>,
    preview_source: PreviewSource<'_>,
    prepared: PreparedCall<'_>,
    gate: &PermissionGate,
) -> Result<ApprovalSource, ToolResult> {
    let PreparedCall { call, info, tool_cx } = prepared;
    if cx.is_over() {
        return Err(ToolResult::failure(CANCELLED));
    }
    let pending_question = |decision: PermissionDecision| match decision {
        PermissionDecision::Allow => Ok(None),
        PermissionDecision::Deny(reason) => Err(ToolResult::failure(format!("not run: {reason}"))),
        PermissionDecision::Ask { offer, reason } => Ok(Some((offer, reason))),
    };
    if pending_question(gate.evaluate_call(cx, call, info))?.is_none() {
        return Ok(gate.call_approval(cx, call, info));
    }
    let _turn_to_ask = gate.question_lock.lock().await;
    let Some((offer, reason)) = pending_question(gate.evaluate_call(cx, call, info))? else {
        return Ok(gate.call_approval(cx, call, info));
    };
    if gate.is_waiting_for_prompt() {
        return Err(ToolResult::failure(AWAITS_INSTRUCTIONS));
    }
    // No question for a call that cannot be done.
    let preview = match preview_source {
        PreviewSource::Request(content) => content.to_vec(),
        PreviewSource::Tool(tools) => match tools.preview_call(call, tool_cx).await {
            Ok(preview) => preview,
            // The error would reveal what exists, so a path outside the roots needs permission first.
            Err(_) if matches!(info.access, ToolAccess::Writes(_)) && !gate.is_inside(info) => Vec::new(),
            Err(result) => return Err(result),
        },
    };
    let arguments = call.arguments.to_object();
    let capabilities = cx.client.capabilities();
    let request = PermissionRequest {
        subject: PermissionSubject::Call,
        call: call.id,
        info,
        arguments: &arguments,
        preview: &preview,
        reason: reason.as_deref(),
        // A child would lose the text of the answer at the end of its turn.
        offered_answers: OfferedAnswers::Remembered {
            offer: &offer,
            accepts_feedback: matches!(preview_source, PreviewSource::Tool(_))
                && (capabilities.forms || capabilities.tree_depth.is_none()),
        },
    };
    let answer = cx.client.request_permission(cx.session, request, cx.cancel);
    let outcome = match select(pin!(answer), pin!(gate.until_allowed_by_mode(cx, call, info))).await {
        Either::Left((outcome, _)) => outcome,
        // The client's request is cancelled when its future is dropped.
        Either::Right(((), _)) => return Ok(gate.call_approval(cx, call, info)),
    };
    apply_permission_outcome(cx, gate, prepared, outcome, &offer).await
}

/// Turns an answer into a decision and stores a grant.
async fn apply_permission_outcome(
    cx: &TurnCx<'_>,
    gate: &PermissionGate,
    prepared: PreparedCall<'_>,
    outcome: PermissionOutcome,
    offer: &GrantOffer,
) -> Result<ApprovalSource, ToolResult> {
    let stored = match outcome {
        PermissionOutcome::AllowOnce => Ok(()),
        PermissionOutcome::AllowForSession => cx.approvals.remember_grant(GrantScope::Session, offer).await,
        PermissionOutcome::AllowInProject => cx.approvals.remember_grant(GrantScope::Project, offer).await,
        PermissionOutcome::AllowPrefixInProject(prefix) => {
            match gate.change_prefix(cx, prepared, offer, prefix.trim()) {
                Ok(changed) => cx.approvals.remember_grant(GrantScope::Project, &changed).await,
                Err(reason) => {
                    Err(format!("The permission was not stored, and the command is allowed once: {reason}."))
                }
            }
        }
        PermissionOutcome::RejectWithFeedback => {
            return Err(ToolResult::failure(ask_for_instructions(cx, gate).await));
        }
        PermissionOutcome::Cancelled if cx.is_over() => return Err(ToolResult::failure(CANCELLED)),
        PermissionOutcome::Cancelled => {
            return Err(ToolResult::failure("not run: the question was closed without an answer"));
        }
        PermissionOutcome::Unavailable { reason } => {
            let reason = format!("not run: it needs permission, and the user could not be asked ({reason})");
            return Err(ToolResult::failure(reason));
        }
        PermissionOutcome::Reject | PermissionOutcome::RejectForSession => {
            return Err(ToolResult::failure(REJECTED));
        }
    };
    if let Err(reason) = stored {
        cx.client.send_update(cx.session, SessionUpdate::Notice(reason));
    }
    Ok(ApprovalSource::User)
}

/// Requests instructions to replace a call: in a form if the client supports forms, otherwise with the next prompt, for
/// which the turn ends.
async fn ask_for_instructions(cx: &TurnCx<'_>, gate: &PermissionGate) -> String {
    let form = ElicitationForm {
        message: "What should be done instead?".to_owned(),
        options: Vec::new(),
        free_text: true,
        subject: FormSubject::Question,
    };
    match cx.client.elicit_form(cx.session, &form, cx.cancel).await {
        ElicitationOutcome::Accepted(text) if !text.trim().is_empty() => {
            format!("{REJECTED} and says: {}", text.trim())
        }
        ElicitationOutcome::Accepted(_) | ElicitationOutcome::Declined => REJECTED.into(),
        ElicitationOutcome::Cancelled => CANCELLED.into(),
        ElicitationOutcome::Unavailable { .. } => {
            gate.awaits_instructions.store(true, Ordering::Relaxed);
            format!("{REJECTED} and will give instructions with the next message")
        }
    }
}
