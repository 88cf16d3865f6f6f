//! A running program and its output: waits for it and ends it on request; does not decide when.

use std::{fmt, future::pending, io, process::ExitStatus, time::Duration};

use tokio::{
    io::AsyncReadExt,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    BackgroundJob, CapturedOutput, CommandSpec, OutputLimits, ProcessGroups, SpawnError,
    command::SpawnedChild,
    groups::GroupGuard,
    output::OutputCollector,
    system::{
        exit_status::signal_number,
        spawn::{GroupedChild, OutputPipe, ProgramChild, to_program_child},
        terminal::{PseudoTerminal, TerminalInput, TerminalOutput, TerminalProgram},
    },
};

/// Between SIGTERM and SIGKILL: enough to remove a lock file, short enough for a user.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// The wait for more output after the child has exited; only a process that it left behind holds the pipe.
const DRAIN: Duration = Duration::from_millis(100);

/// A killed child ends at once unless the kernel itself is stuck, and then no caller is kept waiting.
pub(crate) const REAP: Duration = Duration::from_secs(2);

/// People read no faster than this, and every snapshot costs a copy of the text.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// A pipe's capacity on Linux: one read empties it.
const READ_BYTES: usize = 64 * 1024;

/// A pipe's maximum capacity; more than this after the exit is from a process that is still writing.
const PIPE_BYTES_MAX: usize = 1024 * 1024;

/// The standard streams of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdioKind {
    /// A pipe for its output, and no input.
    Pipe,
    /// A terminal of its own.
    Terminal,
}

/// The reason for a program's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that Crow did not send.
    Signalled(i32),
    /// Killed after its timeout.
    TimedOut,
    /// Cancelled, perhaps before it began.
    Cancelled,
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramResult {
    pub exit: ExitReason,
    /// Its output until then, stdout and stderr in the order they arrived.
    pub output: CapturedOutput,
}

/// An observer of a running program. A closure over text observes snapshots.
pub trait OutputWatcher: Send {
    /// Receives a piece of output as it arrives.
    fn on_output(&mut self, _bytes: &[u8]) {}

    /// May read the bounded text so far; called periodically.
    fn on_snapshot(&mut self, text: &dyn Fn() -> String);
}

impl<F: FnMut(&str) + Send> OutputWatcher for F {
    fn on_snapshot(&mut self, text: &dyn Fn() -> String) {
        self(&text());
    }
}

/// An observer that ignores everything.
pub(crate) struct NoWatcher;

impl OutputWatcher for NoWatcher {
    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}

/// The reason why waiting for a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It has exited.
    Exited(ExitStatus),
    /// The deadline was reached; it is still running.
    TimedOut,
    /// The wait was cancelled; it is still running.
    Cancelled,
}

impl fmt::Debug for RunningProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("group", &self.group).finish_non_exhaustive()
    }
}

/// A started program. Dropping it kills its whole group at once.
///
/// The guard is the first field: the group is killed before the child is given to the reaper.
pub struct RunningProgram {
    pub(crate) group: GroupGuard,
    pub(crate) child: ProgramChild,
    pub(crate) source: OutputSource,
    /// The terminal's input, if it has one.
    pub(crate) input: Option<TerminalInput>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) output: OutputCollector,
}

impl RunningProgram {
    /// Starts a program.
    pub async fn start(
        groups: &ProcessGroups,
        command: CommandSpec,
        stdio: StdioKind,
        limits: OutputLimits,
    ) -> Result<Self, SpawnError> {
        if groups.is_closed() {
            return Err(SpawnError::Closed);
        }
        let (child, group, source, input) = match stdio {
            StdioKind::Pipe => {
                let SpawnedChild { grouped: GroupedChild { child, group }, pipe } = command.spawn().await?;
                (to_program_child(child), group, OutputSource::Pipe(pipe), None)
            }
            StdioKind::Terminal => {
                let TerminalProgram { child, group, terminal } = command.spawn_on_terminal().await?;
                let PseudoTerminal { output, input } = terminal;
                (child, group, OutputSource::Terminal(output), Some(input))
            }
        };
        Ok(Self {
            group: groups.guard_group(group),
            child,
            source,
            input,
            buffer: vec![0; READ_BYTES],
            output: OutputCollector::new(limits),
        })
    }

