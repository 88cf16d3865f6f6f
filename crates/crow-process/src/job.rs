//! A program in the background: read, written to and ended through handles, and killed with its last handle.

use std::{io, time::Duration};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    CapturedOutput, ExitReason, RunningProgram, WaitOutcome, output::OutputCollector, program::NoWatcher,
    system::terminal::TerminalInput,
};

/// The caller waits for each answer, so one request is being handled and few wait.
const REQUESTS_LEN: usize = 4;

/// The input that may wait to be read by the program: a long paste.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// A terminal in its default state drops what exceeds 4096 bytes of one line.
const INPUT_LINE_BYTES_MAX: usize = 4000;

/// The bytes read from a job at a time: its output is not awaited, and it shares the thread with everything else.
const READ_INTERVAL_BYTES_MAX: usize = 256 * 1024;
const READ_INTERVAL: Duration = Duration::from_millis(10);

/// The status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobStatus {
    /// Bytes of output since it was last taken.
    pub n_unread: u64,
    /// Set when it has ended.
    pub exit: Option<ExitReason>,
}

/// The conditions that end a wait for a job's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobWaitOptions {
    /// The maximum wait.
    pub timeout: Duration,
    /// The wait ends after this time without output.
    pub quiet_period: Duration,
    /// Output counts from this number of unread bytes on.
    pub n_unread_min: u64,
}

/// The reason why input could not be written to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobInputError {
    #[error("it has ended")]
    Ended,
    /// It was started without input.
    #[error("it has no input")]
    NoInput,
    /// The program does not read its input.
    #[error("it does not read its previous input")]
    BufferFull,
    /// A terminal would truncate the line.
    #[error("one of its lines is longer than {INPUT_LINE_BYTES_MAX} bytes and may be truncated")]
    LongLine,
}

/// A program in the background. Dropping it kills the program at once.
#[derive(Debug)]
pub struct BackgroundJob {
    requests: mpsc::Sender<JobRequest>,
    status_updates: watch::Receiver<JobStatus>,
}

#[derive(Debug)]
enum JobRequest {
    TakeOutput(oneshot::Sender<CapturedOutput>),
    WriteInput(Vec<u8>, oneshot::Sender<Result<(), JobInputError>>),
    Interrupt,
    ShutDown,
}

impl BackgroundJob {
    pub(crate) fn start(program: RunningProgram, deadline: Instant) -> Self {
        let (requests, inbox) = mpsc::channel(REQUESTS_LEN);
        let initial_status = JobStatus { n_unread: program.output.n_bytes(), exit: None };
        let (status_sender, status_updates) = watch::channel(initial_status);
        tokio::spawn(drive_job(program, inbox, status_sender, deadline));
        Self { requests, status_updates }
    }

    /// Returns its status.
    pub fn status(&self) -> JobStatus {
        *self.status_updates.borrow()
    }

