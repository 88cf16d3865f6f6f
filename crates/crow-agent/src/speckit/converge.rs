//! `/speckit.converge`: what the model found missing becomes tasks. What it did not say is taken for nothing at all, least of
//! all for a feature that is finished.

use crow_core::Failure;
use crow_speckit::{Command, append_convergence};

use crate::run_turn::Conversation;
use crate::speckit::step::{Step, failed};

/// What looking for what the code lacks came to.
pub(super) struct Converged {
    /// What the person is told.
    pub(super) line: String,
    /// The steps that come next.
    pub(super) next: &'static [Command],
}

/// What the model is told when it ended without a report.
pub(super) fn unsaid(step: &Step<'_>) -> Vec<String> {
    let why = "nothing was reported: call `speckit_converge`, with an empty list if nothing is missing";
    if step.scope.desk.state().gaps.is_none() { vec![why.to_owned()] } else { Vec::new() }
}

/// Adds the tasks that the model found missing.
pub(super) async fn settle(step: &Step<'_>, talk: &Conversation) -> Result<Converged, Failure> {
    let Some(gaps) = step.scope.desk.state().gaps.take() else {
        let line = "Nothing was reported, so nothing is known; tasks.md is as it was".to_owned();
        return Ok(Converged { line, next: &[Command::Converge] });
    };
    if gaps.is_empty() {
        let list = step.tasks().await?;
        let is_whole = list.n_done() == list.tasks.len();
        let (line, next): (_, &[Command]) = match is_whole {
            true => ("The code lacks nothing; tasks.md is as it was", &[]),
            false => {
                ("The code lacks nothing beyond the open tasks; tasks.md is as it was", &[Command::Implement])
            }
        };
        return Ok(Converged { line: line.to_owned(), next });
    }
    let text = step.read_tasks().await?;
    let longer = append_convergence(&text, &gaps).map_err(|error| failed(error.to_string()))?;
    step.write_tasks(&longer, talk).await.map_err(failed)?;
    let n_critical = gaps.iter().filter(|gap| gap.is_critical).count();
    let line = format!("New tasks: {}, critical among them: {n_critical}", gaps.len());
    Ok(Converged { line, next: Command::Converge.next() })
}
