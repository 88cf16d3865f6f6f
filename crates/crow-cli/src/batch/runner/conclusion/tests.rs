use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::batch::task_file::TaskSurvey;

fn conclude(
    result: Result<(), CliError>,
    cause: Option<BatchStopCause>,
    kind: Option<FailureKind>,
) -> String {
    let reported = result.as_ref().err().filter(|error| error.message().is_some()).cloned();
    let result = result.map_err(CliError::into_reported);
    match conclude_task(result, cause, reported, kind) {
        TaskConclusion::Ended { state, error } => {
            format!("{}: {}", state.as_str(), error.unwrap_or_default())
        }
        TaskConclusion::Aborted(error) => format!("the batch ends: {}", error.message().unwrap_or_default()),
    }
}

#[test]
fn task_ends_as_its_run() {
    let failed = |code| Err(CliError::new(code, "why it failed"));
    let interrupted = || Err(CliError::without_message(CliExitCode::Interrupted));
    let limit = BatchStopCause::TimeLimit { time_max: Duration::from_secs(90) };
    let told = [
        conclude(Ok(()), None, None),
        conclude(Ok(()), Some(BatchStopCause::Interrupted), None),
        conclude(interrupted(), Some(BatchStopCause::Interrupted), None),
        conclude(interrupted(), Some(limit), None),
        conclude(interrupted(), None, None),
        conclude(Err(CliError::without_message(CliExitCode::Failed)), None, None),
        conclude(failed(CliExitCode::Denied), None, None),
        conclude(failed(CliExitCode::Failed), None, Some(FailureKind::ProviderRate)),
        conclude(failed(CliExitCode::Failed), None, Some(FailureKind::ProviderAuth)),
        conclude(failed(CliExitCode::Config), None, None),
        conclude(failed(CliExitCode::Config), Some(BatchStopCause::Aborted), None),
    ];
    expect![[r#"
        done: 
        done: 
        cancelled: the batch was interrupted
        failed: the task did not end within its max_minutes, 1.5
        failed: the agent cancelled the turn
        failed: the work was not completed
        failed: why it failed
        failed: why it failed
        the batch ends: why it failed
        the batch ends: why it failed
        cancelled: the batch was stopped"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn used_tokens_are_a_limit_only_if_tasks_are_left() {
    let exit = |n_tasks| {
        let tally = BatchTally::new(TaskSurvey { n_tasks, n_done: 1, n_failed: 0 });
        let cause = BatchStopCause::BudgetExhausted { tokens_max: 10 };
        exit_of_batch(None, Some(cause), &tally).map_err(|error| error.code())
    };
    assert_eq!((exit(1), exit(2)), (Ok(()), Err(CliExitCode::Limit)));
}
