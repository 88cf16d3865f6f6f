//! Runs the calls of one reply: in parallel unless they access the same things, each one evaluated first, each result
//! on disk before it is shown.

use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use crow_acp::{
    ClientTerminal, ElicitationForm, ElicitationOutcome, GrantScope, OfferedAnswers, PermissionOutcome,
    PermissionRequest, PermissionSubject,
};
use crow_core::{
    ApprovalSource, CallId, Confinement, Failure, GrantOffer, GrantSet, Mode, OutputStreaming,
    PermissionDecision, SandboxSupport, SessionUpdate, ToolAccess, ToolCall, ToolCallContent, ToolCallInfo,
    ToolCallStatus, ToolKind, ToolResult, TranscriptEntry, conflicting_earlier_calls,
};
use crow_tools::{PermissionPolicy, PolicySources, ToolCx, ToolProgress, ToolRegistry};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::hooks;
use crate::runtime::AgentConfig;
use crate::sandbox_retry::{self, SandboxedCallResult};
use crate::turn_context::WarnedOnce;
use crate::turn_context::{ClaimOutcome, SessionState, TurnCx};
use crate::undo_recorder::CallUndoRecorder;

const NOT_STORED: &str = "its result could not be stored; the turn ends here";
pub(crate) const ACCESS_CHANGED: &str =
    "not run: its target has changed since it was allowed; check it again";
const CANCELLED: &str = "not run: the turn was cancelled";
const REJECTED: &str = "not run: the user rejected it";
const AWAITS_INSTRUCTIONS: &str =
    "not run: the user rejected an earlier call and will give instructions with the next message";

/// Runs calls until each one has its result in the transcript.
pub(crate) async fn run_calls(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    calls: &[ToolCall],
    state: &mut SessionState,
) -> Result<(), Failure> {
    let infos: Vec<ToolCallInfo> = calls.iter().map(|call| tools.call_info(call, cx.workspace)).collect();
    for (call, info) in calls.iter().zip(&infos) {
        announce_call(cx, tools, call, info);
    }
    let runs_commands = infos.iter().any(|info| matches!(info.access, ToolAccess::Runs(_)));
    let support = if runs_commands { tools.sandbox_support().await } else { SandboxSupport::Full };
    let gate = PermissionGate::new(cx, tools, calls, state, support);
    let finished: Vec<CancellationToken> = calls.iter().map(|_| CancellationToken::new()).collect();
    let mut running = FuturesUnordered::new();
    for (index, call) in calls.iter().enumerate() {
        let (infos, finished, gate) = (&infos, &finished, &gate);
        running.push(async move {
            for earlier in conflicting_earlier_calls(infos, index) {
                finished[earlier].cancelled().await;
            }
            let context = match hooks::before_call(cx, call).await {
                Ok(context) => context,
                Err(result) => return (index, CallOutcome { result, display: OutputDisplay::AsContent }),
            };
            // A call that ran before this one may have changed what this one would access.
            let info = tools.call_info(call, cx.workspace);
            let mut outcome = run_call(cx, tools, call, &info, gate).await;
            hooks::append_context(&mut outcome.result, context);
            (index, outcome)
        });
    }
    let mut store_result = Ok(());
    while let Some((index, CallOutcome { result, display })) = running.next().await {
        // After a failed write to the store, no further call starts, and running ones are stopped.
        if store_result.is_ok() {
            let finished_call =
                FinishedCall { call: &calls[index], info: &infos[index], result, display: &display };
            store_result = finish_call(cx, finished_call, state).await;
            if store_result.is_err() {
                cx.cancel.cancel();
            }
        }
        if store_result.is_err() {
            // The client gets no later update for this call.
            let content = Some(vec![ToolCallContent::Text(NOT_STORED.to_owned())]);
            let update =
                SessionUpdate::CallChanged { call: calls[index].id, status: ToolCallStatus::Failed, content };
            cx.client.send_update(cx.session, update);
        }
        finished[index].cancel();
        if let OutputDisplay::InTerminal(terminal) = display {
            // The terminal is released only after its client has shown the end of the call.
            cx.client.flush_updates(cx.session).await;
            drop(terminal);
        }
    }
    drop(running);
    state.warned = gate.warned;
    state.awaits_instructions |= gate.awaits_instructions.into_inner();
    store_result
}

pub(crate) fn announce_call(cx: &TurnCx<'_>, tools: &ToolRegistry, call: &ToolCall, info: &ToolCallInfo) {
    let streaming = match tools.live_output_dir(call, cx.workspace, cx.client.capabilities()) {
        Some(directory) => OutputStreaming::Live { cwd: directory.display().to_string() },
        None => OutputStreaming::Off,
    };
    let update = SessionUpdate::Call {
        call: call.id,
        name: call.name.clone(),
        info: info.clone(),
        arguments: call.arguments.to_object(),
        status: ToolCallStatus::Pending,
        content: Vec::new(),
        streaming,
    };
    cx.client.send_update(cx.session, update);
}

