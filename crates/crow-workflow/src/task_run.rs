//! Runs the open tasks of a list in order. Crow assigns and ticks them, the model reports on them. Open tasks are stored
//! in `tasks.md` only, so a run resumes where the last one stopped, however it ended.

use crow_core::{Failure, ReportOutcome, SpeckitPart, TurnEnd};
use crow_speckit::{
    AuxiliaryPrompt, ChangeWatch, FeatureLock, TaskId, TaskItem, TaskList, TickState, task_facts,
    unfilled_constitution_note,
};

use crate::blocking::{project_failure, run_blocking};
use crate::exit::WorkflowExit;
use crate::notices::send_step_note;
use crate::parallel;
use crate::parts::{hidden_part, is_run_start};
use crate::port::WorkflowPort;
use crate::report::{self, StepSummary, TaskRunProgress};
use crate::rounds;
use crate::step::WorkflowStep;
use crate::step_state::StepTaskResult;

/// A run of tasks.
struct TaskRun<'a> {
    step: &'a WorkflowStep,
    /// The requested tasks; `None` for all open tasks.
    selected: Option<Vec<TaskId>>,
    progress: TaskRunProgress,
    /// Whether tasks may run in child agents, once that is decided for the run.
    parallel_consent: Option<bool>,
    /// True if the model has the prompt of the step.
    is_step_announced: bool,
}

/// Runs the task list, and reports the result.
pub(crate) async fn run_task_list(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
) -> Result<TurnEnd, WorkflowExit> {
    let (owned_project, feature) = (step.scope.context.project.clone(), step.scope.feature.clone());
    // Two sessions would do the same task.
    let _lock = run_blocking(move || {
        feature.map(|feature| FeatureLock::acquire(&owned_project, &feature)).transpose()
    })
    .await
    .map_err(WorkflowExit::Refused)?;
    let (mut end, progress) = run_tasks(step, port).await?;
    let list = step.scope.read_task_list().await?;
    let is_complete = list.is_done();
    if end == TurnEnd::Completed
        && is_complete
        && let Some(hooks_end) = rounds::run_after_hooks(step, port).await?
    {
        end = hooks_end;
    }
    let outcome = if progress.is_complete { ReportOutcome::Done } else { ReportOutcome::Incomplete };
    let project = step.scope.context.project.clone();
    let unfilled =
        run_blocking(move || unfilled_constitution_note(&project)).await.map_err(project_failure)?;
    let text = report::render_run_results(
        step.scope.definition.command,
        &progress,
        &list,
        &end,
        unfilled.as_deref(),
    );
    // An interrupted run continues first.
    let definition = step.scope.definition;
    let next = if is_complete { definition.next } else { std::slice::from_ref(&definition.command) };
    step.send_report(port, StepSummary { text, next, outcome }).await?;
    Ok(end)
}

/// Runs the open tasks; returns how the turn ends and the results.
async fn run_tasks(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
) -> Result<(TurnEnd, TaskRunProgress), Failure> {
    let selected = step.scope.read_task_list().await?.select_tasks(&step.scope.text);
    let mut run = TaskRun {
        step,
        selected,
        progress: TaskRunProgress::default(),
        parallel_consent: None,
        is_step_announced: false,
    };
    let end = run.run_open_tasks(port).await?;
    let remaining = step.scope.read_task_list().await?;
    run.progress.is_complete = remaining.next_batch(run.selected.as_deref()).is_empty();
    step.send_plan(port, &[]).await?;
    Ok((end, run.progress))
}