    /// Reads until it exits, the deadline is reached or the wait is cancelled.
    pub async fn wait_for_exit(
        &mut self,
        cancel: &CancellationToken,
        deadline: Instant,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> io::Result<WaitOutcome> {
        let (mut snapshot_at, mut has_new_output) = (Instant::now(), false);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(WaitOutcome::Exited),
                () = cancel.cancelled() => return Ok(WaitOutcome::Cancelled),
                () = sleep_until(deadline) => return Ok(WaitOutcome::TimedOut),
                () = sleep_until(snapshot_at + PROGRESS_INTERVAL), if has_new_output => {
                    watcher.on_snapshot(&|| self.output.text());
                    (snapshot_at, has_new_output) = (Instant::now(), false);
                }
                read = self.source.read(&mut self.buffer) => {
                    let n_bytes = self.record_read(read, watcher).await;
                    has_new_output |= n_bytes > 0;
                }
            }
        }
    }

    /// Ends it, whatever happened; `watcher` sees its remaining output.
    pub async fn finish(
        mut self,
        outcome: WaitOutcome,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> ProgramResult {
        let exit = self.drain_or_terminate(outcome, watcher).await;
        ProgramResult { exit, output: self.kill_and_collect(watcher).await.take_output().await }
    }

    /// Moves it to the background, for at most `lifetime`.
    pub fn into_job(self, lifetime: Duration) -> BackgroundJob {
        BackgroundJob::start(self, Instant::now() + lifetime)
    }

    /// Takes its remaining output if it has exited, or sends SIGTERM.
    pub(crate) async fn drain_or_terminate(
        &mut self,
        outcome: WaitOutcome,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> ExitReason {
        match outcome {
            WaitOutcome::Exited(status) => {
                self.drain_output(Instant::now() + DRAIN, watcher).await;
                exit_reason(status)
            }
            WaitOutcome::TimedOut => {
                self.terminate_group(watcher).await;
                ExitReason::TimedOut
            }
            WaitOutcome::Cancelled => {
                self.terminate_group(watcher).await;
                ExitReason::Cancelled
            }
        }
    }

    /// Reads until every writer has closed the pipe or the deadline is reached. What the pipe already holds is read
    /// even on a busy machine that notices late.
    async fn drain_output(&mut self, deadline: Instant, watcher: &mut (dyn OutputWatcher + '_)) {
        let mut n_late_bytes_left = PIPE_BYTES_MAX;
        while self.source.is_open() && n_late_bytes_left > 0 {
            tokio::select! {
                biased;
                read = self.source.read(&mut self.buffer) => {
                    let n_bytes = self.record_read(read, watcher).await;
                    if Instant::now() >= deadline {
                        n_late_bytes_left = n_late_bytes_left.saturating_sub(n_bytes);
                    }
                }
                () = sleep_until(deadline) => return,
            }
        }
    }

    async fn terminate_group(&mut self, watcher: &mut (dyn OutputWatcher + '_)) {
        self.group.terminate();
        if self.input.is_some() {
            self.group.hang_up();
        }
        let deadline = Instant::now() + GRACE;
        self.drain_output(deadline, watcher).await;
        // How it ends no longer matters, only that it does.
        let _ = tokio::time::timeout_at(deadline, self.child.wait()).await;
    }

    /// Kills the rest of the group and reads the rest of the output.
    pub(crate) async fn kill_and_collect(
        mut self,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> OutputCollector {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not ended");
        }
        self.drain_output(Instant::now() + DRAIN, watcher).await;
        self.output
    }

    /// Records the bytes read into the buffer, and returns their number.
    pub(crate) async fn record_read(
        &mut self,
        read: io::Result<usize>,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> usize {
        match read {
            Ok(0) => self.source = OutputSource::Closed,
            Ok(n_bytes) => {
                let chunk = &self.buffer[..n_bytes];
                watcher.on_output(chunk);
                self.output.push(chunk).await;
                return n_bytes;
            }
            Err(error) => {
                tracing::warn!(%error, "could not read a command's output");
                self.source = OutputSource::Closed;
            }
        }
        0
    }
}

/// The source of a program's output.
pub(crate) enum OutputSource {
    Pipe(OutputPipe),
    Terminal(TerminalOutput),
    /// Every writer has closed it.
    Closed,
}

impl OutputSource {
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer).await,
            Self::Terminal(terminal) => terminal.read(buffer).await,
            Self::Closed => pending().await,
        }
    }

    fn is_open(&self) -> bool {
        !matches!(self, Self::Closed)
    }
}

pub(crate) fn exit_reason(status: ExitStatus) -> ExitReason {
    match (status.code(), signal_number(status)) {
        (Some(code), _) => ExitReason::Exited(code),
        (None, signal) => ExitReason::Signalled(signal.unwrap_or_default()),
    }
}
