//! `/speckit.implement`: the open tasks one after the other, each handed out by Crow, reported by the model and marked by
//! Crow. What is open stands in `tasks.md` and nowhere else, so a run goes on where the last one stopped, however it ended.

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionSubject};
use crow_core::{Failure, SpeckitPart, ToolCallContent, TurnEnd};
use crow_speckit::{
    AuxiliaryPrompt, ChangeWatch, Feature, TaskFacts, TaskId, TaskItem, TaskList, TickState, WorkflowCommand,
    checklist_facts,
};
use tokio::sync::mpsc;

use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::handle::SteeringInput;
use crate::run_turn::{SessionState, TurnCx};
use crate::speckit::asking;
use crate::speckit::beside;
use crate::speckit::record::run_blocking;
use crate::speckit::scope::StepTaskResult;
use crate::speckit::step::{BY, WorkflowStep, hidden_part, project_failure};
use crate::speckit::work::report_refusal;

/// What became of the tasks of one run.
#[derive(Debug, Default)]
pub(super) struct TaskRunProgress {
    /// Those that were done, with what was said of each.
    pub(super) done: Vec<(TaskId, String)>,
    /// Those that failed, with why.
    pub(super) failed: Vec<(TaskId, String)>,
    /// Nothing is open of what was asked for.
    pub(super) is_as_asked: bool,
}

/// One run.
struct TaskRun<'a, 'b> {
    step: &'a WorkflowStep<'b>,
    /// What the person asked for, or every open task.
    among: Option<Vec<TaskId>>,
    progress: TaskRunProgress,
    /// Whether tasks may go to child agents, once that was said for good.
    beside: Option<bool>,
    /// The model was told what the step stands for.
    is_opened: bool,
}

/// Asks whether to begin although review lists are open; gives how the turn ends if it ends with that.
pub(super) async fn confirm_open_checklists(
    cx: &TurnCx<'_>,
    feature: &Option<Feature>,
    talk: &SessionState,
) -> Result<Option<TurnEnd>, Failure> {
    let Some(feature) = feature.clone() else { return Ok(Some(TurnEnd::Done)) };
    let lists = run_blocking(move || checklist_facts(&feature)).await.map_err(project_failure)?;
    let n_open: usize = lists.iter().map(|list| list.total - list.checked).sum();
    if n_open == 0 {
        return Ok(None);
    }
    let mut table =
        "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n".to_owned();
    for list in &lists {
        let n_left = list.total - list.checked;
        let status = if n_left == 0 { "done" } else { "open" };
        table.push_str(&format!(
            "| {} | {} | {} | {n_left} | {status} |\n",
            list.name, list.total, list.checked
        ));
    }
    let title = format!("Implement although {n_open} checklist items are open");
    let answered = ask_confirmation(
        cx,
        ConfirmationRequest {
            by: BY,
            title: &title,
            content: vec![ToolCallContent::Text(table.clone())],
            subject: PermissionSubject::Call,
            answers: OfferedAnswers::Once,
        },
        talk,
    )
    .await;
    let why = match answered {
        PermissionOutcome::AllowOnce
        | PermissionOutcome::AllowForSession
        | PermissionOutcome::AllowInProject => return Ok(None),
        PermissionOutcome::Cancelled => return Ok(Some(TurnEnd::Cancelled)),
        PermissionOutcome::Nobody { why } => {
            format!(" and nobody could be asked ({why}). Tick what holds, or allow it with `--yes`.")
        }
        PermissionOutcome::Reject
        | PermissionOutcome::RejectForSession
        | PermissionOutcome::RejectAndTell => ". Tick what holds, then say it again.".to_owned(),
    };
    let command = WorkflowCommand::Implement;
    report_refusal(
        cx,
        &format!("\n{table}\n{command} did not begin: {n_open} checklist items are open{why}"),
    );
    Ok(Some(TurnEnd::Done))
}

