//! Runs commands in the sandbox, and retries one that may have failed because of it.

use std::sync::atomic::{AtomicBool, Ordering};

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionRequest, PermissionSubject};
use crow_core::{
    ApprovalSource, Confinement, ContentPart, Mode, SessionUpdate, ToolAccess, ToolCall, ToolCallInfo,
    ToolCallStatus, ToolResult,
};
use crow_tools::{ToolCx, ToolProgress, ToolRegistry, command_retry, starts_command};

use crate::call_approval::{ACCESS_CHANGED, PreparedCall, approve_call};
use crate::permission_gate::PermissionGate;
use crate::turn_context::TurnCx;

const RETRY_REASON: &str =
    "it failed in the sandbox, possibly because of it; if allowed, it runs again without the sandbox";
const RETRY_REJECTED: &str = "(the user rejected running it without the sandbox)";
const RETRIED: &str = "(it failed in the sandbox and was allowed to run again without it)";

/// The next step after a call in the sandbox.
pub(crate) enum SandboxedCallResult {
    /// It has ended.
    Done(ToolResult),
    /// It runs again without the sandbox.
    Retry,
}

/// A call that ran, with its confinement.
pub(crate) struct SandboxedRun {
    pub(crate) confinement: Confinement,
    pub(crate) result: ToolResult,
}

/// Runs an approved call. If its command should be confined and the client's terminals have no sandbox, the call is
/// evaluated again without one.
pub(crate) async fn run_sandboxed(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    prepared: PreparedCall<'_>,
    gate: &PermissionGate,
    approval: ApprovalSource,
) -> SandboxedRun {
    let PreparedCall { call, info, tool_cx } = prepared;
    let confinement = gate.call_confinement(cx, call, info, approval);
    let is_unconfined = AtomicBool::new(false);
    let progress = |update: ToolProgress| {
        is_unconfined.fetch_or(matches!(update, ToolProgress::SandboxUnavailable), Ordering::Relaxed);
        (tool_cx.progress)(update);
    };
    let result = tools.run_call(call, ToolCx { confinement, progress: &progress, ..tool_cx }).await;
    if !is_unconfined.load(Ordering::Relaxed) {
        return SandboxedRun { confinement, result };
    }
    gate.warn_client_terminals(cx);
    let approval = match approve_call(cx, tools, prepared, gate).await {
        Ok(_) if tools.call_info(call, cx.workspace).access != info.access => {
            Err(ToolResult::failure(ACCESS_CHANGED))
        }
        approval => approval,
    };
    let confinement = Confinement::Unconfined;
    match approval {
        Ok(approval) => {
            let confinement = gate.call_confinement(cx, call, info, approval);
            let result = tools.run_call(&command_retry(call), ToolCx { confinement, ..tool_cx }).await;
            SandboxedRun { confinement, result }
        }
        Err(result) => SandboxedRun { confinement, result },
    }
}

impl PermissionGate {
    /// Returns the confinement of a call.
    pub(crate) fn call_confinement(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        info: &ToolCallInfo,
        approval: ApprovalSource,
    ) -> Confinement {
        if !matches!(info.access, ToolAccess::Runs(_)) {
            return Confinement::Unconfined;
        }
        let mode = cx.settings.borrow().mode;
        let confinement = self.permission_policy(cx, call).confinement(mode, approval);
        tracing::debug!(call = %call.id, ?confinement, ?approval, "a command runs");
        confinement
    }

    /// Warns the user once about the limits of the sandbox, before the first command that they affect.
    pub(crate) fn warn_sandbox_limits(&self, cx: &TurnCx<'_>, info: &ToolCallInfo) {
        let mode = cx.settings.borrow().mode;
        let is_confined =
            self.config.sandbox.confinement_for(mode, ApprovalSource::Policy) != Confinement::Unconfined;
        if matches!(info.access, ToolAccess::Runs(_))
            && is_confined
            && let Some(description) = self.local_policy.sandbox_rules().support.description()
            && !self.warned.local.swap(true, Ordering::Relaxed)
        {
            let sentence = format!("Note: {description}. Run `crow-cli doctor` for details.");
            cx.client.send_update(cx.session, SessionUpdate::Notice(sentence));
        }
    }

