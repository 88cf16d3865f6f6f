//! The end of a run that cannot end: a write to a full pipe, which its reader holds open, cannot be cancelled.

use std::{io, process, thread, time::Duration};

use crow_process::StopRequest;
use tokio::{
    runtime::{Handle, Runtime},
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::interrupts::{RunControl, StopListener};
use crate::{
    agent,
    failure::{CliError, CliExitCode},
};

/// Time to end after a stop signal. Children get less to stop.
const END_WAIT_MAX: Duration = Duration::from_secs(10);

/// Time to notice an interrupt. A run that has noticed it may go on, or has its own time to stop.
const NOTICE_WAIT_MAX: Duration = END_WAIT_MAX;

/// Time to notice a further interrupt: the user wants the end now.
const REPEATED_NOTICE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Ends the process some time after a stop signal, if that has not ended it, and after an interrupt that the runtime of
/// the run does not notice.
pub(crate) fn start_exit_deadline(run: &Runtime) -> Result<(), CliError> {
    let failed =
        |error: io::Error| CliError::new(CliExitCode::Failed, format!("could not start a thread: {error}"));
    let runtime = agent::tokio_runtime()?;
    let signals = runtime.block_on(async { RunControl::User.listen() })?;
    let run = run.handle().clone();
    let watch = move || {
        runtime.block_on(wait_until_overdue(signals, &run));
        process::exit(CliExitCode::Interrupted as i32);
    };
    // The thread ends with the process.
    thread::Builder::new().name("exit".to_owned()).spawn(watch).map(drop).map_err(failed)
}

/// Waits until a stop signal should have ended the process, or an interrupt should have been noticed.
async fn wait_until_overdue(mut signals: StopListener, run: &Handle) {
    let mut notice_wait = NOTICE_WAIT_MAX;
    let mut end_by = None;
    let mut notice: Option<InterruptNotice> = None;
    loop {
        let notice_by = notice.as_ref().map(|notice| notice.by);
        tokio::select! {
            biased;
            request = signals.next_request() => match request {
                StopRequest::Terminate => end_by = end_by.or(Some(Instant::now() + END_WAIT_MAX)),
                StopRequest::Interrupt => {
                    let by = Instant::now() + notice_wait;
                    let by = notice_by.map_or(by, |earlier| by.min(earlier));
                    notice = Some(InterruptNotice { task: run.spawn(async {}), by });
                    notice_wait = REPEATED_NOTICE_WAIT_MAX;
                }
            },
            () = wait_for_notice(notice.as_mut()) => notice = None,
            () = wait_until(notice_by) => return,
            () = wait_until(end_by) => return,
        }
    }
}

/// The proof that a run has noticed an interrupt: its runtime carries out a task.
struct InterruptNotice {
    task: JoinHandle<()>,
    by: Instant,
}

async fn wait_for_notice(notice: Option<&mut InterruptNotice>) {
    let is_noticed = match notice {
        Some(notice) => (&mut notice.task).await.is_ok(),
        None => false,
    };
    if !is_noticed {
        std::future::pending::<()>().await;
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::{sync::watch, task::yield_now};

    use super::*;

    /// Sends requests, each after the last one was received; returns the seconds until the end, unless there is none.
    async fn seconds_to_end(run: &Handle, requests: &[StopRequest]) -> Option<u64> {
        let (sender, receiver) = watch::channel(None);
        let start = Instant::now();
        let overdue = wait_until_overdue(StopListener::Program(receiver), run);
        tokio::pin!(overdue);
        for &request in requests {
            sender.send_replace(Some(request));
            tokio::select! {
                biased;
                () = &mut overdue => return Some(start.elapsed().as_secs()),
                () = async { for _ in 0..3 { yield_now().await } } => {}
            }
        }
        tokio::time::timeout(Duration::from_mins(1), overdue).await.ok()?;
        Some(start.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn interrupts_end_only_a_run_that_does_not_notice_them() {
        use StopRequest::{Interrupt, Terminate};
        // A runtime of one thread that nothing drives is as stuck as one whose thread writes to a full pipe.
        let stuck = std::thread::spawn(|| agent::tokio_runtime().ok()).join().ok().flatten();
        let stuck = stuck.expect("there is a runtime");
        let cases: [(&[StopRequest], Option<u64>, Option<u64>); 4] = [
            (&[Interrupt], Some(10), None),
            (&[Interrupt, Interrupt], Some(1), None),
            (&[Terminate], Some(10), Some(10)),
            (&[Terminate, Interrupt, Interrupt], Some(1), Some(10)),
        ];
        for (requests, when_stuck, when_running) in cases {
            assert_eq!(seconds_to_end(stuck.handle(), requests).await, when_stuck, "stuck: {requests:?}");
            let running = Handle::current();
            assert_eq!(seconds_to_end(&running, requests).await, when_running, "running: {requests:?}");
        }
        stuck.shutdown_background();
    }
}