/// Works through the open tasks; gives how the turn ends and what became of the tasks.
pub(super) async fn run_tasks(
    step: &WorkflowStep<'_>,
    talk: &mut SessionState,
    more_words: &mut mpsc::Receiver<SteeringInput>,
) -> Result<(TurnEnd, TaskRunProgress), Failure> {
    let among = step.read_task_list().await?.select_tasks(&step.text);
    let mut run =
        TaskRun { step, among, progress: TaskRunProgress::default(), beside: None, is_opened: false };
    let end = run.run_open_tasks(talk, more_words).await?;
    let left = step.read_task_list().await?;
    run.progress.is_as_asked = left.next_batch(run.among.as_deref()).is_empty();
    step.send_plan(&[]).await?;
    Ok((end, run.progress))
}

impl TaskRun<'_, '_> {
    async fn run_open_tasks(
        &mut self,
        talk: &mut SessionState,
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        while self.progress.failed.is_empty() && !self.step.has_stopped() {
            // Whatever anybody else did to the list meanwhile counts.
            let list = self.step.read_task_list().await?;
            let next: Vec<TaskItem> = list.next_batch(self.among.as_deref()).into_iter().cloned().collect();
            let end = match next.as_slice() {
                [] => break,
                [_, _, ..] if self.may_run_parallel(&next, talk).await => {
                    self.run_parallel(&list, &next, talk).await?
                }
                [first, ..] => self.run_task(&list, first, talk, more_words).await?,
            };
            if end != TurnEnd::Done {
                return Ok(end);
            }
        }
        Ok(TurnEnd::Done)
    }

    /// Has the model do one task.
    async fn run_task(
        &mut self,
        list: &TaskList,
        task: &TaskItem,
        talk: &mut SessionState,
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if step.cx.is_over() {
            return Ok(TurnEnd::Cancelled);
        }
        step.scope.desk.set_current_task(task.id.as_str());
        step.send_plan(std::slice::from_ref(&task.id)).await?;
        let current = vec![task_facts(list, task)];
        // A compaction takes away what the step stands for.
        let knows = self.is_opened && talk.transcript.entries().iter().any(asking::is_run_start);
        self.is_opened = true;
        let prompt = match knows {
            false => step.opening_part(current).await?,
            true => {
                let text = step
                    .render_side_prompt(AuxiliaryPrompt::Task, |facts| facts.tasks.current = current)
                    .await?;
                hidden_part(SpeckitPart::Task, text)
            }
        };
        let mut end = step.run_turn(talk, vec![prompt], more_words).await?;
        if end == TurnEnd::Done && step.scope.desk.lock_state().result.is_none() && !step.has_stopped() {
            let text = format!(
                "You ended without saying what became of {}. Finish it if it is not finished, then call speckit_task.",
                task.id
            );
            end = step.run_turn(talk, vec![hidden_part(SpeckitPart::Task, text)], more_words).await?;
        }
        self.untick_tasks(std::slice::from_ref(&task.id), talk).await?;
        let result = step.scope.desk.lock_state().result.take();
        let unsaid = || StepTaskResult::Failed { why: "the model did not say what became of it".to_owned() };
        match (result, end) {
            // What was reported counts, whatever came behind it.
            (Some(result), end) => {
                self.record_result(&task.id, result, talk).await;
                Ok(end)
            }
            (None, end) if end != TurnEnd::Done || step.has_stopped() => Ok(end),
            (None, _) => {
                self.record_result(&task.id, unsaid(), talk).await;
                Ok(TurnEnd::Done)
            }
        }
    }

    /// Takes back ticks that calls of the model set: nobody said that those tasks are done.
    async fn untick_tasks(&self, at_work: &[TaskId], talk: &SessionState) -> Result<(), Failure> {
        let by_calls =
            self.step.scope.with_watch(ChangeWatch::take_ticked_tasks).await.map_err(project_failure)?;
        let now = self.step.read_task_list().await?;
        for id in by_calls.iter().filter(|id| now.tasks.iter().any(|task| task.done && task.id == **id)) {
            if let Err(why) = self.step.mark_task(id, TickState::No, talk).await {
                tracing::warn!(%id, why, "a tick could not be taken back");
            } else if !at_work.contains(id) {
                let at_work = at_work.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ");
                self.step
                    .send_note(&format!("{id} was ticked while {at_work} was at work; it is open again."));
            }
        }
        Ok(())
    }

