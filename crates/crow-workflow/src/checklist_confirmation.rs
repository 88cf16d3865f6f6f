//! The confirmation before a step that ignores open items of checklists.

use crow_core::TurnEnd;
use crow_speckit::{Feature, WorkflowCommand, checklist_facts};

use crate::blocking::{project_failure, run_blocking};
use crate::exit::WorkflowExit;
use crate::notices::report_refusal;
use crate::port::{ConfirmationAnswer, ConfirmationSubject, StepConfirmation, WorkflowPort};

/// Asks for a confirmation if checklists have open items.
pub(crate) async fn confirm_open_checklists(
    port: &mut impl WorkflowPort,
    command: WorkflowCommand,
    feature: &Feature,
) -> Result<(), WorkflowExit> {
    let feature = feature.clone();
    let lists = run_blocking(move || checklist_facts(&feature)).await.map_err(project_failure)?;
    let n_open: usize = lists.iter().map(|list| list.total - list.checked).sum();
    if n_open == 0 {
        return Ok(());
    }
    let mut table =
        "| Checklist | Total | Checked | Unchecked | Status |\n|---|--:|--:|--:|---|\n".to_owned();
    for list in &lists {
        let n_unchecked = list.total - list.checked;
        let status = if n_unchecked == 0 { "done" } else { "open" };
        table.push_str(&format!(
            "| {} | {} | {} | {n_unchecked} | {status} |\n",
            list.name, list.total, list.checked
        ));
    }
    let confirmation = StepConfirmation {
        title: format!("Implement although {n_open} checklist items are open"),
        texts: vec![table.clone()],
        subject: ConfirmationSubject::Step,
    };
    let reason = match port.confirm(confirmation).await {
        ConfirmationAnswer::Allowed { .. } => return Ok(()),
        ConfirmationAnswer::Cancelled => return Err(WorkflowExit::Ended(TurnEnd::Cancelled)),
        ConfirmationAnswer::Unavailable { reason } => {
            format!(
                ", and the user could not be asked ({reason}). Tick what is done, or allow it with `--yes`."
            )
        }
        ConfirmationAnswer::Rejected { .. } => ". Tick what is done, then run it again.".to_owned(),
    };
    report_refusal(
        port,
        &format!("\n{table}\n{command} did not start: {n_open} checklist items are open{reason}"),
    );
    Err(WorkflowExit::Ended(TurnEnd::Completed))
}