    /// Waits until it has ended, or has printed something and then been quiet.
    pub async fn wait_until_quiet(&self, options: JobWaitOptions) {
        let mut status_updates = self.status_updates.clone();
        let deadline = Instant::now() + options.timeout;
        loop {
            let status = *status_updates.borrow_and_update();
            if status.exit.is_some() {
                return;
            }
            let wake_at = match status.n_unread > options.n_unread_min {
                true => deadline.min(Instant::now() + options.quiet_period),
                false => deadline,
            };
            match timeout_at(wake_at, status_updates.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Waits until it has ended, at most `within`.
    pub async fn wait_until_ended(&self, timeout: Duration) {
        let mut status_updates = self.status_updates.clone();
        // The status is in the watch channel.
        let _ = timeout_at(Instant::now() + timeout, status_updates.wait_for(|status| status.exit.is_some()))
            .await;
    }

    /// Takes the output since the last call.
    pub async fn take_output(&self) -> CapturedOutput {
        let (answer, reply) = oneshot::channel();
        // A job that failed has no more output.
        let _ = self.requests.send(JobRequest::TakeOutput(answer)).await;
        reply.await.unwrap_or_default()
    }

    /// Writes to its input.
    pub async fn write_input(&self, bytes: Vec<u8>) -> Result<(), JobInputError> {
        let (answer, reply) = oneshot::channel();
        let result = self.requests.send(JobRequest::WriteInput(bytes, answer)).await;
        result.map_err(|_| JobInputError::Ended)?;
        reply.await.unwrap_or(Err(JobInputError::Ended))
    }

    /// Interrupts it, whether it has input or not.
    pub async fn interrupt(&self) {
        let _ = self.requests.send(JobRequest::Interrupt).await;
    }

    /// Ends it: SIGTERM first, then SIGKILL.
    pub async fn shut_down(&self) {
        let mut status_updates = self.status_updates.clone();
        let _ = self.requests.send(JobRequest::ShutDown).await;
        // An error means that the job's task has ended.
        let _ = status_updates.wait_for(|status| status.exit.is_some()).await;
    }
}

/// Drives a program until it has ended and its output was taken, or all handles are dropped.
async fn drive_job(
    program: RunningProgram,
    mut requests: mpsc::Receiver<JobRequest>,
    status_sender: watch::Sender<JobStatus>,
    deadline: Instant,
) {
    let Some((exit, mut output)) = drive_until_ended(program, &mut requests, &status_sender, deadline).await
    else {
        return;
    };
    status_sender.send_replace(JobStatus { n_unread: output.n_bytes(), exit: Some(exit) });
    while let Some(request) = requests.recv().await {
        match request {
            // Output whose request was abandoned stays for the next one.
            JobRequest::TakeOutput(answer) if answer.is_closed() => {}
            JobRequest::TakeOutput(answer) => send_output(output.take_output().await, answer, &status_sender),
            JobRequest::WriteInput(_, answer) => drop(answer.send(Err(JobInputError::Ended))),
            JobRequest::Interrupt | JobRequest::ShutDown => {}
        }
    }
}

/// Drives a program until it ends; `None` if all handles are dropped before.
async fn drive_until_ended(
    mut program: RunningProgram,
    requests: &mut mpsc::Receiver<JobRequest>,
    status_sender: &watch::Sender<JobStatus>,
    deadline: Instant,
) -> Option<(ExitReason, OutputCollector)> {
    let mut pending_input: Vec<u8> = Vec::new();
    let mut budget = ReadBudget::start_interval();
    let outcome = loop {
        tokio::select! {
            biased;
            order = requests.recv() => match order? {
                JobRequest::TakeOutput(answer) if answer.is_closed() => {}
                JobRequest::TakeOutput(answer) => send_output(program.output.take_partial_output().await, answer, status_sender),
                JobRequest::WriteInput(bytes, answer) => {
                    let fed = queue_input(&program, &mut pending_input, &bytes);
                    // The caller may have stopped waiting.
                    let _ = answer.send(fed);
                }
                JobRequest::Interrupt => program.group.interrupt(),
                JobRequest::ShutDown => break WaitOutcome::Cancelled,
            },
            status = program.child.wait() => match status {
                Ok(status) => break WaitOutcome::Exited(status),
                Err(error) => {
                    tracing::warn!(%error, "could not wait for a program; ending it");
                    break WaitOutcome::Cancelled;
                }
            },
            () = sleep_until(deadline) => break WaitOutcome::TimedOut,
            written = write_terminal_input(&mut program.input, &pending_input), if !pending_input.is_empty() => match written {
                Ok(n_bytes) => drop(pending_input.drain(..n_bytes)),
                Err(error) => {
                    tracing::debug!(%error, "a program accepts no more input");
                    pending_input.clear();
                }
            },
            () = sleep_until(budget.resets_at), if budget.is_exhausted() => budget = ReadBudget::start_interval(),
            read = program.source.read(&mut program.buffer), if !budget.is_exhausted() => {
                budget.n_bytes += program.record_read(read, &mut NoWatcher).await;
                status_sender.send_modify(|pulse| pulse.n_unread = program.output.n_bytes());
            }
        }
    };
    let exit = program.drain_or_terminate(outcome, &mut NoWatcher).await;
    Some((exit, program.kill_and_collect(&mut NoWatcher).await))
}

fn send_output(
    output: CapturedOutput,
    answer: oneshot::Sender<CapturedOutput>,
    status_sender: &watch::Sender<JobStatus>,
) {
    status_sender.send_modify(|status| status.n_unread = 0);
    let _ = answer.send(output);
}

fn queue_input(
    program: &RunningProgram,
    pending_input: &mut Vec<u8>,
    bytes: &[u8],
) -> Result<(), JobInputError> {
    if program.input.is_none() {
        return Err(JobInputError::NoInput);
    }
    if bytes.split(|&byte| byte == b'\r').any(|line| line.len() > INPUT_LINE_BYTES_MAX) {
        return Err(JobInputError::LongLine);
    }
    if pending_input.len() + bytes.len() > INPUT_BYTES_MAX {
        return Err(JobInputError::BufferFull);
    }
    pending_input.extend_from_slice(bytes);
    Ok(())
}

async fn write_terminal_input(input: &mut Option<TerminalInput>, bytes: &[u8]) -> io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Ok(bytes.len()),
    }
}

/// A short interval, and the bytes read in it.
struct ReadBudget {
    resets_at: Instant,
    n_bytes: usize,
}

impl ReadBudget {
    fn start_interval() -> Self {
        Self { resets_at: Instant::now() + READ_INTERVAL, n_bytes: 0 }
    }

    fn is_exhausted(&self) -> bool {
        self.n_bytes >= READ_INTERVAL_BYTES_MAX
    }
}
