//! Tasks that may be done at the same time, given to child agents where the person allows it. The children work in the
//! same folder, on files that the task list keeps apart.

use std::pin::Pin;

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionSubject};
use crow_core::{
    CallId, Confinement, ContentPart, Failure, OutputStreaming, SessionId, SessionUpdate, ToolAccess,
    ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind, ToolResult,
};
use crow_speckit::{AuxiliaryPrompt, TaskFacts, TaskId, TaskItem, TaskList};
use crow_store::DeliveryId;
use crow_tools::{ToolCx, ToolProgress};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};

use crate::children::{AwaitedTurn, NewTaskRequest, NotifyParent, ParentCall};
use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::kit::ParallelMode;
use crate::run_turn::SessionState;
use crate::speckit::implement;
use crate::speckit::scope::StepTaskResult;
use crate::speckit::step::{BY, WorkflowStep};
use crate::tasks;

/// Children that one step of the list starts at once; the limits of the tree count as well.
const CHILDREN_MAX: usize = 8;

/// What the last line of a child's answer begins with.
const RESULT: &str = "RESULT:";

/// What the person says to tasks being done side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParallelConsent {
    /// Whether these may be.
    pub(super) is_given: bool,
    /// Whether that is to be asked again in this run.
    pub(super) lasts: bool,
}

/// Asks the person, unless the configuration says so already.
pub(super) async fn ask_consent(
    step: &WorkflowStep<'_>,
    asked: &[TaskItem],
    talk: &SessionState,
) -> ParallelConsent {
    match step.ground.settings.parallel {
        ParallelMode::Never => return ParallelConsent { is_given: false, lasts: true },
        ParallelMode::Always => return ParallelConsent { is_given: true, lasts: true },
        ParallelMode::Ask => {}
    }
    // The others are asked about when it is their turn.
    let asked = &asked[..asked.len().min(CHILDREN_MAX)];
    let ids: Vec<&str> = asked.iter().map(|task| task.id.as_str()).collect();
    let title = format!("Give {} to {} child agents at once", ids.join(", "), ids.len());
    let lines = asked.iter().map(|task| format!("{} {}", task.id, task.text));
    let content = vec![ToolCallContent::Text(lines.collect::<Vec<_>>().join("\n"))];
    let answered = ask_confirmation(
        &step.cx,
        ConfirmationRequest {
            by: BY,
            title: &title,
            content,
            subject: PermissionSubject::Offer,
            answers: OfferedAnswers::Session,
        },
        talk,
    )
    .await;
    ParallelConsent {
        is_given: answered.is_allowed(),
        // Whoever cannot be asked now cannot be asked later.
        lasts: !matches!(answered, PermissionOutcome::AllowOnce | PermissionOutcome::Reject),
    }
}

/// What a child came to.
pub(super) struct ChildTaskReport {
    /// Which of the tasks.
    pub(super) task: TaskId,
    pub(super) result: StepTaskResult,
    /// What the model is told of it.
    pub(super) text: String,
}

type PendingReport<'a> = Pin<Box<dyn Future<Output = ChildTaskReport> + Send + 'a>>;

/// The children of one step of the list.
pub(super) struct ParallelTasks<'a> {
    step: &'a WorkflowStep<'a>,
    at_work: FuturesUnordered<PendingReport<'a>>,
    calls: Vec<CallId>,
    tasks: Vec<TaskId>,
}

impl ParallelTasks<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The tasks that got one.
    pub(super) fn task_ids(&self) -> Vec<TaskId> {
        self.tasks.clone()
    }

    /// Waits for the next one to end.
    pub(super) async fn next_report(&mut self) -> Option<ChildTaskReport> {
        self.at_work.next().await
    }

    /// What the mailbox has of what they came to.
    pub(super) fn claimed_deliveries(&self) -> Vec<DeliveryId> {
        self.calls.iter().flat_map(|call| self.step.cx.children.deliveries_for_call(*call)).collect()
    }
}

