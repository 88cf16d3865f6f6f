//! The view that a session has of the workflow outside its requests: the commands it offers, and the task list and
//! reminder it restores from the feature it is bound to.

use crow_core::{CommandInfo, ContentPart, PlanEntry, SpeckitPart, Transcript};
use crow_speckit::{Feature, SpeckitProject, TaskList, WorkflowCommand, step_definition};

use crate::blocking::run_blocking;
use crate::parts::{hidden_part, mentions_workflow};
use crate::report;
use crate::session_facts::FeatureBinding;
use crate::step::plan_entries;

/// Returns the commands of the workflow.
pub fn available_commands() -> impl Iterator<Item = CommandInfo> {
    let speckit_command = CommandInfo {
        name: "speckit".into(),
        description: "Show the state of the Spec Kit workflow".into(),
        hint: Some("status | use 002 | init | templates | doctor".into()),
    };
    let steps = WorkflowCommand::ALL.into_iter().map(|command| CommandInfo {
        name: format!("speckit.{}", command.as_str()),
        description: step_definition(command).description.into(),
        hint: Some(step_definition(command).argument_hint.into()),
    });
    steps.chain([speckit_command])
}

/// Returns the task list that the client of a stored session saw last; empty if it saw none.
pub async fn restored_plan(binding: FeatureBinding) -> Vec<PlanEntry> {
    let shows_tasks = binding.last_command.is_some_and(|last| step_definition(last).shows_tasks);
    let Some(dir) = binding.feature_dir.filter(|_| shows_tasks) else { return Vec::new() };
    let text = run_blocking(move || {
        Ok(SpeckitProject::read_file(&Feature::from_dir(dir.into()).tasks_path())?.unwrap_or_default())
    })
    .await;
    plan_entries(&TaskList::parse(&text.unwrap_or_default()), &[])
}

/// Whether a compaction removed every mention of the workflow from the model's context.
pub fn needs_reminder(transcript: &Transcript) -> bool {
    transcript.compaction().is_some() && !transcript.entries().iter().any(mentions_workflow)
}

/// Returns a reminder of the workflow for the model.
pub async fn workflow_reminder(binding: FeatureBinding) -> Option<ContentPart> {
    let feature = Feature::from_dir(binding.feature_dir?.into());
    // A feature that cannot be read is left out.
    let text = run_blocking(move || report::feature_reminder(&feature, binding.last_command)).await;
    Some(hidden_part(SpeckitPart::Reminder, text.ok()?))
}