/// A call that has ended and is not stored yet.
struct FinishedCall<'a> {
    call: &'a ToolCall,
    info: &'a ToolCallInfo,
    result: ToolResult,
    display: &'a OutputDisplay,
}

async fn finish_call(
    cx: &TurnCx<'_>,
    FinishedCall { call, info, result, display }: FinishedCall<'_>,
    state: &mut SessionState,
) -> Result<(), Failure> {
    let (status, plan) = (result.status, result.plan.clone());
    let content = match display {
        OutputDisplay::AsContent => Some(result.for_client.clone()),
        // The client has the output already.
        OutputDisplay::AsPrinted | OutputDisplay::InTerminal(_) => None,
    };
    let delivery_ids = cx.children.deliveries_for_call(call.id);
    let entry = TranscriptEntry::Result { call: call.id, info: info.clone(), result };
    if cx.append_with_claims(state, entry.clone(), &delivery_ids).await? == ClaimOutcome::AlreadyClaimed {
        cx.append_entry(state, entry).await?;
    }
    cx.client.send_update(cx.session, SessionUpdate::CallChanged { call: call.id, status, content });
    if let Some(plan) = plan {
        cx.client.send_update(cx.session, SessionUpdate::Plan(plan));
    }
    Ok(())
}

/// The place where the client shows the output of a call.
#[derive(Debug, Default)]
enum OutputDisplay {
    /// In the content of the call.
    #[default]
    AsContent,
    /// In the streamed output.
    AsPrinted,
    /// In a terminal of the client, which stays open until the call has ended.
    InTerminal(Arc<ClientTerminal>),
}

/// The result of a call, and where the client shows its output.
struct CallOutcome {
    result: ToolResult,
    display: OutputDisplay,
}

fn running_update(call: &ToolCall, content: Option<Vec<ToolCallContent>>) -> SessionUpdate {
    SessionUpdate::CallChanged { call: call.id, status: ToolCallStatus::InProgress, content }
}

async fn run_call(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    call: &ToolCall,
    info: &ToolCallInfo,
    gate: &PermissionGate,
) -> CallOutcome {
    let display = std::sync::Mutex::new(OutputDisplay::AsContent);
    let set_display = |now: OutputDisplay| *display.lock().unwrap_or_else(PoisonError::into_inner) = now;
    let progress = |progress: ToolProgress| match progress {
        ToolProgress::Content(content) => {
            cx.client.send_update(cx.session, running_update(call, Some(content)));
        }
        ToolProgress::Output(text) => {
            cx.client.send_update(cx.session, SessionUpdate::Output { call: call.id, text });
        }
        ToolProgress::Exited { code, signal } => {
            cx.client.send_update(cx.session, SessionUpdate::Exited { call: call.id, code, signal });
            set_display(OutputDisplay::AsPrinted);
        }
        ToolProgress::Terminal(terminal) => {
            let id = terminal.id().to_owned();
            cx.client.send_update(cx.session, SessionUpdate::Terminal { call: call.id, id });
            set_display(OutputDisplay::InTerminal(terminal));
        }
        ToolProgress::SandboxUnavailable => set_display(OutputDisplay::AsContent),
    };
    let undo_recorder = CallUndoRecorder::new(cx, gate.turn, call.id);
    let tool_cx = ToolCx {
        workspace: cx.workspace,
        editor: Some(cx.editor),
        access: &info.access,
        call: Some(call.id),
        confinement: Confinement::Unconfined,
        cancel: cx.cancel,
        progress: &progress,
        undo_recorder: Some(&undo_recorder),
    };
    let prepared = PreparedCall { call, info, tool_cx };
    let result = match approve_call(cx, tools, prepared, gate).await {
        // The permission request may take long, and a link may have a different target by now.
        Ok(_) if tools.call_info(call, cx.workspace).access != info.access => {
            ToolResult::failure(ACCESS_CHANGED)
        }
        Ok(approval) => {
            cx.client.send_update(cx.session, running_update(call, None));
            cx.begin_call(call, info).await;
            let run = sandbox_retry::run_sandboxed(cx, tools, prepared, gate, approval).await;
            let result = match gate.check_sandboxed_call(cx, call, info, run).await {
                SandboxedCallResult::Done(result) => result,
                SandboxedCallResult::Retry => {
                    cx.client.send_update(cx.session, running_update(call, None));
                    // For the client, the output of the first run has ended.
                    set_display(OutputDisplay::AsContent);
                    sandbox_retry::run_unconfined(tools, call, tool_cx).await
                }
            };
            let result = cx.end_call(call, info, result).await;
            hooks::after_call(cx, call, result).await
        }
        Err(result) => result,
    };
    CallOutcome { result, display: display.into_inner().unwrap_or_else(PoisonError::into_inner) }
}

