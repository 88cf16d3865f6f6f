//! Runs parallel tasks in child agents if the user allows it. The children work in the same directory, on files that
//! the task list separates.

use std::pin::Pin;

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionSubject};
use crow_children::{AwaitedTurn, NewTaskRequest, ParentCall};
use crow_core::{
    CallId, Confinement, ContentPart, Failure, OutputStreaming, SessionId, SessionUpdate, ToolAccess,
    ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind, ToolResult,
};
use crow_speckit::{AuxiliaryPrompt, TaskFacts, TaskId, TaskItem, TaskList, task_facts};
use crow_store::DeliveryId;
use crow_tools::{ToolCx, ToolProgress};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};

use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::runtime::ParallelMode;
use crate::speckit::step::{SOURCE, WorkflowStep};
use crate::speckit::step_policy::StepTaskResult;
use crate::turn_context::SessionState;

/// Children started at once; the limits of the agent tree apply as well.
const CHILDREN_MAX: usize = 8;

/// Prefix of the last line of a child's answer.
const RESULT: &str = "RESULT:";

/// The user's consent to parallel tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParallelConsent {
    /// Whether these tasks may run in parallel.
    pub(super) is_allowed: bool,
    /// Whether the answer applies to the whole run.
    pub(super) is_final: bool,
}

/// Asks the user, unless the configuration decides.
pub(super) async fn ask_consent(
    step: &WorkflowStep<'_>,
    tasks: &[TaskItem],
    state: &SessionState,
) -> ParallelConsent {
    match step.scope.context.config.parallel {
        ParallelMode::Never => return ParallelConsent { is_allowed: false, is_final: true },
        ParallelMode::Always => return ParallelConsent { is_allowed: true, is_final: true },
        ParallelMode::Ask => {}
    }
    // The other tasks are asked about later.
    let tasks = &tasks[..tasks.len().min(CHILDREN_MAX)];
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let title = format!("Run {} in {} child agents at once", ids.join(", "), ids.len());
    let lines = tasks.iter().map(|task| format!("{} {}", task.id, task.text));
    let content = vec![ToolCallContent::Text(lines.collect::<Vec<_>>().join("\n"))];
    let outcome = ask_confirmation(
        &step.cx,
        ConfirmationRequest {
            source: SOURCE,
            title: &title,
            content,
            subject: PermissionSubject::Proposal,
            answers: OfferedAnswers::Session,
        },
        state,
    )
    .await;
    ParallelConsent {
        is_allowed: outcome.is_allowed(),
        // If the user cannot be asked now, later questions have the same outcome.
        is_final: !matches!(outcome, PermissionOutcome::AllowOnce | PermissionOutcome::Reject),
    }
}

/// The result of a child.
pub(super) struct ChildTaskReport {
    pub(super) task: TaskId,
    pub(super) result: StepTaskResult,
    /// The report for the model.
    pub(super) text: String,
}

type PendingReport<'a> = Pin<Box<dyn Future<Output = ChildTaskReport> + Send + 'a>>;

/// The running children of one batch of tasks.
pub(super) struct ParallelTasks<'a> {
    step: &'a WorkflowStep<'a>,
    running: FuturesUnordered<PendingReport<'a>>,
    calls: Vec<CallId>,
    tasks: Vec<TaskId>,
}

impl ParallelTasks<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the tasks that have a child.
    pub(super) fn task_ids(&self) -> Vec<TaskId> {
        self.tasks.clone()
    }

    /// Waits for the next child to end.
    pub(super) async fn next_report(&mut self) -> Option<ChildTaskReport> {
        self.running.next().await
    }

    /// Removes and returns the deliveries of the children's results.
    pub(super) fn claimed_deliveries(&self) -> Vec<DeliveryId> {
        self.calls.iter().flat_map(|call| self.step.cx.children.deliveries_for_call(*call)).collect()
    }
}

