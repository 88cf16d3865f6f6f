//! Conclusions from the end of a run about its task, and from all tasks about the end of the program.

#[cfg(test)]
mod tests;

use crow_core::{BatchStopCause, FailureKind};

use crate::{
    batch::{result_line::BatchTaskState, tally::BatchTally},
    failure::{CliError, CliExitCode},
};

/// The conclusion about a task.
#[derive(Debug)]
pub(super) enum TaskConclusion {
    Ended {
        state: BatchTaskState,
        error: Option<String>,
    },
    /// The reason concerns all tasks; this one has no result and is run again.
    Aborted(CliError),
}

/// Judges the end of a run. `reported` is the error that the run showed before it ended.
pub(super) fn conclude_task(
    result: Result<(), CliError>,
    cause: Option<BatchStopCause>,
    reported: Option<CliError>,
    failure_kind: Option<FailureKind>,
) -> TaskConclusion {
    let Err(error) = result else {
        return TaskConclusion::Ended { state: BatchTaskState::Done, error: None };
    };
    if let Some(cause) = cause {
        let state = if cause.is_task_limit() { BatchTaskState::Failed } else { BatchTaskState::Cancelled };
        return TaskConclusion::Ended { state, error: Some(cause.to_string()) };
    }
    let (code, error) = (error.code(), reported.unwrap_or(error));
    // A wrong key or a missing login fails every task in the same way.
    if code == CliExitCode::Config || failure_kind == Some(FailureKind::ProviderAuth) {
        return TaskConclusion::Aborted(error);
    }
    let unsaid = match code {
        CliExitCode::Interrupted => "the agent cancelled the turn",
        CliExitCode::Success
        | CliExitCode::Failed
        | CliExitCode::Usage
        | CliExitCode::Config
        | CliExitCode::NoSession
        | CliExitCode::Denied
        | CliExitCode::Limit => "the work was not completed",
    };
    let reason = error.message().unwrap_or(unsaid).to_owned();
    TaskConclusion::Ended { state: BatchTaskState::Failed, error: Some(reason) }
}

/// Returns how the program ends.
pub(super) fn exit_of_batch(
    abort_error: Option<CliError>,
    cause: Option<BatchStopCause>,
    tally: &BatchTally,
) -> Result<(), CliError> {
    if let Some(error) = abort_error {
        return Err(error);
    }
    match cause {
        Some(BatchStopCause::Interrupted) => Err(CliError::without_message(CliExitCode::Interrupted)),
        // The last tasks may have used up the budget and been done all the same.
        Some(cause @ BatchStopCause::BudgetExhausted { .. }) if tally.is_incomplete() => {
            let reason = format!("{cause}; tasks not run: {}", tally.n_left());
            let error = CliError::new(CliExitCode::Limit, reason);
            Err(error.with_hint("run the same command again with a higher --max-tokens"))
        }
        // A task's own limit does not end the batch.
        Some(
            BatchStopCause::BudgetExhausted { .. }
            | BatchStopCause::TokenLimit { .. }
            | BatchStopCause::TimeLimit { .. }
            | BatchStopCause::Aborted,
        )
        | None => match tally.has_failures() {
            true => Err(CliError::without_message(CliExitCode::Failed)),
            false => Ok(()),
        },
    }
}
