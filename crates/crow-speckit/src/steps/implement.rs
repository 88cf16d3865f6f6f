//! `/speckit.implement`: the open tasks, in order. Crow assigns and ticks them.

use std::collections::HashSet;

use super::open_tasks;
use crate::check::summarize_tasks;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition, StepTool, StepWork};
use crate::write_rules::{FEATURE_PAGES, ProtectedPath, WriteRules};
use crate::{
    CommandInvocation, Feature, FeaturePrerequisite, SpeckitError, TickState, WorkflowCommand,
    set_task_ticked,
};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Implement,
    description: "Work through the task list",
    argument_hint: "phase, story or task ids (optional)",
    feature: FeatureUse::Needs(&[FeaturePrerequisite::PLAN, FeaturePrerequisite::TASKS]),
    check_ready,
    confirms_checklists: true,
    crow_file: |_, feature| feature.map(Feature::tasks_path),
    writes: WriteRules {
        refuse: |target| {
            if target.is_page("tasks.md") {
                return Some("no task list; report tasks with speckit_task");
            }
            (target.is_page("spec.md") || target.is_checklist()).then_some("no spec and no checklist")
        },
        protected: &[ProtectedPath::FeatureFile("spec.md"), ProtectedPath::FeatureDirectory("checklists")],
        removes_new_files: true,
        // Code can be anywhere.
        protects_other_features: false,
        ..FEATURE_PAGES
    },
    prompt: include_str!("../../prompts/speckit_implement.jinja2"),
    tool: Some(StepTool::ReportTask),
    work: StepWork::Tasks,
    summarize: summarize_tasks,
    shows_tasks: true,
    is_due: |feature| Ok(!feature.read_task_list()?.is_done()),
    next: &[WorkflowCommand::Converge],
    ..BASE_STEP
};

fn check_ready(invocation: &CommandInvocation, feature: Option<&Feature>) -> Result<(), SpeckitError> {
    let Some(feature) = feature else { return Ok(()) };
    let list = open_tasks::read_tasks(feature)?;
    if list.is_done() {
        let next = WorkflowCommand::Converge;
        let reason = format!("every task is done; {next} finds what the code still lacks");
        return Err(SpeckitError::Invalid(reason));
    }
    open_tasks::check_selection(&list, invocation)?;
    // A task that cannot be ticked is better found before it is done.
    let mut ids = HashSet::new();
    let Some(duplicate) = list.tasks.iter().find(|task| !ids.insert(&task.id)) else { return Ok(()) };
    let text = feature.read_page("tasks.md")?.unwrap_or_default();
    let ticked = set_task_ticked(&text, &duplicate.id, TickState::Ticked).map(drop);
    ticked.map_err(|error| SpeckitError::Invalid(format!("a tick would be lost: {error}")))
}
