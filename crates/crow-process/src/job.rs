//! A program that runs on by itself: looked at, typed to and ended from elsewhere, gone with its last handle.

use std::{io, time::Duration};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    CapturedOutput, ExitReason, RunningProgram, WaitOutcome, output::OutputCollector, program::NoWatcher,
    terminal::TerminalInput,
};

/// Whoever holds a job waits for its answer, so one order is at work and few wait.
const ORDERS_LEN: usize = 4;

/// What may wait to be read by the program: a long paste.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// A terminal in its ordinary state drops what goes beyond 4096 bytes of one line.
const INPUT_LINE_BYTES_MAX: usize = 4000;

/// What is read of a job in one beat: nobody waits for its output, and everybody else has the same thread.
const BEAT_BYTES_MAX: usize = 256 * 1024;
const BEAT: Duration = Duration::from_millis(10);

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobStatus {
    /// How much it said since it was last taken.
    pub n_unread: u64,
    /// How it ended, when it has.
    pub ended: Option<ExitReason>,
}

/// How long to wait for what a job says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobWaitOptions {
    /// At most so long.
    pub within: Duration,
    /// Until it was quiet for so long.
    pub quiet: Duration,
    /// What it said counts from here on.
    pub n_unread_min: u64,
}

/// Why something could not be typed to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobInputError {
    /// It is gone.
    #[error("it has ended")]
    Ended,
    /// It was started without.
    #[error("it has no input")]
    NoInput,
    /// It does not read.
    #[error("it does not read what it was sent before")]
    Full,
    /// A terminal would cut it.
    #[error("a line of it is longer than {INPUT_LINE_BYTES_MAX} bytes, which may not arrive whole")]
    LongLine,
}

/// A program that runs on by itself. Dropping it kills the program at once.
#[derive(Debug)]
pub struct BackgroundJob {
    orders: mpsc::Sender<JobRequest>,
    pulse: watch::Receiver<JobStatus>,
}

#[derive(Debug)]
enum JobRequest {
    Take(oneshot::Sender<CapturedOutput>),
    Feed(Vec<u8>, oneshot::Sender<Result<(), JobInputError>>),
    Interrupt,
    End,
}

impl BackgroundJob {
    pub(crate) fn start(program: RunningProgram, deadline: Instant) -> Self {
        let (orders, inbox) = mpsc::channel(ORDERS_LEN);
        let now = JobStatus { n_unread: program.output.n_bytes(), ended: None };
        let (beats, pulse) = watch::channel(now);
        tokio::spawn(drive_job(program, inbox, beats, deadline));
        Self { orders, pulse }
    }

    /// Tells how it stands.
    pub fn status(&self) -> JobStatus {
        *self.pulse.borrow()
    }

