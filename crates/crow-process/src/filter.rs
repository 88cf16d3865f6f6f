//! A program that is given a text and answers it: input in, both outputs apart, and an end that is always reached.
//! Like `run` it waits for several things at once; it shows nobody what happens meanwhile.

use std::{future::pending, io, process::ExitStatus, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Command, Ended, Groups, Output, SpawnError,
    groups::Guard,
    output::{Collector, Kept},
    program::{GRACE, REAP, how, leader},
};

/// How long output is still awaited when the child is gone; only a process it left behind holds the pipes.
const DRAIN: Duration = Duration::from_millis(100);

/// A quarter of what a pipe holds on Linux: answers are short.
const READ_BYTES: usize = 16 * 1024;

/// The most that two pipes can be made to hold; more than this after the end comes from somebody still writing.
const PIPES_BYTES_MAX: usize = 2 * 1024 * 1024;

/// How far a filter may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterBounds {
    /// How long it may run.
    pub timeout: Duration,
    /// How much of the beginning of its stdout is kept.
    pub stdout_bytes: usize,
    /// How much of the end of its stderr is kept.
    pub stderr_bytes: usize,
}

/// What came of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filtered {
    /// How it ended.
    pub ended: Ended,
    /// The beginning of what it answered, with a note of what was left out.
    pub stdout: Output,
    /// The end of what it complained of, with a note of what was left out.
    pub stderr: Output,
}

/// Runs a program on `input` to its end. It need not read all of that.
///
/// Timeout and cancel ask the whole group to end, then kill it. Dropping the future kills it at once.
pub async fn filter(
    groups: &Groups,
    command: Command,
    input: Vec<u8>,
    bounds: FilterBounds,
    cut: &CancellationToken,
) -> Result<Filtered, SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    if cut.is_cancelled() {
        let (stdout, stderr) = (Output::default(), Output::default());
        return Ok(Filtered { ended: Ended::Cancelled, stdout, stderr });
    }
    let deadline = Instant::now() + bounds.timeout;
    let child = command.spawn_piped().await?;
    let mut filter = Filter {
        group: groups.guard(leader(&child)?),
        child,
        pipes: Pipes::default(),
        input,
        n_written: 0,
        stdout: Collector::new(Kept { head_bytes: bounds.stdout_bytes, tail_bytes: 0, spill: None }),
        stderr: Collector::new(Kept { head_bytes: 0, tail_bytes: bounds.stderr_bytes, spill: None }),
    };
    filter.pipes = Pipes::of(&mut filter.child);
    let ended = match filter.watch(cut, deadline).await? {
        Happened::Exited(status) => {
            filter.drain(Instant::now() + DRAIN).await;
            how(status)
        }
        Happened::TimedOut => {
            filter.ask_to_end().await;
            Ended::TimedOut
        }
        Happened::Cut => {
            filter.ask_to_end().await;
            Ended::Cancelled
        }
    };
    let (stdout, stderr) = filter.end().await;
    Ok(Filtered { ended, stdout, stderr })
}

enum Happened {
    Exited(ExitStatus),
    TimedOut,
    Cut,
}

/// The pipes that are still open on both sides.
#[derive(Default)]
struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Pipes {
    fn of(child: &mut Child) -> Self {
        Self { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() }
    }
}

/// The guard stands before the child: the group is killed before the child is given to the reaper.
struct Filter {
    group: Guard,
    child: Child,
    pipes: Pipes,
    input: Vec<u8>,
    n_written: usize,
    stdout: Collector,
    stderr: Collector,
}

impl Filter {
    /// Feeds and reads until the child exits or has to.
    async fn watch(&mut self, cut: &CancellationToken, deadline: Instant) -> io::Result<Happened> {
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(Happened::Exited),
                () = cut.cancelled() => return Ok(Happened::Cut),
                () = sleep_until(deadline) => return Ok(Happened::TimedOut),
                n_more = write(&mut self.pipes.stdin, &self.input[self.n_written..]) => self.n_written += n_more,
                n_bytes = read(&mut self.pipes.stdout, &mut out) => self.stdout.push(&out[..n_bytes]).await,
                n_bytes = read(&mut self.pipes.stderr, &mut err) => self.stderr.push(&err[..n_bytes]).await,
            }
        }
    }

    /// Reads until every writer is gone or the time is over. What the pipes hold already is read even by a busy
    /// machine that notices late: it may be the answer.
    async fn drain(&mut self, deadline: Instant) {
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        let mut n_late_max = PIPES_BYTES_MAX;
        while n_late_max > 0 && (self.pipes.stdout.is_some() || self.pipes.stderr.is_some()) {
            let n_read = tokio::select! {
                biased;
                n_bytes = read(&mut self.pipes.stdout, &mut out) => {
                    self.stdout.push(&out[..n_bytes]).await;
                    n_bytes
                }
                n_bytes = read(&mut self.pipes.stderr, &mut err) => {
                    self.stderr.push(&err[..n_bytes]).await;
                    n_bytes
                }
                () = sleep_until(deadline) => return,
            };
            if Instant::now() >= deadline {
                n_late_max = n_late_max.saturating_sub(n_read);
            }
        }
    }

    async fn ask_to_end(&mut self) {
        self.group.terminate();
        // How it ends is of no interest any more, only that it does.
        let _ = timeout(GRACE, self.child.wait()).await;
    }

    /// Kills what is left of the group and takes what is left in the pipes.
    async fn end(mut self) -> (Output, Output) {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not gone");
        }
        self.drain(Instant::now() + DRAIN).await;
        (self.stdout.take().await, self.stderr.take().await)
    }
}

/// Writes a piece and closes the pipe behind the last one. A program that does not read on has read enough.
async fn write(pipe: &mut Option<ChildStdin>, input: &[u8]) -> usize {
    let Some(open) = pipe else { return pending().await };
    match open.write(input).await {
        Ok(n_written) if n_written < input.len() => n_written,
        Ok(_) | Err(_) => {
            *pipe = None;
            input.len()
        }
    }
}

/// Reads a piece; nothing is the end, after which this waits for ever.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else { return pending().await };
    match open.read(buffer).await {
        Ok(0) => *pipe = None,
        Ok(n_bytes) => return n_bytes,
        Err(error) => {
            tracing::warn!(%error, "could not read a program's output");
            *pipe = None;
        }
    }
    0
}

#[cfg(test)]
mod tests;
