//! Reads from, types to and ends jobs.

use std::time::Duration;

use crow_core::ToolCallStatus;
use crow_process::{JobInputError, JobWaitOptions};

use super::{
    input::JobInput,
    jobs::{JobBackend, JobEntry, JobTable, end_jobs},
    limits::{QUIET_PERIOD, READ_WAIT},
    report::{TerminalReport, job_report},
};
use crate::{
    ToolCx,
    tool_error::{CANCELLED, ToolError},
};

/// Reads a job. With `wait` it waits for the job's end.
pub(super) async fn read_job(entry: &JobEntry, wait: Option<Duration>, cx: &ToolCx<'_>) -> TerminalReport {
    let wait_for_job = async {
        match wait {
            Some(timeout) => entry.wait_for_exit(timeout).await,
            None => {
                let options =
                    JobWaitOptions { timeout: READ_WAIT, quiet_period: QUIET_PERIOD, n_unread_min: 0 };
                entry.wait_until_settled(options).await;
            }
        }
    };
    cx.cancel.run_until_cancelled(wait_for_job).await;
    take_report(entry, cx).await
}

/// Types to a job and reads its output.
pub(super) async fn send_input(
    entry: &JobEntry,
    input: &JobInput,
    wait: Option<Duration>,
    cx: &ToolCx<'_>,
) -> Result<TerminalReport, ToolError> {
    let JobBackend::Local(job) = &entry.backend else {
        let reason = format!(
            "nothing can be typed to {}: it runs in the client's terminal, where only the user can; it can be read, \
             and ended with reset",
            entry.name
        );
        return Err(ToolError(reason));
    };
    let may_run_code = !matches!(input, JobInput::Key { only_stops: true, .. });
    if may_run_code && cx.confinement > entry.confinement {
        let reason = format!(
            "not typed: {} was started with more rights than this text would have as a command of its own; end it with \
             reset and start it again",
            entry.name
        );
        return Err(ToolError(reason));
    }
    let n_unread = job.status().n_unread;
    match (job.write_input(input.to_bytes()).await, input) {
        (Ok(()), _) => {}
        (Err(JobInputError::NoInput), JobInput::Key { interrupts: true, .. }) => job.interrupt().await,
        (Err(JobInputError::NoInput), _) => {
            let reason = format!(
                "nothing can be typed to {}: it was not started in the background and has no input; C-c interrupts it",
                entry.name
            );
            return Err(ToolError(reason));
        }
        // The report shows that it has ended.
        (Err(JobInputError::Ended), _) => return Ok(take_report(entry, cx).await),
        (Err(reason @ (JobInputError::BufferFull | JobInputError::LongLine)), _) => {
            return Err(ToolError(format!("not typed to {}: {reason}", entry.name)));
        }
    }
    let options = JobWaitOptions {
        timeout: wait.unwrap_or(READ_WAIT),
        quiet_period: QUIET_PERIOD,
        n_unread_min: n_unread + input.n_echoed(),
    };
    cx.cancel.run_until_cancelled(job.wait_until_quiet(options)).await;
    Ok(take_report(entry, cx).await)
}

/// Returns a job's new output and state.
async fn take_report(entry: &JobEntry, cx: &ToolCx<'_>) -> TerminalReport {
    // Read first: if the job ends now, it may print more.
    let exit = entry.command_exit();
    if exit.is_some() {
        entry.mark_reported();
    }
    let output = entry.take_output(cx.cancel).await;
    let report = job_report(entry, exit.as_ref(), output);
    if cx.cancel.is_cancelled() {
        return TerminalReport {
            text: format!("{}\n{CANCELLED}", report.text),
            status: ToolCallStatus::Failed,
        };
    }
    report
}

/// Ends a job, or all of them, and reports which.
pub(super) async fn reset_jobs(jobs: &JobTable, name: Option<&str>) -> Result<String, ToolError> {
    let removed = jobs.remove_jobs(name)?;
    let lines: Vec<String> = removed
        .iter()
        .map(|entry| match entry.command_exit() {
            None => format!("ended {} {}", entry.name, entry.title),
            Some(_) => format!("{} {} had ended already", entry.name, entry.title),
        })
        .collect();
    end_jobs(&removed).await;
    Ok(if lines.is_empty() { "there was no job to end".into() } else { lines.join("\n") })
}