    /// Warns the user once that the client's terminals have no sandbox.
    fn warn_client_terminals(&self, cx: &TurnCx<'_>) {
        if let Some(reason) = cx.workspace.no_client_sandbox()
            && !self.warned.in_client.swap(true, Ordering::Relaxed)
        {
            let sentence = format!(
                "Note: there is no sandbox for commands in this client's terminals: {reason}. Unapproved commands ask first; \
                 those that only read or edit inside the project run there without it."
            );
            cx.client.send_update(cx.session, SessionUpdate::Notice(sentence));
        }
    }

    /// Examines the result of a confined call. If the sandbox may be the cause of a failure, the result says so and the
    /// user is asked to run the call again.
    pub(crate) async fn check_sandboxed_call(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        info: &ToolCallInfo,
        SandboxedRun { confinement, result }: SandboxedRun,
    ) -> SandboxedCallResult {
        let network = self.config.network;
        let may_be_denial = match (result.status, &info.access) {
            (ToolCallStatus::Failed, _) => confinement.is_suspected(network, &outcome_text(&result)),
            (ToolCallStatus::Completed, ToolAccess::Runs(line)) => {
                confinement.is_suspected_in_part(network, line, &outcome_text(&result))
            }
            (ToolCallStatus::Pending | ToolCallStatus::InProgress | ToolCallStatus::Completed, _) => false,
        };
        let Some(note) = confinement.restriction_note(network).filter(|_| may_be_denial && !cx.is_over())
        else {
            return SandboxedCallResult::Done(result);
        };
        let result = result.with_note(&note);
        if cx.settings.borrow().mode == Mode::Plan || !starts_command(call) {
            return SandboxedCallResult::Done(result);
        }
        let _turn_to_ask = self.question_lock.lock().await;
        let request = PermissionRequest {
            subject: PermissionSubject::Call,
            call: call.id,
            info,
            arguments: &call.arguments.to_object(),
            preview: &result.for_client.clone(),
            reason: Some(RETRY_REASON),
            offered_answers: OfferedAnswers::Once,
        };
        match cx.client.request_permission(cx.session, request, cx.cancel).await {
            PermissionOutcome::AllowOnce
            | PermissionOutcome::AllowForSession
            | PermissionOutcome::AllowInProject
            | PermissionOutcome::AllowPrefixInProject(_) => SandboxedCallResult::Retry,
            PermissionOutcome::Reject
            | PermissionOutcome::RejectForSession
            | PermissionOutcome::RejectWithFeedback => {
                SandboxedCallResult::Done(result.with_note(RETRY_REJECTED))
            }
            PermissionOutcome::Cancelled | PermissionOutcome::Unavailable { .. } => {
                SandboxedCallResult::Done(result)
            }
        }
    }
}

/// Runs a call again, without the sandbox. Its output is not streamed a second time.
pub(crate) async fn run_unconfined(tools: &ToolRegistry, call: &ToolCall, tool_cx: ToolCx<'_>) -> ToolResult {
    let progress = |update: ToolProgress| {
        if !matches!(update, ToolProgress::Output(_) | ToolProgress::Exited { .. }) {
            (tool_cx.progress)(update);
        }
    };
    let result = tools.run_call(&command_retry(call), ToolCx { progress: &progress, ..tool_cx }).await;
    result.with_note(RETRIED)
}

fn outcome_text(result: &ToolResult) -> String {
    let texts = result
        .for_model
        .iter()
        .filter_map(|part| if let ContentPart::Text(text) = part { Some(text.as_str()) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}
