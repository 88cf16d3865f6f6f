//! `/speckit.taskstoissues`: GitHub issues for open tasks.

use super::open_tasks;
use crate::check::summarize_tasks;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition, StepWork};
use crate::{FeaturePrerequisite, SpeckitError, WorkflowCommand};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::TasksToIssues,
    description: "Create a GitHub issue for each open task, with your GitHub MCP server",
    argument_hint: "phase, story or task ids (optional)",
    feature: FeatureUse::Needs(&[FeaturePrerequisite::PLAN, FeaturePrerequisite::TASKS]),
    check_ready: |invocation, feature| {
        let Some(feature) = feature else { return Ok(()) };
        let list = open_tasks::read_tasks(feature)?;
        if list.is_done() {
            let reason = "every task is done, so there are no issues to create".to_owned();
            return Err(SpeckitError::Invalid(reason));
        }
        open_tasks::check_selection(&list, invocation)
    },
    prompt: include_str!("../../prompts/speckit_taskstoissues.jinja2"),
    work: StepWork::Issues,
    summarize: summarize_tasks,
    next: &[WorkflowCommand::Implement],
    ..BASE_STEP
};
