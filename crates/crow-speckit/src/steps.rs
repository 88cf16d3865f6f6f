//! The steps of the workflow, one file each, and the table of them.

mod analyze;
mod checklist;
mod clarify;
mod constitution;
mod converge;
mod implement;
mod open_tasks;
mod plan;
mod specify;
mod tasks;
mod tasks_to_issues;

pub use plan::setup_plan;
pub use tasks::setup_tasks;

use crate::WorkflowCommand;
use crate::step_definition::StepDefinition;

/// Returns the definition of a step.
pub fn step_definition(command: WorkflowCommand) -> &'static StepDefinition {
    match command {
        WorkflowCommand::Constitution => &constitution::DEFINITION,
        WorkflowCommand::Specify => &specify::DEFINITION,
        WorkflowCommand::Clarify => &clarify::DEFINITION,
        WorkflowCommand::Plan => &plan::DEFINITION,
        WorkflowCommand::Checklist => &checklist::DEFINITION,
        WorkflowCommand::Tasks => &tasks::DEFINITION,
        WorkflowCommand::Analyze => &analyze::DEFINITION,
        WorkflowCommand::Implement => &implement::DEFINITION,
        WorkflowCommand::Converge => &converge::DEFINITION,
        WorkflowCommand::TasksToIssues => &tasks_to_issues::DEFINITION,
    }
}

#[cfg(test)]
mod tests;
