//! `/speckit.converge`: turns the gaps that the model reported into tasks. A missing report does not mean that the
//! feature is finished.

use crow_core::Failure;
use crow_speckit::{WorkflowCommand, append_convergence};

use crate::speckit::project_files::project_failure;
use crate::speckit::step_policy::SharedStepState;
use crate::speckit::step_port::StepPort;

/// The result of a comparison of code and spec.
pub(super) struct ConvergeSummary {
    /// The line in the report.
    pub(super) line: String,
    /// The steps that come next.
    pub(super) next: &'static [WorkflowCommand],
}

/// Returns the prompts for a model that ended without a report.
pub(super) fn missing_report_prompts(step_state: &SharedStepState) -> Vec<String> {
    let reason = "nothing was reported: call `speckit_converge`, with an empty list if nothing is missing";
    if step_state.lock_state().gaps.is_none() { vec![reason.to_owned()] } else { Vec::new() }
}

/// Adds the tasks for the reported gaps.
pub(super) async fn append_gap_tasks(port: &mut impl StepPort) -> Result<ConvergeSummary, Failure> {
    let Some(gaps) = port.step_state().lock_state().gaps.take() else {
        let line = "Nothing was reported; tasks.md is unchanged".to_owned();
        return Ok(ConvergeSummary { line, next: &[WorkflowCommand::Converge] });
    };
    if gaps.is_empty() {
        let list = port.scope().read_task_list().await?;
        let is_complete = list.done_count() == list.tasks.len();
        let (line, next): (_, &[WorkflowCommand]) = match is_complete {
            true => ("The code has no gaps; tasks.md is unchanged", &[]),
            false => (
                "The code has no gaps beyond the open tasks; tasks.md is unchanged",
                &[WorkflowCommand::Implement],
            ),
        };
        return Ok(ConvergeSummary { line: line.to_owned(), next });
    }
    let text = port.scope().read_tasks_text().await?;
    let updated = append_convergence(&text, &gaps).map_err(|error| project_failure(error.to_string()))?;
    port.write_tasks(&updated).await.map_err(project_failure)?;
    let n_critical = gaps.iter().filter(|gap| gap.is_critical).count();
    let line = format!("New tasks: {}, of these critical: {n_critical}", gaps.len());
    Ok(ConvergeSummary { line, next: port.scope().definition.next })
}
