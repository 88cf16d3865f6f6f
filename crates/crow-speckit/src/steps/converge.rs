//! `/speckit.converge`: tasks for what the code still lacks. The model reports the gaps, and Crow adds the tasks.

use super::open_tasks;
use crate::check::summarize_tasks;
use crate::step_definition::{BASE_STEP, FeatureUse, GapClosure, GapWork, StepDefinition, StepTool};
use crate::write_rules::{NO_FILES, WriteRules};
use crate::{
    ConvergenceGap, Feature, FeaturePrerequisite, SpeckitError, TaskList, TasksError, WorkflowCommand,
    append_convergence,
};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Converge,
    description: "Compare the code with the spec and add missing tasks",
    feature: FeatureUse::Needs(&[
        FeaturePrerequisite::PLAN,
        FeaturePrerequisite::SPEC,
        FeaturePrerequisite::TASKS,
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
    gaps: Some(GapWork {
        missing_report: "nothing was reported: call `speckit_converge`, with an empty list if nothing is missing",
        close_gaps,
    }),
    repairs_max: 1,
    summarize: summarize_tasks,
    shows_tasks: true,
    is_due: |feature| Ok(feature.read_task_list()?.is_done()),
    next: &[WorkflowCommand::Implement],
    ..BASE_STEP
};

/// A missing report does not mean that the feature is finished.
fn close_gaps(tasks_text: &str, gaps: Option<&[ConvergenceGap]>) -> Result<GapClosure, TasksError> {
    let unchanged = |line: &str, next| GapClosure {
        tasks_text: None,
        line: format!("{line}; tasks.md is unchanged"),
        next,
    };
    let Some(gaps) = gaps else {
        return Ok(unchanged("Nothing was reported", &[WorkflowCommand::Converge]));
    };
    if gaps.is_empty() {
        return Ok(match TaskList::parse(tasks_text).is_done() {
            true => unchanged("The code has no gaps", &[]),
            false => unchanged("The code has no gaps beyond the open tasks", &[WorkflowCommand::Implement]),
        });
    }
    let n_critical = gaps.iter().filter(|gap| gap.is_critical).count();
    Ok(GapClosure {
        tasks_text: Some(append_convergence(tasks_text, gaps)?),
        line: format!("New tasks: {}, of these critical: {n_critical}", gaps.len()),
        next: &[WorkflowCommand::Implement],
    })
}
