//! `/speckit.implement`: runs the open tasks in order. Crow assigns and ticks them, the model reports on them. Open
//! tasks are stored in `tasks.md` only, so a run resumes where the last one stopped, however it ended.

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionSubject};
use crow_core::{Failure, ReportOutcome, SpeckitPart, ToolCallContent, TurnEnd};
use crow_speckit::{
    AuxiliaryPrompt, ChangeWatch, Feature, FeatureLock, TaskId, TaskItem, TaskList, TickState,
    WorkflowCommand, checklist_facts, task_facts, unfilled_constitution_note,
};
use tokio::sync::mpsc;

use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::handle::SteeringInput;
use crate::speckit::notices::report_refusal;
use crate::speckit::parallel_tasks;
use crate::speckit::project_files::{project_failure, run_blocking};
use crate::speckit::questions;
use crate::speckit::report::{self, TaskRunProgress};
use crate::speckit::session_step::SessionStep;
use crate::speckit::step::{SOURCE, WorkflowStep, hidden_part};
use crate::speckit::step_policy::StepTaskResult;
use crate::speckit::step_port::{StepPort as _, StepReport};
use crate::speckit::workflow_exit::WorkflowExit;
use crate::turn_context::{SessionState, TurnCx};

/// A run of tasks.
struct TaskRun<'a, 'b> {
    step: &'a WorkflowStep<'b>,
    /// The requested tasks; `None` for all open tasks.
    selected: Option<Vec<TaskId>>,
    progress: TaskRunProgress,
    /// Whether tasks may run in child agents, once that is decided for the run.
    parallel_consent: Option<bool>,
    /// True if the model has the prompt of the step.
    is_step_announced: bool,
}

/// Asks for confirmation if checklists have open items.
pub(super) async fn confirm_open_checklists(
    cx: &TurnCx<'_>,
    feature: &Option<Feature>,
    state: &SessionState,
) -> Result<(), WorkflowExit> {
    let Some(feature) = feature.clone() else { return Err(WorkflowExit::Ended(TurnEnd::Completed)) };
    let lists = run_blocking(move || checklist_facts(&feature)).await.map_err(project_failure)?;
    let n_open: usize = lists.iter().map(|list| list.total - list.checked).sum();
    if n_open == 0 {
        return Ok(());
    }
    let mut table =
        "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n".to_owned();
    for list in &lists {
        let n_unchecked = list.total - list.checked;
        let status = if n_unchecked == 0 { "done" } else { "open" };
        table.push_str(&format!(
            "| {} | {} | {} | {n_unchecked} | {status} |\n",
            list.name, list.total, list.checked
        ));
    }
    let title = format!("Implement although {n_open} checklist items are open");
    let outcome = ask_confirmation(
        cx,
        ConfirmationRequest {
            source: SOURCE,
            title: &title,
            content: vec![ToolCallContent::Text(table.clone())],
            subject: PermissionSubject::Call,
            answers: OfferedAnswers::Once,
        },
        state,
    )
    .await;
    let reason = match outcome {
        PermissionOutcome::AllowOnce
        | PermissionOutcome::AllowForSession
        | PermissionOutcome::AllowInProject => return Ok(()),
        PermissionOutcome::Cancelled => return Err(WorkflowExit::Ended(TurnEnd::Cancelled)),
        PermissionOutcome::Unavailable { reason } => {
            format!(
                ", and the user could not be asked ({reason}). Tick what is done, or allow it with `--yes`."
            )
        }
        PermissionOutcome::Reject
        | PermissionOutcome::RejectForSession
        | PermissionOutcome::RejectWithFeedback => ". Tick what is done, then run it again.".to_owned(),
    };
    let command = WorkflowCommand::Implement;
    report_refusal(
        cx,
        &format!("\n{table}\n{command} did not start: {n_open} checklist items are open{reason}"),
    );
    Err(WorkflowExit::Ended(TurnEnd::Completed))
}

