//! A program that runs, and what it says. Knows how to wait for it and how to end it; not when.

use std::{fmt, future::pending, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use nix::unistd::Pid;
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::Child,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    BackgroundJob, CapturedOutput, CommandSpec, OutputLimits, ProcessGroups, SpawnError,
    command::SpawnedChild,
    groups::GroupGuard,
    output::OutputCollector,
    terminal::{PseudoTerminal, TerminalInput, TerminalOutput},
};

/// Between asking a group to end and killing it: enough to remove a lock file, short enough for a person.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// How long output is still awaited when the child is gone; only a process it left behind holds the pipe.
const DRAIN: Duration = Duration::from_millis(100);

/// A killed child is gone at once unless the kernel itself is stuck, and then nobody is kept waiting.
pub(crate) const REAP: Duration = Duration::from_secs(2);

/// People read no faster than this, and every picture costs a copy of the text.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// What a pipe holds on Linux: one read empties it.
const READ_BYTES: usize = 64 * 1024;

/// The most a pipe can be made to hold; more than this after the end comes from somebody still writing.
const PIPE_BYTES_MAX: usize = 1024 * 1024;

/// What a program is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdioKind {
    /// A pipe for what it says, and no input.
    Pipe,
    /// A terminal of its own.
    Terminal,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, not from us.
    Signalled(i32),
    /// By us: its time was over.
    TimedOut,
    /// By us: it was cancelled, perhaps before it began.
    Cancelled,
}

/// What came of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramResult {
    /// How it ended.
    pub ended: ExitReason,
    /// What it said until then, both outputs in the order they came.
    pub output: CapturedOutput,
}

/// Whoever looks at a program while it runs. A closure over text looks at pictures.
pub trait OutputWatcher: Send {
    /// Takes a piece of output as it comes.
    fn on_output(&mut self, _bytes: &[u8]) {}

    /// May look at the bounded text so far; called now and then.
    fn on_snapshot(&mut self, text: &dyn Fn() -> String);
}

impl<F: FnMut(&str) + Send> OutputWatcher for F {
    fn on_snapshot(&mut self, text: &dyn Fn() -> String) {
        self(&text());
    }
}

/// For a program that nobody looks at.
pub(crate) struct NoWatcher;

impl OutputWatcher for NoWatcher {
    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}

/// Why nobody waits for a program any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It is gone.
    Exited(ExitStatus),
    /// The time is over; it runs.
    TimedOut,
    /// It was cut; it runs.
    Cut,
}

impl fmt::Debug for RunningProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("group", &self.group).finish_non_exhaustive()
    }
}

/// A program that was started. Dropping it kills its whole group at once.
///
/// The guard stands before the child: the group is killed before the child is given to the reaper.
pub struct RunningProgram {
    pub(crate) group: GroupGuard,
    pub(crate) child: Child,
    pub(crate) source: OutputSource,
    /// Where it can be typed to.
    pub(crate) input: Option<TerminalInput>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) output: OutputCollector,
}

impl RunningProgram {
    /// Starts a program.
    pub async fn start(
        groups: &ProcessGroups,
        command: CommandSpec,
        line: StdioKind,
        kept: OutputLimits,
    ) -> Result<Self, SpawnError> {
        if groups.is_closed() {
            return Err(SpawnError::Closed);
        }
        let (child, source, input) = match line {
            StdioKind::Pipe => {
                let SpawnedChild { child, pipe } = command.spawn().await?;
                (child, OutputSource::Pipe(pipe), None)
            }
            StdioKind::Terminal => {
                let (child, PseudoTerminal { output, input }) = command.spawn_on_terminal().await?;
                (child, OutputSource::Terminal(output), Some(input))
            }
        };
        Ok(Self {
            group: groups.guard_group(group_leader(&child)?),
            child,
            source,
            input,
            buffer: vec![0; READ_BYTES],
            output: OutputCollector::new(kept),
        })
    }

