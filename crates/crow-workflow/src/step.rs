//! A running workflow step: its turns, its messages to the user, and the files it writes and restores.

use crow_core::{ContentPart, Failure, PlanEntry, PlanPriority, PlanStatus, SpeckitPart, TurnEnd};
use crow_speckit::{
    ChangeWatch, ProtectedChange, ProtectedChangeKind, SET_ASIDE_DIR, TaskFacts, TaskId, TaskList,
    TaskPlanPriority, TaskPlanStatus, TickState, build_plan_view, set_task_ticked,
};
use serde_json::json;

use crate::blocking::{project_failure, run_blocking};
use crate::issues::IssueTarget;
use crate::notices::send_step_note;
use crate::parts::hidden_part;
use crate::policy::StepPolicy;
use crate::port::{StepReport, WorkflowPort};
use crate::project_files;
use crate::prompt::StepPrompt;
use crate::report::StepSummary;
use crate::scope::StepScope;

/// A running step.
pub(crate) struct WorkflowStep {
    pub(crate) scope: StepScope,
    pub(crate) policy: StepPolicy,
    /// The source of its prompt.
    pub(crate) prompt: StepPrompt,
}

impl WorkflowStep {
    /// Lets the model answer a prompt within the limits of the step; files that it may not change are restored at the
    /// end. Without a prompt, the last one is answered.
    pub(crate) async fn run_turn(
        &self,
        port: &mut impl WorkflowPort,
        prompt: Option<ContentPart>,
    ) -> Result<TurnEnd, Failure> {
        let turn_end = port.run_turn(prompt, Some(&self.policy)).await;
        if turn_end.as_ref().is_ok_and(|turn_end| turn_end.is_ended_by_hook) {
            self.policy.step_state.lock_state().has_stopped = true;
        }
        // Also after a failed turn.
        let restored = self.restore_files(port).await;
        let turn_end = turn_end?;
        restored?;
        Ok(turn_end.end)
    }

    /// Whether the user, or a hook, ended the step.
    pub(crate) fn has_stopped(&self) -> bool {
        self.policy.step_state.lock_state().has_stopped
    }

    /// Restores files that may not be changed in this step, and reports it.
    pub(crate) async fn restore_files(&self, port: &mut impl WorkflowPort) -> Result<(), Failure> {
        let background = port.background_work();
        let restored = self.policy.with_watch(move |watch| watch.end_turn(background)).await;
        for change in restored.map_err(project_failure)? {
            send_step_note(port, &self.describe_change(&change));
        }
        Ok(())
    }

    fn describe_change(&self, change: &ProtectedChange) -> String {
        let project = &self.scope.context.project;
        let set_aside_dir = || project.display_path(&project.specify_path(SET_ASIDE_DIR));
        let detail = match change.kind {
            _ if !change.is_undone => "; the change was kept".to_owned(),
            ProtectedChangeKind::Changed => {
                format!("; it was restored, and the changed version is in {}", set_aside_dir())
            }
            ProtectedChangeKind::Removed => "; it was restored".to_owned(),
            ProtectedChangeKind::Created => format!("; it was new and was moved to {}", set_aside_dir()),
        };
        let (command, path) = (self.scope.definition.command, project.display_path(&change.path));
        format!("{command} may not change {path}{detail}.")
    }

    /// Renders the first prompt of the step.
    pub(crate) async fn opening_part(&self, current: Vec<TaskFacts>) -> Result<ContentPart, Failure> {
        let (prompt, mut facts) = (self.prompt.clone(), self.scope.prompt_facts().await?);
        facts.tasks.current = current;
        facts.issues = self.policy.issues.as_ref().map(IssueTarget::facts).unwrap_or_default();
        let text = run_blocking(move || prompt.render_prompt(&facts)).await.map_err(project_failure)?;
        Ok(hidden_part(SpeckitPart::Step(self.scope.definition.command.as_str().to_owned()), text))
    }

    /// Sends the report of the step and stores it.
    pub(crate) async fn send_report(
        &self,
        port: &mut impl WorkflowPort,
        summary: StepSummary,
    ) -> Result<(), Failure> {
        let report = StepReport {
            command: self.scope.definition.command,
            arguments: self.scope.text.clone(),
            text: summary.render_summary(),
            next: summary.suggestions(),
            outcome: summary.outcome,
        };
        port.send_report(report).await
    }

    /// Ticks or unticks a task.
    pub(crate) async fn mark_task(
        &self,
        port: &mut impl WorkflowPort,
        id: &TaskId,
        tick: TickState,
    ) -> Result<(), String> {
        let text = self.scope.read_tasks_text().await.map_err(|failure| failure.message)?;
        let updated = set_task_ticked(&text, id, tick).map_err(|error| error.to_string())?;
        self.write_tasks(port, &updated, Some(id)).await
    }

    /// Writes the task list, in which this task was ticked or unticked; the user can undo it.
    pub(crate) async fn write_tasks(
        &self,
        port: &mut impl WorkflowPort,
        text: &str,
        marked: Option<&TaskId>,
    ) -> Result<(), String> {
        let Some(feature) = &self.scope.feature else { return Ok(()) };
        let recorder = port.undo_recorder();
        let path = feature.tasks_path();
        project_files::write_project_file(Some(&*recorder), port.workspace(), &path, text).await?;
        // The step does not restore a change that Crow made itself.
        let marked = marked.cloned();
        let accept = move |watch: &mut ChangeWatch| watch.accept_file(&path, marked.as_ref());
        let accepted = self.policy.with_watch(accept).await?;
        accepted.map_err(|error| error.to_string())
    }

    /// Sends the task list as the plan.
    pub(crate) async fn send_plan(
        &self,
        port: &mut impl WorkflowPort,
        running: &[TaskId],
    ) -> Result<(), Failure> {
        let list = self.scope.read_task_list().await?;
        if !list.tasks.is_empty() {
            port.send_plan(plan_entries(&list, running));
        }
        Ok(())
    }

    /// Like [`Self::send_plan`], but an error is only logged.
    pub(crate) async fn try_send_plan(&self, port: &mut impl WorkflowPort, running: &[TaskId]) {
        if let Err(failure) = self.send_plan(port, running).await {
            tracing::warn!(%failure, "the task list could not be shown");
        }
    }
}

/// Converts a task list to a plan.
pub(crate) fn plan_entries(list: &TaskList, running: &[TaskId]) -> Vec<PlanEntry> {
    let entries = build_plan_view(list, running).into_iter();
    let entries = entries.map(|entry| PlanEntry {
        text: entry.text,
        priority: match entry.priority {
            TaskPlanPriority::High => PlanPriority::High,
            TaskPlanPriority::Medium => PlanPriority::Medium,
            TaskPlanPriority::Low => PlanPriority::Low,
        },
        status: match entry.status {
            TaskPlanStatus::Pending => PlanStatus::Pending,
            TaskPlanStatus::InProgress => PlanStatus::InProgress,
            TaskPlanStatus::Completed => PlanStatus::Completed,
        },
        meta: Some(json!({ "speckit": {
            "id": entry.id.as_ref().map(TaskId::as_str),
            "phase": entry.phase,
            "story": entry.stories.first().map(|story| format!("US{story}")),
            "parallel": entry.parallel,
            "line": entry.line,
        } })),
    });
    entries.collect()
}