/// Starts a child for each task, with a call that shows its progress. A task without a child stays open.
pub(super) async fn start_children<'a>(
    step: &'a WorkflowStep<'a>,
    list: &TaskList,
    tasks: &[TaskItem],
    state: &SessionState,
) -> Result<ParallelTasks<'a>, Failure> {
    let mut parallel =
        ParallelTasks { step, running: FuturesUnordered::new(), calls: Vec::new(), tasks: Vec::new() };
    let tasks = &tasks[..tasks.len().min(CHILDREN_MAX)];
    let all_facts: Vec<TaskFacts> = tasks.iter().map(|task| task_facts(list, task)).collect();
    // Everything that can fail comes before the first child.
    let mut prompts = Vec::new();
    for (index, own) in all_facts.iter().enumerate() {
        let siblings =
            all_facts.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, facts)| facts.clone());
        let (current, siblings) = (vec![own.clone()], siblings.collect());
        let prompt = step.scope.render_side_prompt(AuxiliaryPrompt::Child, |facts| {
            facts.tasks.current = current;
            facts.tasks.beside = siblings;
        });
        prompts.push(prompt.await?);
    }
    for (task, prompt) in tasks.iter().zip(prompts) {
        let (call, info) = (step.synthetic_call_id(state), task_call_info(task));
        let update = SessionUpdate::Call {
            call,
            name: "task".to_owned(),
            info: info.clone(),
            arguments: Map::from_iter([("task".to_owned(), Value::from(task.id.as_str()))]),
            status: ToolCallStatus::InProgress,
            content: Vec::new(),
            streaming: OutputStreaming::Off,
        };
        step.cx.client.send_update(step.cx.session, update);
        let request = NewTaskRequest {
            prompt,
            agent: None,
            cwd: None,
            model: None,
            title: Some(info.title.clone()),
            worktree: false,
            notify_parent: false,
        };
        let parent_call = ParentCall { call, info, shown_text: None };
        let start_result = step.cx.children.start_task(request, parent_call, step.cx.cancel).await;
        let start_result = start_result.and_then(|child| {
            let turn = step.cx.children.running_turn(&child).ok_or("it ended immediately")?;
            Ok((child, turn))
        });
        match start_result {
            Ok((child, turn)) => {
                parallel.calls.push(call);
                parallel.tasks.push(task.id.clone());
                let report = wait_for_report(step, call, task.id.clone(), child, turn);
                parallel.running.push(Box::pin(report));
            }
            Err(reason) => {
                let content =
                    Some(vec![ToolCallContent::Text(format!("No child could be started: {reason}"))]);
                let failed = SessionUpdate::CallChanged { call, status: ToolCallStatus::Failed, content };
                step.cx.client.send_update(step.cx.session, failed);
            }
        }
    }
    Ok(parallel)
}

/// Shows the progress of a child until it has ended.
async fn wait_for_report(
    step: &WorkflowStep<'_>,
    call: CallId,
    task: TaskId,
    child: SessionId,
    turn: AwaitedTurn,
) -> ChildTaskReport {
    let cx = step.cx;
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
    let tool_cx = ToolCx {
        workspace: cx.workspace,
        editor: None,
        access: &ToolAccess::Nothing,
        call: Some(call),
        confinement: Confinement::Unconfined,
        cancel: cx.cancel,
        progress: &progress,
        undo_recorder: None,
    };
    let result = crow_children::wait_for_turn(cx.children, &child, turn, tool_cx).await;
    let text = outcome_text(&result);
    let task_result = parse_result(result.status, &text);
    let status = match &task_result {
        StepTaskResult::Done { .. } => ToolCallStatus::Completed,
        StepTaskResult::Failed { .. } => ToolCallStatus::Failed,
    };
    cx.client.send_update(
        cx.session,
        SessionUpdate::CallChanged { call, status, content: Some(result.for_client) },
    );
    ChildTaskReport { text: format!("{task}:\n{text}"), task, result: task_result }
}

fn outcome_text(result: &ToolResult) -> String {
    let texts = result.for_model.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Parses the result in a child's answer: the last result line counts, and a missing one is a failure.
fn parse_result(status: ToolCallStatus, text: &str) -> StepTaskResult {
    let status_word =
        text.lines().rev().find_map(|line| line.trim().trim_matches(['*', '`']).strip_prefix(RESULT));
    let status_word = status_word.map(|said| said.trim().trim_matches(['*', '`']).trim());
    let failed = |reason: &str| StepTaskResult::Failed { reason: reason.to_owned() };
    match (status, status_word) {
        (ToolCallStatus::Completed, Some("done")) => {
            StepTaskResult::Done { note: "done by a child agent".to_owned() }
        }
        (ToolCallStatus::Completed, Some(status_word)) => {
            failed(status_word.strip_prefix("failed").unwrap_or(status_word).trim_start_matches([':', ' ']))
        }
        (ToolCallStatus::Completed, None) => failed("the child agent did not report a result"),
        (ToolCallStatus::Failed | ToolCallStatus::Pending | ToolCallStatus::InProgress, _) => {
            failed(text.lines().next().unwrap_or("the child agent failed"))
        }
    }
}

fn task_call_info(task: &TaskItem) -> ToolCallInfo {
    ToolCallInfo {
        title: crow_children::single_line(&format!("{} {}", task.id, task.text)),
        kind: ToolKind::Other,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_result(status: ToolCallStatus, text: &str, expected: &str) {
        let shown = match parse_result(status, text) {
            StepTaskResult::Done { .. } => "done".to_owned(),
            StepTaskResult::Failed { reason } => reason,
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn last_result_line_of_a_child_counts() {
        check_result(ToolCallStatus::Completed, "I did it.\nRESULT: done\n\nIt changed 1 file", "done");
        check_result(ToolCallStatus::Completed, "**RESULT: done**", "done");
        check_result(
            ToolCallStatus::Completed,
            "RESULT: done\nno, wait\nRESULT: failed: tests are red",
            "tests are red",
        );
        check_result(ToolCallStatus::Completed, "I did it.", "the child agent did not report a result");
        check_result(ToolCallStatus::Failed, "Task x was cancelled.\nRESULT: done", "Task x was cancelled.");
    }
}