/// State shared by the permission checks of one reply's calls.
pub(crate) struct PermissionGate {
    /// One question at a time: an answer may cover the next question.
    pub(crate) question_lock: Mutex<()>,
    /// The policy for commands on this machine.
    pub(crate) local_policy: PermissionPolicy,
    /// The policy without a sandbox, created when the client's terminals turn out to have none.
    policy_without_sandbox: OnceLock<PermissionPolicy>,
    /// The calls that run commands in the client's terminals.
    client_terminal_calls: HashSet<CallId>,
    pub(crate) warned: WarnedOnce,
    pub(crate) config: Arc<AgentConfig>,
    /// True if the user rejected a call and gives instructions with the next prompt.
    awaits_instructions: AtomicBool,
    /// Sequence number of the turn's prompt.
    turn: u64,
}

impl PermissionGate {
    pub(crate) fn new(
        cx: &TurnCx<'_>,
        tools: &ToolRegistry,
        calls: &[ToolCall],
        state: &mut SessionState,
        support: SandboxSupport,
    ) -> Self {
        let client = cx.client.capabilities();
        let client_terminal_calls =
            calls.iter().filter(|call| tools.runs_in_client(call, cx.workspace, client));
        Self {
            client_terminal_calls: client_terminal_calls.map(|call| call.id).collect(),
            policy_without_sandbox: OnceLock::new(),
            question_lock: Mutex::default(),
            warned: std::mem::take(&mut state.warned),
            local_policy: policy(cx, support),
            config: cx.runtime.config(),
            awaits_instructions: AtomicBool::new(false),
            turn: state.turn,
        }
    }

    /// Returns the policy that applies to a call. There may be no sandbox where its command runs.
    pub(crate) fn permission_policy(&self, cx: &TurnCx<'_>, call: &ToolCall) -> &PermissionPolicy {
        match cx.workspace.no_client_sandbox() {
            Some(reason) if self.client_terminal_calls.contains(&call.id) => {
                self.policy_without_sandbox.get_or_init(|| {
                    let reason = format!("the client's terminal has none: {reason}");
                    policy(cx, SandboxSupport::Unavailable { reason })
                })
            }
            Some(_) | None => &self.local_policy,
        }
    }

    /// Whether a call only changes files in the session's directories.
    fn is_inside(&self, info: &ToolCallInfo) -> bool {
        let ToolAccess::Writes(paths) = &info.access else { return false };
        let is_in_root = |path: &String| {
            self.local_policy.work_roots().iter().any(|root| Path::new(path).starts_with(root))
        };
        paths.iter().all(is_in_root)
    }

