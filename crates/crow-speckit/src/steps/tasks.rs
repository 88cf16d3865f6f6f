//! `/speckit.tasks`: the ordered task list.

use crate::check::{read_or_empty, summarize_tasks};
use crate::lint::check_tasks;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition};
use crate::write_rules::FEATURE_PAGES;
use crate::{
    Feature, FeaturePrerequisite, PageLoader, PageTemplate, SpeckitError, SpeckitProject, WorkflowCommand,
    check_feature_prerequisites,
};

impl FeaturePrerequisite {
    /// A task list.
    pub const TASKS: Self = Self { page: "tasks.md", creator: WorkflowCommand::Tasks, may_be_empty: true };

    /// A plan, which may be empty as for the real script.
    pub const PLAN_FILE: Self = Self { may_be_empty: true, ..Self::PLAN };
}

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Tasks,
    description: "Break the plan into ordered tasks",
    argument_hint: "preferences for the breakdown (optional)",
    feature: FeatureUse::Needs(&[FeaturePrerequisite::PLAN, FeaturePrerequisite::SPEC]),
    check_layout: |request| (request.pages)("tasks-template").map(drop),
    crow_file: |_, feature| feature.map(Feature::tasks_path),
    writes: FEATURE_PAGES,
    prompt: include_str!("../../prompts/speckit_tasks.jinja2"),
    template: Some("tasks-template"),
    check: |files, problems| {
        let Some(feature) = files.feature else { return Ok(()) };
        let template = (files.pages)("tasks-template")?.text;
        let spec = read_or_empty(&feature.spec_path())?;
        let tasks = read_or_empty(&feature.tasks_path())?;
        problems.add_problems("tasks.md", check_tasks(&tasks, &spec, &template));
        Ok(())
    },
    repairs_max: 2,
    summarize: summarize_tasks,
    counts_lost_ticks: true,
    shows_tasks: true,
    is_due: |feature| Ok(feature.read_task_list()?.tasks.is_empty()),
    next: &[WorkflowCommand::Analyze, WorkflowCommand::Implement],
    ..BASE_STEP
};

/// Checks the prerequisites of a task list and returns its template.
pub fn setup_tasks(
    project: &SpeckitProject,
    feature: &Feature,
    pages: &PageLoader<'_>,
) -> Result<PageTemplate, SpeckitError> {
    let prerequisites = [FeaturePrerequisite::PLAN_FILE, FeaturePrerequisite::SPEC];
    check_feature_prerequisites(project, feature, &prerequisites)?;
    pages("tasks-template")
}
