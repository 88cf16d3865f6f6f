//! Tasks of a step that run in child agents, each shown as a call of its own.

use std::pin::Pin;

use crow_children::{AwaitedTurn, NewTaskRequest, ParentCall, single_line};
use crow_core::{
    CallId, OutputStreaming, SessionId, SessionUpdate, ToolAccess, ToolCallContent, ToolCallInfo,
    ToolCallStatus, ToolKind, ToolResult,
};
use crow_store::DeliveryId;
use crow_tools::{ToolCx, ToolProgress};
use crow_workflow::{ChildTask, ChildTaskReport};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};

use crate::confirm::synthetic_call_id;
use crate::turn_context::{SessionState, TurnCx};

type PendingReport<'a> = Pin<Box<dyn Future<Output = ChildTaskReport> + Send + 'a>>;

/// The child agents of one batch of tasks.
#[derive(Default)]
pub(super) struct ChildTasks<'a> {
    running: FuturesUnordered<PendingReport<'a>>,
    calls: Vec<CallId>,
}

impl<'a> ChildTasks<'a> {
    /// Starts a child for a task; returns whether it was started.
    pub(super) async fn start_child(
        &mut self,
        cx: TurnCx<'a>,
        state: &SessionState,
        task: ChildTask,
    ) -> bool {
        let call = synthetic_call_id(&cx, state.transcript.next_seq());
        let info = ToolCallInfo {
            title: single_line(&task.title),
            kind: ToolKind::Other,
            locations: Vec::new(),
            access: ToolAccess::Nothing,
        };
        let update = SessionUpdate::Call {
            call,
            name: "task".to_owned(),
            info: info.clone(),
            arguments: Map::from_iter([("task".to_owned(), Value::from(task.id.as_str()))]),
            status: ToolCallStatus::InProgress,
            content: Vec::new(),
            streaming: OutputStreaming::Off,
        };
        cx.client.send_update(cx.session, update);
        let request = NewTaskRequest {
            prompt: task.prompt.clone(),
            agent: None,
            cwd: None,
            model: None,
            title: Some(info.title.clone()),
            worktree: false,
            notify_parent: false,
        };
        let parent_call = ParentCall { call, info, shown_text: None };
        let start_result = cx.children.start_task(request, parent_call, cx.cancel).await;
        let start_result = start_result.and_then(|child| {
            let turn = cx.children.running_turn(&child).ok_or("it ended immediately")?;
            Ok((child, turn))
        });
        match start_result {
            Ok((child, turn)) => {
                self.calls.push(call);
                self.running.push(Box::pin(async move {
                    let result = wait_for_child(cx, call, &child, turn).await;
                    let report = ChildTaskReport::from_result(task.id, &result);
                    let (status, content) = (report.status(), Some(result.for_client));
                    cx.client.send_update(cx.session, SessionUpdate::CallChanged { call, status, content });
                    report
                }));
                true
            }
            Err(reason) => {
                let content =
                    Some(vec![ToolCallContent::Text(format!("No child could be started: {reason}"))]);
                let failed = SessionUpdate::CallChanged { call, status: ToolCallStatus::Failed, content };
                cx.client.send_update(cx.session, failed);
                false
            }
        }
    }

    /// Waits for the next child to end.
    pub(super) async fn next_report(&mut self) -> Option<ChildTaskReport> {
        self.running.next().await
    }

    /// Removes and returns the deliveries of the children's results.
    pub(super) fn take_deliveries(&mut self, cx: &TurnCx<'_>) -> Vec<DeliveryId> {
        self.calls.drain(..).flat_map(|call| cx.children.deliveries_for_call(call)).collect()
    }
}

/// Shows the progress of a child until it has ended; returns its result.
async fn wait_for_child(cx: TurnCx<'_>, call: CallId, child: &SessionId, turn: AwaitedTurn) -> ToolResult {
    let progress = |progress: ToolProgress| {
        if let ToolProgress::Content(content) = progress {
            let update = SessionUpdate::CallChanged {
                call,
                status: ToolCallStatus::InProgress,
                content: Some(content),
            };
            cx.client.send_update(cx.session, update);
        }
    };
    let tool_cx = ToolCx { call: Some(call), progress: &progress, ..cx.tool_cx(&ToolAccess::Nothing) };
    crow_children::wait_for_turn(cx.children, child, turn, tool_cx).await
}