    /// Waits until the session's mode allows a call.
    async fn until_allowed_by_mode(&self, cx: &TurnCx<'_>, call: &ToolCall, info: &ToolCallInfo) {
        let mut settings = cx.settings.clone();
        while settings.changed().await.is_ok() {
            if self.evaluate_call(cx, call, info) == PermissionDecision::Allow {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn evaluate_call(
        &self,
        cx: &TurnCx<'_>,
        call: &ToolCall,
        info: &ToolCallInfo,
    ) -> PermissionDecision {
        let policy = self.permission_policy(cx, call);
        let decision =
            policy.evaluate(effective_mode(cx, info), &cx.approvals.all_grants(), &call.name, info);
        match cx.step_policy {
            Some(step_policy) => step_policy.narrow_decision(decision, call, &info.access),
            None => decision,
        }
    }

    /// Returns the source of the approval for a call that needs no question.
    fn call_approval(&self, cx: &TurnCx<'_>, call: &ToolCall, info: &ToolCallInfo) -> ApprovalSource {
        self.permission_policy(cx, call).approval(
            effective_mode(cx, info),
            &cx.approvals.all_grants(),
            &call.name,
            info,
        )
    }

    fn is_waiting_for_prompt(&self) -> bool {
        self.awaits_instructions.load(Ordering::Relaxed)
    }
}

/// Returns the mode in which a call is evaluated: that of the session, or that of the running step.
fn effective_mode(cx: &TurnCx<'_>, info: &ToolCallInfo) -> Mode {
    let mode = cx.settings.borrow().mode;
    cx.step_policy.map_or(mode, |step_policy| step_policy.effective_mode(mode, &info.access))
}

/// Returns the current policy of a session.
fn policy(cx: &TurnCx<'_>, support: SandboxSupport) -> PermissionPolicy {
    let (config, project_config) = (cx.runtime.config(), cx.config_loader.current_config());
    let readable_paths = project_config.skill_folders().map(Path::to_owned).chain([config.spill_dir.clone()]);
    PermissionPolicy::new(PolicySources {
        workspace: cx.workspace,
        cwd: None,
        readable: readable_paths.collect(),
        config_dir: &config.config_dir,
        rules: project_config.rules.clone(),
        sandbox: config.sandbox,
        support,
    })
}

/// Returns the reason why Crow itself may not write a file, if there is one: deny rules apply to Crow as well.
pub(crate) fn forbidden_write_reason(cx: &TurnCx<'_>, path: &Path) -> Option<String> {
    let access = ToolAccess::Writes(vec![crow_files::resolve_links(path).display().to_string()]);
    match evaluate_access(cx, Mode::Auto, "write", access) {
        PermissionDecision::Deny(reason) => Some(format!("{} is not written: {reason}", path.display())),
        PermissionDecision::Ask { reason, .. } => Some(format!(
            "{} is not written: {}",
            path.display(),
            reason.unwrap_or_else(|| "it is protected".to_owned())
        )),
        PermissionDecision::Allow => None,
    }
}

/// Whether the model might read a file without a question; otherwise the reason. `path` is resolved.
pub(crate) fn check_read_allowed(cx: &TurnCx<'_>, path: &Path) -> Result<(), String> {
    let mode = cx.settings.borrow().mode;
    match evaluate_access(cx, mode, "read", ToolAccess::Reads(vec![path.display().to_string()])) {
        PermissionDecision::Allow => Ok(()),
        PermissionDecision::Deny(reason) => Err(reason),
        PermissionDecision::Ask { reason, .. } => {
            Err(reason.unwrap_or_else(|| "it needs permission".to_owned()))
        }
    }
}

/// Evaluates an access that no call of the model requests.
fn evaluate_access(cx: &TurnCx<'_>, mode: Mode, tool: &str, access: ToolAccess) -> PermissionDecision {
    let info = ToolCallInfo { title: String::new(), kind: ToolKind::Edit, locations: Vec::new(), access };
    policy(cx, SandboxSupport::Full).evaluate(mode, &GrantSet::default(), tool, &info)
}

/// A call with everything that is needed to run it.
#[derive(Clone, Copy)]
pub(crate) struct PreparedCall<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) info: &'a ToolCallInfo,
    pub(crate) tool_cx: ToolCx<'a>,
}

/// Decides whether a call may run and returns the source of the approval, or the result of a call that may not run.
pub(crate) async fn approve_call(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    PreparedCall { call, info, tool_cx }: PreparedCall<'_>,
    gate: &PermissionGate,
) -> Result<ApprovalSource, ToolResult> {
    if cx.is_over() {
        return Err(ToolResult::failure(CANCELLED));
    }
    let pending_question = |decision: PermissionDecision| match decision {
        PermissionDecision::Allow => Ok(None),
        PermissionDecision::Deny(reason) => Err(ToolResult::failure(format!("not run: {reason}"))),
        PermissionDecision::Ask { offer, reason } => Ok(Some((offer, reason))),
    };
    gate.warn_sandbox_limits(cx, info);
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
    let preview = match tools.preview_call(call, tool_cx).await {
        Ok(preview) => preview,
        // The error would reveal what exists, so a path outside the roots needs permission first.
        Err(_) if matches!(info.access, ToolAccess::Writes(_)) && !gate.is_inside(info) => Vec::new(),
        Err(result) => return Err(result),
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
            accepts_feedback: capabilities.forms || capabilities.tree_depth.is_none(),
        },
    };
    let answer = cx.client.request_permission(cx.session, request, cx.cancel);
    let outcome = match select(pin!(answer), pin!(gate.until_allowed_by_mode(cx, call, info))).await {
        Either::Left((outcome, _)) => outcome,
        // The client's request is cancelled when its future is dropped.
        Either::Right(((), _)) => return Ok(gate.call_approval(cx, call, info)),
    };
    apply_permission_outcome(cx, gate, outcome, &offer).await
}

/// Turns an answer into a decision and stores a grant.
async fn apply_permission_outcome(
    cx: &TurnCx<'_>,
    gate: &PermissionGate,
    outcome: PermissionOutcome,
    offer: &GrantOffer,
) -> Result<ApprovalSource, ToolResult> {
    let stored = match outcome {
        PermissionOutcome::AllowOnce => Ok(()),
        PermissionOutcome::AllowForSession => cx.approvals.remember_grant(GrantScope::Session, offer).await,
        PermissionOutcome::AllowInProject => cx.approvals.remember_grant(GrantScope::Project, offer).await,
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
        is_about_trust: false,
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
