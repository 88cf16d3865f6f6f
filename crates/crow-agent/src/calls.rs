//! Runs the calls of one reply: in parallel unless they access the same things, each one evaluated first, each result
//! on disk before it is shown.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};

use crow_acp::ClientTerminal;
use crow_core::{
    AnsweredCall, Failure, OutputStreaming, SandboxSupport, SessionUpdate, ToolAccess, ToolCall,
    ToolCallContent, ToolCallInfo, ToolCallStatus, ToolResult, TranscriptEntry, append_hook_context,
    conflicting_earlier_calls, count_equal_calls, note_equal_calls,
};
use crow_tools::{ToolCx, ToolProgress, ToolRegistry};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::call_approval::{ACCESS_CHANGED, PreparedCall, approve_call};
use crate::hooks;
use crate::mcp_requests::CallMcpSession;
use crate::permission_gate::PermissionGate;
use crate::sandbox_retry::{self, SandboxedCallResult};
use crate::telemetry;
use crate::turn_context::{ClaimOutcome, SessionState, TurnCx};

const NOT_STORED: &str = "its result could not be stored; the turn ends here";

const PANICKED: &str = "the tool failed unexpectedly; this is an error in Crow, and the log says more";

/// Runs calls until each one has its result in the transcript.
pub(crate) async fn run_calls(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    calls: &[ToolCall],
    state: &mut SessionState,
) -> Result<(), Failure> {
    let infos: Vec<ToolCallInfo> = calls.iter().map(|call| tools.call_info(call, cx.workspace)).collect();
    let n_replays = cx.replays.n_replays();
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
            let span = telemetry::call_span(tools, call);
            let outcome = execute_call(cx, tools, call, gate).instrument(span.clone()).await;
            telemetry::record_call_result(&span, &outcome.result);
            (index, outcome)
        });
    }
    let mut store_result = Ok(());
    while let Some((index, CallOutcome { result, display })) = running.next().await {
        // After a failed write to the store, no further call starts, and running ones are stopped.
        if store_result.is_ok() {
            let (call, info) = (&calls[index], &infos[index]);
            let finished_call = FinishedCall { call, info, result, display: &display, n_replays };
            store_result = finish_call(cx, finished_call, state).await;
            if store_result.is_err() {
                cx.cancel.cancel();
            }
        }
        if store_result.is_err() {
            // The client gets no later update for this call.
            cx.children.record_failed_call(calls[index].id, NOT_STORED);
            cx.show_failed_calls(&[calls[index].id], NOT_STORED);
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

/// Runs a call between its hooks.
async fn execute_call(
    cx: &TurnCx<'_>,
    tools: &ToolRegistry,
    call: &ToolCall,
    gate: &PermissionGate,
) -> CallOutcome {
    let context = match hooks::before_call(cx, call).await {
        Ok(context) => context,
        Err(result) => return CallOutcome { result, display: OutputDisplay::AsContent },
    };
    // A call that ran before this one may have changed what this one would access.
    let info = tools.call_info(call, cx.workspace);
    let run = AssertUnwindSafe(run_call(cx, tools, call, &info, gate)).catch_unwind();
    // The call must end in the history and for the client, and the others go on.
    let mut outcome = run.await.unwrap_or_else(|_| {
        tracing::error!(tool = call.name, "a tool panicked");
        CallOutcome { result: ToolResult::failure(PANICKED), display: OutputDisplay::AsContent }
    });
    append_hook_context(&mut outcome.result, context);
    outcome
}

pub(crate) fn announce_call(cx: &TurnCx<'_>, tools: &ToolRegistry, call: &ToolCall, info: &ToolCallInfo) {
    let streaming = output_streaming(cx, tools, call);
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

fn output_streaming(cx: &TurnCx<'_>, tools: &ToolRegistry, call: &ToolCall) -> OutputStreaming {
    match tools.live_output_dir(call, cx.workspace, cx.client.capabilities()) {
        Some(directory) => OutputStreaming::Live { cwd: directory.display().to_string() },
        None => OutputStreaming::Off,
    }
}

/// A call that has ended and is not stored yet.
struct FinishedCall<'a> {
    call: &'a ToolCall,
    info: &'a ToolCallInfo,
    result: ToolResult,
    display: &'a OutputDisplay,
    /// The number of replays when the call was announced.
    n_replays: u64,
}

async fn finish_call(
    cx: &TurnCx<'_>,
    FinishedCall { call, info, mut result, display, n_replays }: FinishedCall<'_>,
    state: &mut SessionState,
) -> Result<(), Failure> {
    let ended = AnsweredCall { call, info, result: &result };
    let n_equal_calls = count_equal_calls(state.transcript.entries(), ended);
    note_equal_calls(&mut result, n_equal_calls);
    state.n_equal_calls = state.n_equal_calls.max(n_equal_calls);
    let (status, plan) = (result.status, result.plan.clone());
    let content = result.for_client.clone();
    let delivery_ids = cx.children.deliveries_for_call(call.id);
    let entry = TranscriptEntry::Result { call: call.id, info: info.clone(), result };
    if cx.append_with_claims(state, entry.clone(), &delivery_ids).await? == ClaimOutcome::AlreadyClaimed {
        cx.append_entry(state, entry).await?;
    }
    let content = match display {
        OutputDisplay::AsContent => Some(content),
        // The client has the output already, unless the session was replayed without this result.
        OutputDisplay::AsPrinted | OutputDisplay::InTerminal(_) => {
            (cx.replays.n_replays() > n_replays).then_some(content)
        }
    };
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

/// Returns the update that a call has started. A permission request may have replaced its streamed output.
fn started_update(cx: &TurnCx<'_>, tools: &ToolRegistry, call: &ToolCall) -> SessionUpdate {
    match output_streaming(cx, tools, call) {
        OutputStreaming::Live { .. } => SessionUpdate::Terminal { call: call.id, id: call.id.to_string() },
        OutputStreaming::Off => running_update(call, None),
    }
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
    let undo_recorder = cx.undo_recorder(gate.turn, call.id);
    let mcp_session = CallMcpSession { cx, gate };
    let tool_cx = ToolCx {
        may_read_written: gate.may_read_written(cx, info),
        call: Some(call.id),
        progress: &progress,
        undo_recorder: Some(&undo_recorder),
        mcp_session: Some(&mcp_session),
        ..cx.tool_cx(&info.access)
    };
    let prepared = PreparedCall { call, info, tool_cx };
    let result = match approve_call(cx, tools, prepared, gate).await {
        // The permission request may take long, and a link may have a different target by now.
        Ok(_) if tools.call_info(call, cx.workspace).access != info.access => {
            ToolResult::failure(ACCESS_CHANGED)
        }
        Ok(approval) => {
            cx.client.send_update(cx.session, started_update(cx, tools, call));
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
