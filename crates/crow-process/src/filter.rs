//! A program that gets an input and answers it: stdin in, stdout and stderr separate, and an end that is always
//! reached. Like `run` it waits for several things at once; it reports no progress.

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
    program::{GRACE, REAP, exit_reason},
    system::spawn::GroupedChild,
};

/// The wait for more output after the child has exited; only a process that it left behind holds the pipes.
const DRAIN: Duration = Duration::from_millis(100);

/// A quarter of a pipe's capacity on Linux: answers are short.
const READ_BYTES: usize = 16 * 1024;

/// The maximum capacity of two pipes; more than this after the exit is from a process that is still writing.
const PIPES_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The limits of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterLimits {
    pub timeout: Duration,
    /// Bytes of stdout to keep, from its beginning.
    pub stdout_bytes: usize,
    /// Bytes of stderr to keep, from its end.
    pub stderr_bytes: usize,
}

/// The result of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterResult {
    pub exit: ExitReason,
    /// The beginning of its stdout, with a note of what was omitted.
    pub stdout: CapturedOutput,
    /// The end of its stderr, with a note of what was omitted.
    pub stderr: CapturedOutput,
}

/// Runs a program with `input` until it ends. The program need not read all of it.
///
/// A timeout or a cancellation sends SIGTERM to the whole group, then SIGKILL. Dropping the future kills it at once.
pub async fn run_filter(
    groups: &ProcessGroups,
    command: CommandSpec,
    input: Vec<u8>,
    limits: FilterLimits,
    cancel: &CancellationToken,
) -> Result<FilterResult, SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    if cancel.is_cancelled() {
        let (stdout, stderr) = (CapturedOutput::default(), CapturedOutput::default());
        return Ok(FilterResult { exit: ExitReason::Cancelled, stdout, stderr });
    }
    let deadline = Instant::now() + limits.timeout;
    let GroupedChild { child, group } = command.spawn_piped().await?;
    let mut filter = FilterProcess {
        group: groups.guard_group(group),
        child,
        pipes: OpenPipes::default(),
        input,
        n_written: 0,
        stdout: OutputCollector::new(OutputLimits {
            head_bytes: limits.stdout_bytes,
            tail_bytes: 0,
            spill_dir: None,
        }),
        stderr: OutputCollector::new(OutputLimits {
            head_bytes: 0,
            tail_bytes: limits.stderr_bytes,
            spill_dir: None,
        }),
    };
    filter.pipes = OpenPipes::take_from(&mut filter.child);
    let exit = match filter.wait_for_exit(cancel, deadline).await? {
        FilterWait::Exited(status) => {
            filter.drain_output(Instant::now() + DRAIN).await;
            exit_reason(status)
        }
        FilterWait::TimedOut => {
            filter.terminate_group().await;
            ExitReason::TimedOut
        }
        FilterWait::Cancelled => {
            filter.terminate_group().await;
            ExitReason::Cancelled
        }
    };
    let (stdout, stderr) = filter.kill_and_collect().await;
    Ok(FilterResult { exit, stdout, stderr })
}

enum FilterWait {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
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

/// The guard is the first field: the group is killed before the child is given to the reaper.
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
    /// Writes input and reads output until the child exits or must end.
    async fn wait_for_exit(
        &mut self,
        cancel: &CancellationToken,
        deadline: Instant,
    ) -> io::Result<FilterWait> {
        let (mut stdout_buffer, mut stderr_buffer) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(FilterWait::Exited),
                () = cancel.cancelled() => return Ok(FilterWait::Cancelled),
                () = sleep_until(deadline) => return Ok(FilterWait::TimedOut),
                n_more = write_input(&mut self.pipes.stdin, &self.input[self.n_written..]) => self.n_written += n_more,
                n_bytes = read_output(&mut self.pipes.stdout, &mut stdout_buffer) => self.stdout.push(&stdout_buffer[..n_bytes]).await,
                n_bytes = read_output(&mut self.pipes.stderr, &mut stderr_buffer) => self.stderr.push(&stderr_buffer[..n_bytes]).await,
            }
        }
    }

    /// Reads until every writer has closed the pipes or the deadline is reached. What the pipes already hold is read
    /// even on a busy machine that notices late: it may be the answer.
    async fn drain_output(&mut self, deadline: Instant) {
        let (mut stdout_buffer, mut stderr_buffer) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        let mut n_late_bytes_left = PIPES_BYTES_MAX;
        while n_late_bytes_left > 0 && (self.pipes.stdout.is_some() || self.pipes.stderr.is_some()) {
            let n_read = tokio::select! {
                biased;
                n_bytes = read_output(&mut self.pipes.stdout, &mut stdout_buffer) => {
                    self.stdout.push(&stdout_buffer[..n_bytes]).await;
                    n_bytes
                }
                n_bytes = read_output(&mut self.pipes.stderr, &mut stderr_buffer) => {
                    self.stderr.push(&stderr_buffer[..n_bytes]).await;
                    n_bytes
                }
                () = sleep_until(deadline) => return,
            };
            if Instant::now() >= deadline {
                n_late_bytes_left = n_late_bytes_left.saturating_sub(n_read);
            }
        }
    }

    async fn terminate_group(&mut self) {
        self.group.terminate();
        // How it ends no longer matters, only that it does.
        let _ = timeout(GRACE, self.child.wait()).await;
    }

    /// Kills the rest of the group and reads the rest of the pipes.
    async fn kill_and_collect(mut self) -> (CapturedOutput, CapturedOutput) {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not ended");
        }
        self.drain_output(Instant::now() + DRAIN).await;
        (self.stdout.take_output().await, self.stderr.take_output().await)
    }
}

/// Writes a piece and closes the pipe after the last one. A program that stops reading has read enough.
async fn write_input(pipe: &mut Option<ChildStdin>, input: &[u8]) -> usize {
    let Some(open_pipe) = pipe else { return pending().await };
    match open_pipe.write(input).await {
        Ok(n_written) if n_written < input.len() => n_written,
        Ok(_) | Err(_) => {
            *pipe = None;
            input.len()
        }
    }
}

/// Reads a piece. Zero bytes are the end; after that this waits forever.
async fn read_output(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open_pipe) = pipe else { return pending().await };
    match open_pipe.read(buffer).await {
        Ok(0) => *pipe = None,
        Ok(n_bytes) => return n_bytes,
        Err(error) => {
            tracing::warn!(%error, "could not read a program's output");
            *pipe = None;
        }
    }
    0
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