    /// Reads until it exits, the time is over or it is cut.
    pub async fn wait_for_exit(
        &mut self,
        cut: &CancellationToken,
        deadline: Instant,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> io::Result<WaitOutcome> {
        let (mut shown_at, mut has_news) = (Instant::now(), false);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(WaitOutcome::Exited),
                () = cut.cancelled() => return Ok(WaitOutcome::Cut),
                () = sleep_until(deadline) => return Ok(WaitOutcome::TimedOut),
                () = sleep_until(shown_at + PROGRESS_INTERVAL), if has_news => {
                    watcher.on_snapshot(&|| self.output.text());
                    (shown_at, has_news) = (Instant::now(), false);
                }
                read = self.source.read(&mut self.buffer) => {
                    let n_bytes = self.record_read(read, watcher).await;
                    has_news |= n_bytes > 0;
                }
            }
        }
    }

    /// Brings it to its end, whatever happened; `watcher` sees what it still says.
    pub async fn finish(
        mut self,
        happened: WaitOutcome,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> ProgramResult {
        let ended = self.drain_or_terminate(happened, watcher).await;
        ProgramResult { ended, output: self.kill_and_collect(watcher).await.take_output().await }
    }

    /// Lets it run on by itself, for no longer than `lifetime`.
    pub fn into_job(self, lifetime: Duration) -> BackgroundJob {
        BackgroundJob::start(self, Instant::now() + lifetime)
    }

    /// Takes what it still says when it is gone, or asks it to go.
    pub(crate) async fn drain_or_terminate(
        &mut self,
        happened: WaitOutcome,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> ExitReason {
        match happened {
            WaitOutcome::Exited(status) => {
                self.drain_output(Instant::now() + DRAIN, watcher).await;
                exit_reason(status)
            }
            WaitOutcome::TimedOut => {
                self.terminate_group(watcher).await;
                ExitReason::TimedOut
            }
            WaitOutcome::Cut => {
                self.terminate_group(watcher).await;
                ExitReason::Cancelled
            }
        }
    }

    /// Reads until every writer is gone or the time is over. What the pipe holds already is read even by
    /// a busy machine that notices late.
    async fn drain_output(&mut self, deadline: Instant, watcher: &mut (dyn OutputWatcher + '_)) {
        let mut n_late_max = PIPE_BYTES_MAX;
        while self.source.is_open() && n_late_max > 0 {
            tokio::select! {
                biased;
                read = self.source.read(&mut self.buffer) => {
                    let n_bytes = self.record_read(read, watcher).await;
                    if Instant::now() >= deadline {
                        n_late_max = n_late_max.saturating_sub(n_bytes);
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
        // How it ends is of no interest any more, only that it does.
        let _ = tokio::time::timeout_at(deadline, self.child.wait()).await;
    }

    /// Kills what is left of the group and takes what is left to read.
    pub(crate) async fn kill_and_collect(
        mut self,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> OutputCollector {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not gone");
        }
        self.drain_output(Instant::now() + DRAIN, watcher).await;
        self.output
    }

    /// Takes in what was read into the buffer, and says how much that was.
    pub(crate) async fn record_read(
        &mut self,
        read: io::Result<usize>,
        watcher: &mut (dyn OutputWatcher + '_),
    ) -> usize {
        match read {
            Ok(0) => self.source = OutputSource::Ended,
            Ok(n_bytes) => {
                let piece = &self.buffer[..n_bytes];
                watcher.on_output(piece);
                self.output.push(piece).await;
                return n_bytes;
            }
            Err(error) => {
                tracing::warn!(%error, "could not read a command's output");
                self.source = OutputSource::Ended;
            }
        }
        0
    }
}

/// Where what a program says comes from.
pub(crate) enum OutputSource {
    Pipe(pipe::Receiver),
    Terminal(TerminalOutput),
    /// Every writer is gone.
    Ended,
}

impl OutputSource {
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer).await,
            Self::Terminal(terminal) => terminal.read(buffer).await,
            Self::Ended => pending().await,
        }
    }

    fn is_open(&self) -> bool {
        !matches!(self, Self::Ended)
    }
}

/// The group of a child that was just started.
pub(crate) fn group_leader(child: &Child) -> io::Result<Pid> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    pid.map(Pid::from_raw).ok_or_else(|| io::Error::other("the child has no pid"))
}

pub(crate) fn exit_reason(status: ExitStatus) -> ExitReason {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Exited(code),
        (None, signal) => ExitReason::Signalled(signal.unwrap_or_default()),
    }
}
