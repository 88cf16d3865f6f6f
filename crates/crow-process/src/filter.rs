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
    CapturedOutput, CommandSpec, ExitReason, ProcessGroups, SpawnError,
    groups::GroupGuard,
    output::{OutputCollector, OutputLimits},
    program::{GRACE, REAP, exit_reason, group_leader},
};

/// How long output is still awaited when the child is gone; only a process it left behind holds the pipes.
const DRAIN: Duration = Duration::from_millis(100);

/// A quarter of what a pipe holds on Linux: answers are short.
const READ_BYTES: usize = 16 * 1024;

/// The most that two pipes can be made to hold; more than this after the end comes from somebody still writing.
const PIPES_BYTES_MAX: usize = 2 * 1024 * 1024;

/// How far a filter may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterLimits {
    /// How long it may run.
    pub timeout: Duration,
    /// How much of the beginning of its stdout is kept.
    pub stdout_bytes: usize,
    /// How much of the end of its stderr is kept.
    pub stderr_bytes: usize,
}

/// What came of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterResult {
    /// How it ended.
    pub ended: ExitReason,
    /// The beginning of what it answered, with a note of what was left out.
    pub stdout: CapturedOutput,
    /// The end of what it complained of, with a note of what was left out.
    pub stderr: CapturedOutput,
}

/// Runs a program on `input` to its end. It need not read all of that.
///
/// Timeout and cancel ask the whole group to end, then kill it. Dropping the future kills it at once.
pub async fn run_filter(
    groups: &ProcessGroups,
    command: CommandSpec,
    input: Vec<u8>,
    bounds: FilterLimits,
    cut: &CancellationToken,
) -> Result<FilterResult, SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    if cut.is_cancelled() {
        let (stdout, stderr) = (CapturedOutput::default(), CapturedOutput::default());
        return Ok(FilterResult { ended: ExitReason::Cancelled, stdout, stderr });
    }
    let deadline = Instant::now() + bounds.timeout;
    let child = command.spawn_piped().await?;
    let mut filter = FilterProcess {
        group: groups.guard_group(group_leader(&child)?),
        child,
        pipes: OpenPipes::default(),
        input,
        n_written: 0,
        stdout: OutputCollector::new(OutputLimits {
            head_bytes: bounds.stdout_bytes,
            tail_bytes: 0,
            spill: None,
        }),
        stderr: OutputCollector::new(OutputLimits {
            head_bytes: 0,
            tail_bytes: bounds.stderr_bytes,
            spill: None,
        }),
    };
    filter.pipes = OpenPipes::take_from(&mut filter.child);
    let ended = match filter.wait_for_exit(cut, deadline).await? {
        FilterWait::Exited(status) => {
            filter.drain_output(Instant::now() + DRAIN).await;
            exit_reason(status)
        }
        FilterWait::TimedOut => {
            filter.terminate_group().await;
            ExitReason::TimedOut
        }
        FilterWait::Cut => {
            filter.terminate_group().await;
            ExitReason::Cancelled
        }
    };
    let (stdout, stderr) = filter.kill_and_collect().await;
    Ok(FilterResult { ended, stdout, stderr })
}

enum FilterWait {
    Exited(ExitStatus),
    TimedOut,
    Cut,
}

/// The pipes that are still open on both sides.
#[derive(Default)]
struct OpenPipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl OpenPipes {
    fn take_from(child: &mut Child) -> Self {
        Self { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() }
    }
}

/// The guard stands before the child: the group is killed before the child is given to the reaper.
struct FilterProcess {
    group: GroupGuard,
    child: Child,
    pipes: OpenPipes,
    input: Vec<u8>,
    n_written: usize,
    stdout: OutputCollector,
    stderr: OutputCollector,
}

impl FilterProcess {
    /// Feeds and reads until the child exits or has to.
    async fn wait_for_exit(&mut self, cut: &CancellationToken, deadline: Instant) -> io::Result<FilterWait> {
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(FilterWait::Exited),
                () = cut.cancelled() => return Ok(FilterWait::Cut),
                () = sleep_until(deadline) => return Ok(FilterWait::TimedOut),
                n_more = write_input(&mut self.pipes.stdin, &self.input[self.n_written..]) => self.n_written += n_more,
                n_bytes = read_output(&mut self.pipes.stdout, &mut out) => self.stdout.push(&out[..n_bytes]).await,
                n_bytes = read_output(&mut self.pipes.stderr, &mut err) => self.stderr.push(&err[..n_bytes]).await,
            }
        }
    }

    /// Reads until every writer is gone or the time is over. What the pipes hold already is read even by a busy
    /// machine that notices late: it may be the answer.
    async fn drain_output(&mut self, deadline: Instant) {
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        let mut n_late_max = PIPES_BYTES_MAX;
        while n_late_max > 0 && (self.pipes.stdout.is_some() || self.pipes.stderr.is_some()) {
            let n_read = tokio::select! {
                biased;
                n_bytes = read_output(&mut self.pipes.stdout, &mut out) => {
                    self.stdout.push(&out[..n_bytes]).await;
                    n_bytes
                }
                n_bytes = read_output(&mut self.pipes.stderr, &mut err) => {
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

    async fn terminate_group(&mut self) {
        self.group.terminate();
        // How it ends is of no interest any more, only that it does.
        let _ = timeout(GRACE, self.child.wait()).await;
    }

    /// Kills what is left of the group and takes what is left in the pipes.
    async fn kill_and_collect(mut self) -> (CapturedOutput, CapturedOutput) {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not gone");
        }
        self.drain_output(Instant::now() + DRAIN).await;
        (self.stdout.take_output().await, self.stderr.take_output().await)
    }
}

/// Writes a piece and closes the pipe behind the last one. A program that does not read on has read enough.
async fn write_input(pipe: &mut Option<ChildStdin>, input: &[u8]) -> usize {
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
async fn read_output(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
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