/// Runs the task list, and reports the result.
pub(super) async fn run_task_list(
    step: &WorkflowStep<'_>,
    state: &mut SessionState,
    steering: &mut mpsc::Receiver<SteeringInput>,
) -> Result<TurnEnd, WorkflowExit> {
    let (owned_project, feature) = (step.scope.context.project.clone(), step.scope.feature.clone());
    // Two sessions would do the same task.
    let _lock = run_blocking(move || {
        feature.map(|feature| FeatureLock::acquire(&owned_project, &feature)).transpose()
    })
    .await
    .map_err(WorkflowExit::Refused)?;
    let (mut end, progress) = run_tasks(step, state, steering).await?;
    let list = step.scope.read_task_list().await?;
    let is_complete = list.done_count() == list.tasks.len();
    if end == TurnEnd::Completed
        && is_complete
        && let Some(hooks_end) = (SessionStep { step, state, steering }).run_after_hooks().await?
    {
        end = hooks_end;
    }
    let outcome = if progress.is_complete { ReportOutcome::Done } else { ReportOutcome::Incomplete };
    let project = step.scope.context.project.clone();
    let unfilled =
        run_blocking(move || unfilled_constitution_note(&project)).await.map_err(project_failure)?;
    let text = report::render_run_summary(&progress, &list, &end, unfilled.as_deref());
    // An interrupted run continues first.
    let next = if is_complete { step.scope.definition.next } else { &[step.scope.definition.command] };
    step.send_report(StepReport { text, next: report::step_handoffs(next), outcome }, state).await?;
    Ok(end)
}

/// Runs the open tasks; returns how the turn ends and the results.
async fn run_tasks(
    step: &WorkflowStep<'_>,
    state: &mut SessionState,
    steering: &mut mpsc::Receiver<SteeringInput>,
) -> Result<(TurnEnd, TaskRunProgress), Failure> {
    let selected = step.scope.read_task_list().await?.select_tasks(&step.scope.text);
    let mut run = TaskRun {
        step,
        selected,
        progress: TaskRunProgress::default(),
        parallel_consent: None,
        is_step_announced: false,
    };
    let end = run.run_open_tasks(state, steering).await?;
    let remaining = step.scope.read_task_list().await?;
    run.progress.is_complete = remaining.next_batch(run.selected.as_deref()).is_empty();
    step.send_plan(&[]).await?;
    Ok((end, run.progress))
}

impl TaskRun<'_, '_> {
    async fn run_open_tasks(
        &mut self,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        while self.progress.failed.is_empty() && !self.step.has_stopped() {
            // The list may have been changed by others meanwhile.
            let list = self.step.scope.read_task_list().await?;
            let next: Vec<TaskItem> =
                list.next_batch(self.selected.as_deref()).into_iter().cloned().collect();
            let end = match next.as_slice() {
                [] => break,
                [_, _, ..] if self.may_run_parallel(&next, state).await => {
                    self.run_parallel(&list, &next, state).await?
                }
                [first, ..] => self.run_task(&list, first, state, steering).await?,
            };
            if end != TurnEnd::Completed {
                return Ok(end);
            }
        }
        Ok(TurnEnd::Completed)
    }

    /// Lets the model do one task.
    async fn run_task(
        &mut self,
        list: &TaskList,
        task: &TaskItem,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if step.cx.is_over() {
            return Ok(TurnEnd::Cancelled);
        }
        step.policy.step_state.set_current_task(task.id.as_str());
        step.send_plan(std::slice::from_ref(&task.id)).await?;
        let current = vec![task_facts(list, task)];
        // A compaction removes the prompt of the step.
        let knows_step =
            self.is_step_announced && state.transcript.entries().iter().any(questions::is_run_start);
        self.is_step_announced = true;
        let prompt = match knows_step {
            false => step.opening_part(current).await?,
            true => {
                let text = step
                    .scope
                    .render_side_prompt(AuxiliaryPrompt::Task, |facts| facts.tasks.current = current)
                    .await?;
                hidden_part(SpeckitPart::Task, text)
            }
        };
        let mut end = step.run_turn(state, vec![prompt], steering).await?;
        if end == TurnEnd::Completed
            && step.policy.step_state.lock_state().result.is_none()
            && !step.has_stopped()
        {
            let text = format!(
                "You ended without saying what became of {}. Finish it if it is not finished, then call speckit_task.",
                task.id
            );
            end = step.run_turn(state, vec![hidden_part(SpeckitPart::Task, text)], steering).await?;
        }
        self.untick_tasks(std::slice::from_ref(&task.id), state).await?;
        let result = step.policy.step_state.lock_state().result.take();
        let no_result = || StepTaskResult::Failed { reason: "the model did not report a result".to_owned() };
        match (result, end) {
            // A reported result counts, even if the turn ended badly.
            (Some(result), end) => {
                self.record_result(&task.id, result, state).await;
                Ok(end)
            }
            (None, end) if end != TurnEnd::Completed || step.has_stopped() => Ok(end),
            (None, _) => {
                self.record_result(&task.id, no_result(), state).await;
                Ok(TurnEnd::Completed)
            }
        }
    }