impl TaskRun<'_> {
    async fn run_open_tasks(&mut self, port: &mut impl WorkflowPort) -> Result<TurnEnd, Failure> {
        while self.progress.failed.is_empty() && !self.step.has_stopped() {
            // The list may have been changed by others meanwhile.
            let list = self.step.scope.read_task_list().await?;
            let next: Vec<TaskItem> =
                list.next_batch(self.selected.as_deref()).into_iter().cloned().collect();
            let end = match next.as_slice() {
                [] => break,
                [_, _, ..] if self.may_run_parallel(&next, port).await => {
                    self.run_parallel(&list, &next, port).await?
                }
                [first, ..] => self.run_task(&list, first, port).await?,
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
        port: &mut impl WorkflowPort,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if port.is_over() {
            return Ok(TurnEnd::Cancelled);
        }
        step.policy.step_state.set_current_task(task.id.as_str());
        step.send_plan(port, std::slice::from_ref(&task.id)).await?;
        let current = vec![task_facts(list, task)];
        // A compaction removes the prompt of the step.
        let knows_step = self.is_step_announced && port.transcript().entries().iter().any(is_run_start);
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
        let mut end = step.run_turn(port, Some(prompt)).await?;
        if end == TurnEnd::Completed
            && step.policy.step_state.lock_state().result.is_none()
            && !step.has_stopped()
        {
            let text = format!(
                "You ended without saying what became of {}. Finish it if it is not finished, then call speckit_task.",
                task.id
            );
            end = step.run_turn(port, Some(hidden_part(SpeckitPart::Task, text))).await?;
        }
        self.untick_tasks(std::slice::from_ref(&task.id), port).await?;
        let result = step.policy.step_state.lock_state().result.take();
        let no_result = || StepTaskResult::Failed { reason: "the model did not report a result".to_owned() };
        match (result, end) {
            // A reported result counts, even if the turn ended badly.
            (Some(result), end) => {
                self.record_result(&task.id, result, port).await;
                Ok(end)
            }
            (None, end) if end != TurnEnd::Completed || step.has_stopped() => Ok(end),
            (None, _) => {
                self.record_result(&task.id, no_result(), port).await;
                Ok(TurnEnd::Completed)
            }
        }
    }

    /// Removes ticks that calls of the model set: only a report completes a task.
    async fn untick_tasks(&self, running: &[TaskId], port: &mut impl WorkflowPort) -> Result<(), Failure> {
        let ticked =
            self.step.policy.with_watch(ChangeWatch::take_ticked_tasks).await.map_err(project_failure)?;
        let current = self.step.scope.read_task_list().await?;
        for id in ticked.iter().filter(|id| current.tasks.iter().any(|task| task.done && task.id == **id)) {
            if let Err(reason) = self.step.mark_task(port, id, TickState::Unticked).await {
                tracing::warn!(%id, reason, "a tick could not be removed");
            } else if !running.contains(id) {
                let running = running.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ");
                let note = format!("{id} was ticked while {running} was running; it is open again.");
                send_step_note(port, &note);
            }
        }
        Ok(())
    }

    /// Whether tasks may run in child agents.
    async fn may_run_parallel(&mut self, tasks: &[TaskItem], port: &mut impl WorkflowPort) -> bool {
        if let Some(is_given) = self.parallel_consent {
            return is_given;
        }
        let consent = parallel::ask_consent(self.step, port, tasks).await;
        self.parallel_consent = consent.is_final.then_some(consent.is_allowed);
        consent.is_allowed
    }

    /// Runs several tasks in child agents; each one is ticked when it ends.
    async fn run_parallel(
        &mut self,
        list: &TaskList,
        tasks: &[TaskItem],
        port: &mut impl WorkflowPort,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if !std::mem::replace(&mut self.is_step_announced, true) {
            port.append_part(step.opening_part(Vec::new()).await?).await?;
        }
        step.policy.begin_watching(port.background_work()).await;
        let started = parallel::start_children(step, port, list, tasks).await?;
        if started.is_empty() {
            step.restore_files(port).await?;
            // From here on tasks run one after the other.
            self.parallel_consent = Some(false);
            return Ok(TurnEnd::Completed);
        }
        // If anything fails from here on, every child is still waited for.
        let mut running = started.clone();
        step.try_send_plan(port, &running).await;
        let mut reports = Vec::new();
        while let Some(report) = port.next_child_report().await {
            reports.push(report.text);
            running.retain(|task| *task != report.task);
            let is_done = matches!(report.result, StepTaskResult::Done { .. });
            if is_done || !port.is_over() {
                self.record_result(&report.task, report.result, port).await;
                step.try_send_plan(port, &running).await;
            }
        }
        let background = port.background_work();
        let watch_result = step.policy.with_watch(move |watch| drop(watch.end_call(background))).await;
        let restore_result = watch_result.map_err(project_failure).and(step.restore_files(port).await);
        self.untick_tasks(&started, port).await?;
        let text = format!(
            "Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.\n\n{}",
            reports.join("\n")
        );
        port.append_child_report(hidden_part(SpeckitPart::Children, text)).await?;
        restore_result?;
        Ok(if port.is_over() { TurnEnd::Cancelled } else { TurnEnd::Completed })
    }

    /// Ticks a completed task and stores its result.
    async fn record_result(&mut self, id: &TaskId, result: StepTaskResult, port: &mut impl WorkflowPort) {
        let result = match result {
            StepTaskResult::Done { note } => {
                let mark_result = self.step.mark_task(port, id, TickState::Ticked).await;
                mark_result.map(|()| note).map_err(|reason| format!("it could not be ticked: {reason}"))
            }
            StepTaskResult::Failed { reason } => Err(reason),
        };
        match result {
            Ok(note) => {
                send_step_note(port, &format!("✓ {id}{}", prefix_colon(&note)));
                self.progress.done.push((id.clone(), note));
            }
            Err(reason) => {
                send_step_note(port, &format!("✗ {id}{}", prefix_colon(&reason)));
                self.progress.failed.push((id.clone(), reason));
            }
        }
    }
}

fn prefix_colon(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(": {note}") }
}
