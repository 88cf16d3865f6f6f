//! Renders the report of a step: facts from the disk, remaining problems, the next steps.

use crow_core::{ReportOutcome, SuggestedCommand, TurnEnd};
use crow_speckit::{
    Feature, FeatureOrigin, SpeckitError, TaskId, TaskItem, TaskList, WorkflowCommand, checklist_facts,
    step_definition,
};

use crate::project_context::ProjectContext;

/// Problems in a report; the model was sent all of them.
const PROBLEMS_SHOWN: usize = 10;

/// Open tasks in a reminder; the model can read the list.
const TASKS_REMINDED: usize = 10;

/// The result of a step, for the user and for the model.
#[derive(Debug)]
pub(crate) struct StepSummary {
    /// The results and the problems that remain.
    pub(crate) text: String,
    /// The steps that come next.
    pub(crate) next: &'static [WorkflowCommand],
    pub(crate) outcome: ReportOutcome,
}

impl StepSummary {
    /// Returns the next steps as suggestions for a client.
    pub(crate) fn suggestions(&self) -> Vec<SuggestedCommand> {
        let suggestion = |step: &WorkflowCommand| SuggestedCommand {
            label: step_definition(*step).description.to_owned(),
            command: format!("speckit.{}", step.as_str()),
        };
        self.next.iter().map(suggestion).collect()
    }

    /// Renders the summary with the suggestions.
    pub(crate) fn render_summary(&self) -> String {
        let names: Vec<String> = self.next.iter().map(|step| format!("`{step}`")).collect();
        let next = if names.is_empty() { String::new() } else { format!("\nNext: {}\n", names.join(", ")) };
        format!("{}{next}", self.text)
    }
}

/// The results of one run.
#[derive(Debug, Default)]
pub(crate) struct TaskRunProgress {
    /// Completed tasks, with the note on each.
    pub(crate) done: Vec<(TaskId, String)>,
    /// Failed tasks, with the reason.
    pub(crate) failed: Vec<(TaskId, String)>,
    /// True if none of the requested tasks is open.
    pub(crate) is_complete: bool,
}

/// Renders the results of a step.
pub(crate) fn render_results(command: WorkflowCommand, results: &[String], problems: &[String]) -> String {
    let mut text = format!("\n**{command}**\n");
    for line in results {
        text.push_str(&format!("- {line}\n"));
    }
    if !problems.is_empty() {
        text.push_str("\nRemaining problems:\n");
        for problem in problems.iter().take(PROBLEMS_SHOWN) {
            text.push_str(&format!("- {problem}\n"));
        }
        let n_more = problems.len().saturating_sub(PROBLEMS_SHOWN);
        if n_more > 0 {
            text.push_str(&format!("- and {n_more} more\n"));
        }
    }
    text
}

/// Renders the results of a run of tasks.
pub(crate) fn render_run_results(
    command: WorkflowCommand,
    progress: &TaskRunProgress,
    list: &TaskList,
    end: &TurnEnd,
    note: Option<&str>,
) -> String {
    let (n_done, n_all) = (list.done_count(), list.tasks.len());
    let mut text = format!("\n**{command}**\n- Done in this run: {}\n", progress.done.len());
    text.push_str(&format!("- tasks.md: {n_done} of {n_all} done\n"));
    for (id, reason) in &progress.failed {
        text.push_str(&format!("- {id} failed: {reason}\n"));
    }
    if let Some(note) = note {
        text.push_str(&format!("- {note}\n"));
    }
    if n_done < n_all {
        let reason = match end {
            _ if !progress.failed.is_empty() => "Fix that or the task list; the run",
            TurnEnd::Completed => "The run",
            TurnEnd::Cancelled => "Stopped; the run",
            TurnEnd::OutputLimit => "The model's answer reached the output limit; the run",
            TurnEnd::RequestLimit => "The turn reached its request limit; the run",
            TurnEnd::Repetition => "The model repeated the same call; the run",
            TurnEnd::Refused => "The model refused; the run",
            TurnEnd::Failed(_) => "The request to the model failed; the run",
        };
        text.push_str(&format!("\n{reason} continues with {command} at the first open task.\n"));
    }
    text
}

/// Explains which feature a step is for, where that is not obvious.
pub(crate) fn origin_notes(
    context: &ProjectContext,
    feature: &Feature,
    origin: FeatureOrigin,
) -> Vec<String> {
    let path = context.project.display_path(&feature.dir);
    match origin {
        FeatureOrigin::Session => {
            let pointer = crow_speckit::read_pointer(&context.project).ok().flatten();
            let other_pointer = pointer.filter(|pointer| {
                crow_files::resolve_links(pointer) != crow_files::resolve_links(&feature.dir)
            });
            other_pointer.map_or_else(Vec::new, |pointer| {
                let pointer = context.project.display_path(&pointer);
                vec![format!("This session works on {path}; the project points at {pointer} (`/speckit use` changes both).")]
            })
        }
        FeatureOrigin::Branch => {
            vec![format!("No feature is selected, so that of the branch is used: {path}.")]
        }
        FeatureOrigin::Only => {
            vec![format!("No feature is selected, so the only one is used: {path}.")]
        }
        FeatureOrigin::Typed | FeatureOrigin::Variable | FeatureOrigin::Pointer => Vec::new(),
    }
}

/// Describes the progress of a feature.
pub(crate) fn feature_progress(feature: &Feature) -> Result<String, SpeckitError> {
    let list = feature.read_task_list()?;
    let mut progress: Vec<String> = Vec::new();
    progress.extend(feature.spec_path().is_file().then(|| "spec".to_owned()));
    progress.extend(feature.plan_path().is_file().then(|| "plan".to_owned()));
    if !list.tasks.is_empty() {
        progress.push(format!("{} of {} tasks done", list.done_count(), list.tasks.len()));
    }
    let lists = checklist_facts(feature)?;
    let n_open: usize = lists.iter().map(|list| list.total - list.checked).sum();
    if n_open > 0 {
        progress.push(format!("{n_open} open checklist items"));
    }
    Ok(if progress.is_empty() { "empty".to_owned() } else { progress.join(", ") })
}

/// Returns the next step of a feature.
pub(crate) fn next_step(feature: &Feature) -> Option<WorkflowCommand> {
    let is_due = |command: &WorkflowCommand| (step_definition(*command).is_due)(feature).unwrap_or(false);
    WorkflowCommand::ALL.into_iter().find(is_due)
}

/// Renders the reminder of a feature that is no longer in the model's context.
pub(crate) fn feature_reminder(
    feature: &Feature,
    last_command: Option<WorkflowCommand>,
) -> Result<String, SpeckitError> {
    let list = feature.read_task_list()?;
    let last_command = last_command.map(|last| format!(" The last step was {last}.")).unwrap_or_default();
    let mut text = format!(
        "This session works on the feature in {}: {}.{last_command}\n",
        feature.dir.display(),
        feature_progress(feature)?
    );
    let open: Vec<&TaskItem> = list.tasks.iter().filter(|task| !task.done).collect();
    for task in open.iter().take(TASKS_REMINDED) {
        text.push_str(&format!("- open: {} {}\n", task.id, task.text));
    }
    let n_more = open.len().saturating_sub(TASKS_REMINDED);
    if n_more > 0 {
        text.push_str(&format!("- and {n_more} more open tasks\n"));
    }
    Ok(text)
}
