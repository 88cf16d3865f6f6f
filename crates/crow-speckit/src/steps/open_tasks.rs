//! Checks of the steps that work on the tasks of a list.

use crate::{CommandInvocation, Feature, SpeckitError, TaskList, WorkflowCommand};

/// Reads a task list that has tasks.
pub(super) fn read_tasks(feature: &Feature) -> Result<TaskList, SpeckitError> {
    let list = feature.read_task_list()?;
    if list.tasks.is_empty() {
        let reason = "there is no task in tasks.md".to_owned();
        return Err(SpeckitError::MissingPrerequisite { reason, command: Some(WorkflowCommand::Tasks) });
    }
    Ok(list)
}

/// Checks that the arguments select open tasks.
pub(super) fn check_selection(list: &TaskList, invocation: &CommandInvocation) -> Result<(), SpeckitError> {
    if list.select_tasks(&invocation.text).is_none_or(|selected| !selected.is_empty()) {
        return Ok(());
    }
    let command = invocation.command;
    let reason = format!("no open task is selected; name others, or run {command} alone for all open tasks");
    Err(SpeckitError::Invalid(reason))
}