    /// Tells whether tasks may go to child agents.
    async fn may_run_parallel(&mut self, tasks: &[TaskItem], talk: &SessionState) -> bool {
        if let Some(is_given) = self.beside {
            return is_given;
        }
        let leave = beside::ask_consent(self.step, tasks, talk).await;
        self.beside = leave.lasts.then_some(leave.is_given);
        leave.is_given
    }

    /// Has child agents do several tasks at once; each is marked when it ends.
    async fn run_parallel(
        &mut self,
        list: &TaskList,
        tasks: &[TaskItem],
        talk: &mut SessionState,
    ) -> Result<TurnEnd, Failure> {
        let step = self.step;
        if !std::mem::replace(&mut self.is_opened, true) {
            step.append_parts(talk, vec![step.opening_part(Vec::new()).await?], &[]).await?;
        }
        step.scope.begin_call(step.cx.background_work()).await;
        let mut family = beside::start_children(step, list, tasks, talk).await?;
        if family.is_empty() {
            step.restore_files().await?;
            // From here on they are done one by one.
            self.beside = Some(false);
            return Ok(TurnEnd::Done);
        }
        // Whatever goes wrong from here on, no child is left alone.
        let begun = family.task_ids();
        let mut at_work = begun.clone();
        step.try_send_plan(&at_work).await;
        let mut told = Vec::new();
        while let Some(report) = family.next_report().await {
            told.push(report.text);
            at_work.retain(|task| *task != report.task);
            let is_done = matches!(report.result, StepTaskResult::Done { .. });
            if is_done || !step.cx.is_over() {
                self.record_result(&report.task, report.result, talk).await;
                step.try_send_plan(&at_work).await;
            }
        }
        let ended = step
            .scope
            .with_watch({
                let background = step.cx.background_work();
                move |watch| drop(watch.end_call(background))
            })
            .await;
        let put_back = ended.map_err(project_failure).and(step.restore_files().await);
        self.untick_tasks(&begun, talk).await?;
        let text = format!(
            "Child agents did these tasks meanwhile, in the same folder. Take what they changed as it is now.\n\n{}",
            told.join("\n")
        );
        step.append_parts(talk, vec![hidden_part(SpeckitPart::Children, text)], &family.claimed_deliveries())
            .await?;
        put_back?;
        Ok(if step.cx.is_over() { TurnEnd::Cancelled } else { TurnEnd::Done })
    }

    /// Marks a task that is done, and remembers what became of it.
    async fn record_result(&mut self, id: &TaskId, result: StepTaskResult, talk: &SessionState) {
        let result = match result {
            StepTaskResult::Done { note } => {
                let marked = self.step.mark_task(id, TickState::Yes, talk).await;
                marked.map(|()| note).map_err(|why| format!("it could not be marked: {why}"))
            }
            StepTaskResult::Failed { why } => Err(why),
        };
        match result {
            Ok(note) => {
                self.step.send_note(&format!("✓ {id}{}", prefix_colon(&note)));
                self.progress.done.push((id.clone(), note));
            }
            Err(why) => {
                self.step.send_note(&format!("✗ {id}{}", prefix_colon(&why)));
                self.progress.failed.push((id.clone(), why));
            }
        }
    }
}

fn prefix_colon(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(": {note}") }
}

pub(super) fn task_facts(list: &TaskList, task: &TaskItem) -> TaskFacts {
    TaskFacts {
        id: task.id.to_string(),
        text: task.text.clone(),
        phase: list.phase_for(task).map(ToString::to_string).unwrap_or_default(),
        stories: task.stories.iter().map(|story| format!("US{story}")).collect(),
    }
}
