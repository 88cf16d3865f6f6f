//! `/speckit.converge`: tasks for what the code still lacks. The model reports the gaps, and Crow adds the tasks.

use super::open_tasks;
use crate::check::summarize_tasks;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition, StepTool, StepWork};
use crate::write_rules::{NO_FILES, WriteRules};
use crate::{Feature, FeaturePrerequisite, SpeckitError, WorkflowCommand};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Converge,
    description: "Compare the code with the spec and add missing tasks",
    feature: FeatureUse::Needs(&[
        FeaturePrerequisite::Plan,
        FeaturePrerequisite::Spec,
        FeaturePrerequisite::Tasks,
    ]),
    check_ready: |_, feature| {
        let Some(feature) = feature else { return Ok(()) };
        if open_tasks::read_tasks(feature)?.done_count() > 0 {
            return Ok(());
        }
        let first = WorkflowCommand::Implement;
        let reason = format!("no task is done yet, so there is nothing to compare; run {first} first");
        Err(SpeckitError::Invalid(reason))
    },
    crow_file: |_, feature| feature.map(Feature::tasks_path),
    writes: WriteRules { refuse: |_| Some("no file; new tasks go through speckit_converge"), ..NO_FILES },
    prompt: include_str!("../../prompts/speckit_converge.jinja2"),
    tool: Some(StepTool::ReportGaps),
    work: StepWork::Gaps,
    repairs_max: 1,
    summarize: summarize_tasks,
    shows_tasks: true,
    next: &[WorkflowCommand::Implement],
    ..BASE_STEP
};