    /// Waits until it ended, or until it said something and then was quiet.
    pub async fn wait_until_quiet(&self, patience: JobWaitOptions) {
        let mut pulse = self.pulse.clone();
        let deadline = Instant::now() + patience.within;
        loop {
            let now = *pulse.borrow_and_update();
            if now.ended.is_some() {
                return;
            }
            let until = match now.n_unread > patience.n_unread_min {
                true => deadline.min(Instant::now() + patience.quiet),
                false => deadline,
            };
            match timeout_at(until, pulse.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Waits until it ended, at most so long.
    pub async fn wait_until_ended(&self, within: Duration) {
        let mut pulse = self.pulse.clone();
        // Whether it did is in its pulse.
        let _ = timeout_at(Instant::now() + within, pulse.wait_for(|pulse| pulse.ended.is_some())).await;
    }

    /// Takes what it said since this was last done.
    pub async fn take_output(&self) -> CapturedOutput {
        let (answer, taken) = oneshot::channel();
        // A job that broke says nothing more.
        let _ = self.orders.send(JobRequest::Take(answer)).await;
        taken.await.unwrap_or_default()
    }

    /// Types to it.
    pub async fn write_input(&self, bytes: Vec<u8>) -> Result<(), JobInputError> {
        let (answer, fed) = oneshot::channel();
        let sent = self.orders.send(JobRequest::Feed(bytes, answer)).await;
        sent.map_err(|_| JobInputError::Ended)?;
        fed.await.unwrap_or(Err(JobInputError::Ended))
    }

    /// Interrupts it, whether it can be typed to or not.
    pub async fn interrupt(&self) {
        let _ = self.orders.send(JobRequest::Interrupt).await;
    }

    /// Ends it: it is asked to, and killed after a moment.
    pub async fn shut_down(&self) {
        let mut pulse = self.pulse.clone();
        let _ = self.orders.send(JobRequest::End).await;
        // An error means that nobody drives it any more.
        let _ = pulse.wait_for(|pulse| pulse.ended.is_some()).await;
    }
}

/// Drives a program until it ended and nobody wants what it said, or nobody wants it at all.
async fn drive_job(
    program: RunningProgram,
    mut orders: mpsc::Receiver<JobRequest>,
    pulse: watch::Sender<JobStatus>,
    deadline: Instant,
) {
    let Some((ended, mut output)) = drive_until_ended(program, &mut orders, &pulse, deadline).await else {
        return;
    };
    pulse.send_replace(JobStatus { n_unread: output.n_bytes(), ended: Some(ended) });
    while let Some(order) = orders.recv().await {
        match order {
            // What nobody waits for any longer is there for the next who asks.
            JobRequest::Take(answer) if answer.is_closed() => {}
            JobRequest::Take(answer) => send_output(output.take_output().await, answer, &pulse),
            JobRequest::Feed(_, answer) => drop(answer.send(Err(JobInputError::Ended))),
            JobRequest::Interrupt | JobRequest::End => {}
        }
    }
}

/// Drives a program to its end; `None` when nobody wants it before that.
async fn drive_until_ended(
    mut program: RunningProgram,
    orders: &mut mpsc::Receiver<JobRequest>,
    pulse: &watch::Sender<JobStatus>,
    deadline: Instant,
) -> Option<(ExitReason, OutputCollector)> {
    let mut typed: Vec<u8> = Vec::new();
    let mut beat = ReadBudget::start_interval();
    let happened = loop {
        tokio::select! {
            biased;
            order = orders.recv() => match order? {
                JobRequest::Take(answer) if answer.is_closed() => {}
                JobRequest::Take(answer) => send_output(program.output.take_partial_output().await, answer, pulse),
                JobRequest::Feed(bytes, answer) => {
                    let fed = queue_input(&program, &mut typed, &bytes);
                    // Whoever gave up waiting may look later.
                    let _ = answer.send(fed);
                }
                JobRequest::Interrupt => program.group.interrupt(),
                JobRequest::End => break WaitOutcome::Cut,
            },
            status = program.child.wait() => match status {
                Ok(status) => break WaitOutcome::Exited(status),
                Err(error) => {
                    tracing::warn!(%error, "could not wait for a program; it is ended");
                    break WaitOutcome::Cut;
                }
            },
            () = sleep_until(deadline) => break WaitOutcome::TimedOut,
            written = write_terminal_input(&mut program.input, &typed), if !typed.is_empty() => match written {
                Ok(n_bytes) => drop(typed.drain(..n_bytes)),
                Err(error) => {
                    tracing::debug!(%error, "a program takes no more input");
                    typed.clear();
                }
            },
            () = sleep_until(beat.next), if beat.is_exhausted() => beat = ReadBudget::start_interval(),
            read = program.source.read(&mut program.buffer), if !beat.is_exhausted() => {
                beat.n_bytes += program.record_read(read, &mut NoWatcher).await;
                pulse.send_modify(|pulse| pulse.n_unread = program.output.n_bytes());
            }
        }
    };
    let ended = program.drain_or_terminate(happened, &mut NoWatcher).await;
    Some((ended, program.kill_and_collect(&mut NoWatcher).await))
}

fn send_output(
    taken: CapturedOutput,
    answer: oneshot::Sender<CapturedOutput>,
    pulse: &watch::Sender<JobStatus>,
) {
    pulse.send_modify(|pulse| pulse.n_unread = 0);
    let _ = answer.send(taken);
}

fn queue_input(program: &RunningProgram, typed: &mut Vec<u8>, bytes: &[u8]) -> Result<(), JobInputError> {
    if program.input.is_none() {
        return Err(JobInputError::NoInput);
    }
    if bytes.split(|&byte| byte == b'\r').any(|line| line.len() > INPUT_LINE_BYTES_MAX) {
        return Err(JobInputError::LongLine);
    }
    if typed.len() + bytes.len() > INPUT_BYTES_MAX {
        return Err(JobInputError::Full);
    }
    typed.extend_from_slice(bytes);
    Ok(())
}

async fn write_terminal_input(input: &mut Option<TerminalInput>, bytes: &[u8]) -> io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Ok(bytes.len()),
    }
}

/// A short time, and what was read in it.
struct ReadBudget {
    next: Instant,
    n_bytes: usize,
}

impl ReadBudget {
    fn start_interval() -> Self {
        Self { next: Instant::now() + BEAT, n_bytes: 0 }
    }

    fn is_exhausted(&self) -> bool {
        self.n_bytes >= BEAT_BYTES_MAX
    }
}