/// Starts a child for each task, each in a call of its own that shows what it does. A task that gets none stays open.
pub(super) async fn start_children<'a>(
    step: &'a WorkflowStep<'a>,
    list: &TaskList,
    asked: &[TaskItem],
    talk: &SessionState,
) -> Result<ParallelTasks<'a>, Failure> {
    let mut family =
        ParallelTasks { step, at_work: FuturesUnordered::new(), calls: Vec::new(), tasks: Vec::new() };
    let asked = &asked[..asked.len().min(CHILDREN_MAX)];
    let all: Vec<TaskFacts> = asked.iter().map(|task| implement::task_facts(list, task)).collect();
    // Whatever can fail comes before the first of them is there.
    let mut prompts = Vec::new();
    for (at, own) in all.iter().enumerate() {
        let beside = all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, facts)| facts.clone());
        let (current, beside) = (vec![own.clone()], beside.collect());
        let prompt = step.render_side_prompt(AuxiliaryPrompt::Child, |facts| {
            facts.tasks.current = current;
            facts.tasks.beside = beside;
        });
        prompts.push(prompt.await?);
    }
    for (task, prompt) in asked.iter().zip(prompts) {
        let (call, facets) = (step.synthetic_call_id(talk), task_call_info(task));
        let announced = SessionUpdate::Call {
            call,
            name: "task".to_owned(),
            facets: facets.clone(),
            arguments: Map::from_iter([("task".to_owned(), Value::from(task.id.as_str()))]),
            status: ToolCallStatus::Running,
            content: Vec::new(),
            prints: OutputStreaming::Nothing,
        };
        step.cx.client.send_update(step.cx.session, announced);
        let new = NewTaskRequest {
            prompt,
            agent: None,
            cwd: None,
            model: None,
            title: Some(facets.title.clone()),
            worktree: false,
            wake: NotifyParent::No,
        };
        let spot = ParentCall { call, facets, shows: None };
        let begun = step.cx.children.start_task(new, spot, step.cx.cut).await;
        let begun = begun.and_then(|child| {
            let awaited = step.cx.children.running_turn(&child).ok_or("it ended at once")?;
            Ok((child, awaited))
        });
        match begun {
            Ok((child, awaited)) => {
                family.calls.push(call);
                family.tasks.push(task.id.clone());
                let report = wait_for_report(step, (call, task.id.clone()), (child, awaited));
                family.at_work.push(Box::pin(report));
            }
            Err(why) => {
                let content = Some(vec![ToolCallContent::Text(format!("No child could be started: {why}"))]);
                let failed = SessionUpdate::CallChanged { call, status: ToolCallStatus::Failed, content };
                step.cx.client.send_update(step.cx.session, failed);
            }
        }
    }
    Ok(family)
}

/// Shows a child until it has ended.
async fn wait_for_report(
    step: &WorkflowStep<'_>,
    (call, task): (CallId, TaskId),
    (child, awaited): (SessionId, AwaitedTurn),
) -> ChildTaskReport {
    let cx = step.cx;
    let progress = |progress: ToolProgress| {
        if let ToolProgress::Shows(content) = progress {
            let shown =
                SessionUpdate::CallChanged { call, status: ToolCallStatus::Running, content: Some(content) };
            cx.client.send_update(cx.session, shown);
        }
    };
    let tool_cx = ToolCx {
        workspace: cx.workspace,
        editor: None,
        touch: &ToolAccess::Nothing,
        call: Some(call),
        confinement: Confinement::Free,
        cut: cx.cut,
        progress: &progress,
        keeper: None,
    };
    let outcome = tasks::wait_for_turn(cx.children, &child, awaited, tool_cx).await;
    let text = outcome_text(&outcome);
    let result = parse_result(outcome.status, &text);
    let status = match &result {
        StepTaskResult::Done { .. } => ToolCallStatus::Done,
        StepTaskResult::Failed { .. } => ToolCallStatus::Failed,
    };
    cx.client.send_update(
        cx.session,
        SessionUpdate::CallChanged { call, status, content: Some(outcome.for_client) },
    );
    ChildTaskReport { text: format!("{task}:\n{text}"), task, result }
}

fn outcome_text(outcome: &ToolResult) -> String {
    let texts = outcome.for_model.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reads what a child says it came to: its last word on that counts, and no word is none of success.
fn parse_result(status: ToolCallStatus, text: &str) -> StepTaskResult {
    let said = text.lines().rev().find_map(|line| line.trim().trim_matches(['*', '`']).strip_prefix(RESULT));
    let said = said.map(|said| said.trim().trim_matches(['*', '`']).trim());
    let failed = |why: &str| StepTaskResult::Failed { why: why.to_owned() };
    match (status, said) {
        (ToolCallStatus::Done, Some("done")) => {
            StepTaskResult::Done { note: "done by a child agent".to_owned() }
        }
        (ToolCallStatus::Done, Some(said)) => {
            failed(said.strip_prefix("failed").unwrap_or(said).trim_start_matches([':', ' ']))
        }
        (ToolCallStatus::Done, None) => failed("the child agent did not say what became of it"),
        (ToolCallStatus::Failed | ToolCallStatus::Pending | ToolCallStatus::Running, _) => {
            failed(text.lines().next().unwrap_or("the child agent failed"))
        }
    }
}

fn task_call_info(task: &TaskItem) -> ToolCallInfo {
    ToolCallInfo {
        title: crate::children::single_line(&format!("{} {}", task.id, task.text)),
        kind: ToolKind::Other,
        locations: Vec::new(),
        touch: ToolAccess::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_result(status: ToolCallStatus, text: &str, expected: &str) {
        let shown = match parse_result(status, text) {
            StepTaskResult::Done { .. } => "done".to_owned(),
            StepTaskResult::Failed { why } => why,
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn the_last_word_of_a_child_counts() {
        check_result(ToolCallStatus::Done, "I did it.\nRESULT: done\n\nIt changed 1 file", "done");
        check_result(ToolCallStatus::Done, "**RESULT: done**", "done");
        check_result(
            ToolCallStatus::Done,
            "RESULT: done\nno, wait\nRESULT: failed: tests are red",
            "tests are red",
        );
        check_result(ToolCallStatus::Done, "I did it.", "the child agent did not say what became of it");
        check_result(ToolCallStatus::Failed, "Task x was cancelled.\nRESULT: done", "Task x was cancelled.");
    }
}
