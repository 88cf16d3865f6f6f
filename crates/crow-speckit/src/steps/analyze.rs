//! `/speckit.analyze`: a consistency check of spec, plan and tasks. It only reads.

use crate::check::summarize_tasks;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition};
use crate::{FeaturePrerequisite, WorkflowCommand};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Analyze,
    description: "Cross-check spec, plan and tasks without changing files",
    feature: FeatureUse::Needs(&[
        FeaturePrerequisite::PLAN,
        FeaturePrerequisite::SPEC,
        FeaturePrerequisite::TASKS,
    ]),
    is_read_only: true,
    prompt: include_str!("../../prompts/speckit_analyze.jinja2"),
    summarize: summarize_tasks,
    next: &[WorkflowCommand::Implement],
    ..BASE_STEP
};