    /// Removes ticks that calls of the model set: only a report completes a task.
    async fn untick_tasks(&self, running: &[TaskId], state: &SessionState) -> Result<(), Failure> {
        let ticked =
            self.step.policy.with_watch(ChangeWatch::take_ticked_tasks).await.map_err(project_failure)?;
        let current = self.step.scope.read_task_list().await?;
        for id in ticked.iter().filter(|id| current.tasks.iter().any(|task| task.done && task.id == **id)) {
            if let Err(reason) = self.step.mark_task(id, TickState::Unticked, state).await {
                tracing::warn!(%id, reason, "a tick could not be removed");
            } else if !running.contains(id) {
                let running = running.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ");
                self.step
                    .send_note(&format!("{id} was ticked while {running} was running; it is open again."));
            }
        }
        Ok(())
    }

    /// Whether tasks may run in child agents.
    async fn may_run_parallel(&mut self, tasks: &[TaskItem], state: &SessionState) -> bool {
        if let Some(is_given) = self.parallel_consent {
            return is_given;
        }
        let consent = parallel_tasks::ask_consent(self.step, tasks, state).await;
        self.parallel_consent = consent.is_final.then_some(consent.is_allowed);
        consent.is_allowed
    }

    /// Runs several tasks in child agents; each one is ticked when it ends.
    async fn run_parallel(
        &mut self,
        list: &TaskList,
        tasks: &[TaskItem],
        state: &mut SessionState,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if !std::mem::replace(&mut self.is_step_announced, true) {
            step.append_parts(state, vec![step.opening_part(Vec::new()).await?], &[]).await?;
        }
        step.policy.begin_watching(step.cx.background_work()).await;
        let mut children = parallel_tasks::start_children(step, list, tasks, state).await?;
        if children.is_empty() {
            step.restore_files().await?;
            // From here on tasks run one after the other.
            self.parallel_consent = Some(false);
            return Ok(TurnEnd::Completed);
        }
        // If anything fails from here on, every child is still waited for.
        let started = children.task_ids();
        let mut running = started.clone();
        step.try_send_plan(&running).await;
        let mut reports = Vec::new();
        while let Some(report) = children.next_report().await {
            reports.push(report.text);
            running.retain(|task| *task != report.task);
            let is_done = matches!(report.result, StepTaskResult::Done { .. });
            if is_done || !step.cx.is_over() {
                self.record_result(&report.task, report.result, state).await;
                step.try_send_plan(&running).await;
            }
        }
        let watch_result = step
            .policy
            .with_watch({
                let background = step.cx.background_work();
                move |watch| drop(watch.end_call(background))
            })
            .await;
        let restore_result = watch_result.map_err(project_failure).and(step.restore_files().await);
        self.untick_tasks(&started, state).await?;
        let text = format!(
            "Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.\n\n{}",
            reports.join("\n")
        );
        step.append_parts(
            state,
            vec![hidden_part(SpeckitPart::Children, text)],
            &children.claimed_deliveries(),
        )
        .await?;
        restore_result?;
        Ok(if step.cx.is_over() { TurnEnd::Cancelled } else { TurnEnd::Completed })
    }

    /// Ticks a completed task and stores its result.
    async fn record_result(&mut self, id: &TaskId, result: StepTaskResult, state: &SessionState) {
        let result = match result {
            StepTaskResult::Done { note } => {
                let mark_result = self.step.mark_task(id, TickState::Ticked, state).await;
                mark_result.map(|()| note).map_err(|reason| format!("it could not be ticked: {reason}"))
            }
            StepTaskResult::Failed { reason } => Err(reason),
        };
        match result {
            Ok(note) => {
                self.step.send_note(&format!("✓ {id}{}", prefix_colon(&note)));
                self.progress.done.push((id.clone(), note));
            }
            Err(reason) => {
                self.step.send_note(&format!("✗ {id}{}", prefix_colon(&reason)));
                self.progress.failed.push((id.clone(), reason));
            }
        }
    }
}

fn prefix_colon(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(": {note}") }
}
