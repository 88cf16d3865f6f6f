//! Reading, typing to and ending the jobs that there are.

use std::time::Duration;

use crow_core::ToolCallStatus;
use crow_process::{JobInputError, JobWaitOptions};

use super::{
    LOOK_WAIT, QUIET,
    jobs::{JobBackend, JobEntry, JobTable, end_jobs},
    keys::JobInput,
    words::{TerminalReport, job_report},
};
use crate::{
    ToolCx,
    tool::{CANCELLED, ToolError},
};

/// Reads a job. Somebody who says how long they wait waits for its end.
pub(super) async fn read_job(entry: &JobEntry, wait: Option<Duration>, cx: &ToolCx<'_>) -> TerminalReport {
    let waiting = async {
        match wait {
            Some(within) => entry.wait_for_exit(within).await,
            None => {
                let patience = JobWaitOptions { within: LOOK_WAIT, quiet: QUIET, n_unread_min: 0 };
                entry.wait_until_settled(patience).await;
            }
        }
    };
    cx.cut.run_until_cancelled(waiting).await;
    take_report(entry, cx).await
}

/// Types to a job and reads what it answers.
pub(super) async fn send_input(
    entry: &JobEntry,
    typed: &JobInput,
    wait: Option<Duration>,
    cx: &ToolCx<'_>,
) -> Result<TerminalReport, ToolError> {
    let JobBackend::Here(job) = &entry.at else {
        let why = format!(
            "nothing can be typed to {}: it runs in the client's terminal, where only the person can; it can be read, \
             and ended with reset",
            entry.name
        );
        return Err(ToolError(why));
    };
    let may_run_code = !matches!(typed, JobInput::Key { only_stops: true, .. });
    if may_run_code && cx.confinement > entry.confinement {
        let why = format!(
            "not typed: {} was started with more rights than this text would have as a command of its own; end it with \
             reset and start it again",
            entry.name
        );
        return Err(ToolError(why));
    }
    let n_unread = job.status().n_unread;
    match (job.write_input(typed.to_bytes()).await, typed) {
        (Ok(()), _) => {}
        (Err(JobInputError::NoInput), JobInput::Key { interrupts: true, .. }) => job.interrupt().await,
        (Err(JobInputError::NoInput), _) => {
            let why = format!(
                "nothing can be typed to {}: it was not started in the background and has no input; C-c interrupts it",
                entry.name
            );
            return Err(ToolError(why));
        }
        // Its end is what there is to see.
        (Err(JobInputError::Ended), _) => return Ok(take_report(entry, cx).await),
        (Err(why @ (JobInputError::Full | JobInputError::LongLine)), _) => {
            return Err(ToolError(format!("not typed to {}: {why}", entry.name)));
        }
    }
    let patience = JobWaitOptions {
        within: wait.unwrap_or(LOOK_WAIT),
        quiet: QUIET,
        n_unread_min: n_unread + typed.n_echoed(),
    };
    cx.cut.run_until_cancelled(job.wait_until_quiet(patience)).await;
    Ok(take_report(entry, cx).await)
}

/// Shows what a job said and how it stands.
async fn take_report(entry: &JobEntry, cx: &ToolCx<'_>) -> TerminalReport {
    // Looked at first: what ends meanwhile may have more to say.
    let ended = entry.command_exit();
    if ended.is_some() {
        entry.mark_reported();
    }
    let output = entry.take_output(cx.cut).await;
    let said = job_report(entry, ended.as_ref(), output);
    if cx.cut.is_cancelled() {
        return TerminalReport {
            text: format!("{}\n{CANCELLED}", said.text),
            status: ToolCallStatus::Failed,
        };
    }
    said
}

/// Ends a job, or all of them, and tells which.
pub(super) async fn reset_jobs(jobs: &JobTable, name: Option<&str>) -> Result<String, ToolError> {
    let ending = jobs.remove_jobs(name)?;
    let lines: Vec<String> = ending
        .iter()
        .map(|entry| match entry.command_exit() {
            None => format!("ended {} {}", entry.name, entry.title),
            Some(_) => format!("{} {} had ended already", entry.name, entry.title),
        })
        .collect();
    end_jobs(&ending).await;
    Ok(if lines.is_empty() { "there was no job to end".into() } else { lines.join("\n") })
}
