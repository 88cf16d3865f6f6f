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
    Command, Groups, Job, Kept, Output, SpawnError,
    command::Spawned,
    groups::Guard,
    output::Collector,
    terminal::{Terminal, TerminalInput, TerminalOutput},
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
pub enum Line {
    /// A pipe for what it says, and no input.
    Pipe,
    /// A terminal of its own.
    Terminal,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
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
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it said until then, both outputs in the order they came.
    pub output: Output,
}

/// Whoever looks at a program while it runs. A closure over text looks at pictures.
pub trait Watcher: Send {
    /// Takes a piece of output as it comes.
    fn piece(&mut self, _bytes: &[u8]) {}

    /// May look at the bounded text so far; called now and then.
    fn picture(&mut self, text: &dyn Fn() -> String);
}

impl<F: FnMut(&str) + Send> Watcher for F {
    fn picture(&mut self, text: &dyn Fn() -> String) {
        self(&text());
    }
}

/// For a program that nobody looks at.
pub(crate) struct Nobody;

impl Watcher for Nobody {
    fn picture(&mut self, _text: &dyn Fn() -> String) {}
}

/// Why nobody waits for a program any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It is gone.
    Exited(ExitStatus),
    /// The time is over; it runs.
    TimedOut,
    /// It was cut; it runs.
    Cut,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("group", &self.group).finish_non_exhaustive()
    }
}

/// A program that was started. Dropping it kills its whole group at once.
///
/// The guard stands before the child: the group is killed before the child is given to the reaper.
pub struct Program {
    pub(crate) group: Guard,
    pub(crate) child: Child,
    pub(crate) source: Source,
    /// Where it can be typed to.
    pub(crate) input: Option<TerminalInput>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) output: Collector,
}

impl Program {
    /// Starts a program.
    pub async fn start(
        groups: &Groups,
        command: Command,
        line: Line,
        kept: Kept,
    ) -> Result<Self, SpawnError> {
        if groups.is_closed() {
            return Err(SpawnError::Closed);
        }
        let (child, source, input) = match line {
            Line::Pipe => {
                let Spawned { child, pipe } = command.spawn().await?;
                (child, Source::Pipe(pipe), None)
            }
            Line::Terminal => {
                let (child, Terminal { output, input }) = command.spawn_on_terminal().await?;
                (child, Source::Terminal(output), Some(input))
            }
        };
        Ok(Self {
            group: groups.guard(leader(&child)?),
            child,
            source,
            input,
            buffer: vec![0; READ_BYTES],
            output: Collector::new(kept),
        })
    }

    /// Reads until it exits, the time is over or it is cut.
    pub async fn watch(
        &mut self,
        cut: &CancellationToken,
        deadline: Instant,
        watcher: &mut (dyn Watcher + '_),
    ) -> io::Result<Happened> {
        let (mut shown_at, mut has_news) = (Instant::now(), false);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(Happened::Exited),
                () = cut.cancelled() => return Ok(Happened::Cut),
                () = sleep_until(deadline) => return Ok(Happened::TimedOut),
                () = sleep_until(shown_at + PROGRESS_INTERVAL), if has_news => {
                    watcher.picture(&|| self.output.text());
                    (shown_at, has_news) = (Instant::now(), false);
                }
                read = self.source.read(&mut self.buffer) => {
                    let n_bytes = self.take(read, watcher).await;
                    has_news |= n_bytes > 0;
                }
            }
        }
    }

    /// Brings it to its end, whatever happened; `watcher` sees what it still says.
    pub async fn finish(mut self, happened: Happened, watcher: &mut (dyn Watcher + '_)) -> Ran {
        let ended = self.settle(happened, watcher).await;
        Ran { ended, output: self.close(watcher).await.take().await }
    }

    /// Lets it run on by itself, for no longer than `lifetime`.
    pub fn keep(self, lifetime: Duration) -> Job {
        Job::start(self, Instant::now() + lifetime)
    }

    /// Takes what it still says when it is gone, or asks it to go.
    pub(crate) async fn settle(&mut self, happened: Happened, watcher: &mut (dyn Watcher + '_)) -> Ended {
        match happened {
            Happened::Exited(status) => {
                self.drain(Instant::now() + DRAIN, watcher).await;
                how(status)
            }
            Happened::TimedOut => {
                self.ask_to_end(watcher).await;
                Ended::TimedOut
            }
            Happened::Cut => {
                self.ask_to_end(watcher).await;
                Ended::Cancelled
            }
        }
    }

    /// Reads until every writer is gone or the time is over. What the pipe holds already is read even by
    /// a busy machine that notices late.
    async fn drain(&mut self, deadline: Instant, watcher: &mut (dyn Watcher + '_)) {
        let mut n_late_max = PIPE_BYTES_MAX;
        while self.source.is_open() && n_late_max > 0 {
            tokio::select! {
                biased;
                read = self.source.read(&mut self.buffer) => {
                    let n_bytes = self.take(read, watcher).await;
                    if Instant::now() >= deadline {
                        n_late_max = n_late_max.saturating_sub(n_bytes);
                    }
                }
                () = sleep_until(deadline) => return,
            }
        }
    }

    async fn ask_to_end(&mut self, watcher: &mut (dyn Watcher + '_)) {
        self.group.terminate();
        if self.input.is_some() {
            self.group.hang_up();
        }
        let deadline = Instant::now() + GRACE;
        self.drain(deadline, watcher).await;
        // How it ends is of no interest any more, only that it does.
        let _ = tokio::time::timeout_at(deadline, self.child.wait()).await;
    }

    /// Kills what is left of the group and takes what is left to read.
    pub(crate) async fn close(mut self, watcher: &mut (dyn Watcher + '_)) -> Collector {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not gone");
        }
        self.drain(Instant::now() + DRAIN, watcher).await;
        self.output
    }

    /// Takes in what was read into the buffer, and says how much that was.
    pub(crate) async fn take(&mut self, read: io::Result<usize>, watcher: &mut (dyn Watcher + '_)) -> usize {
        match read {
            Ok(0) => self.source = Source::Ended,
            Ok(n_bytes) => {
                let piece = &self.buffer[..n_bytes];
                watcher.piece(piece);
                self.output.push(piece).await;
                return n_bytes;
            }
            Err(error) => {
                tracing::warn!(%error, "could not read a command's output");
                self.source = Source::Ended;
            }
        }
        0
    }
}

/// Where what a program says comes from.
pub(crate) enum Source {
    Pipe(pipe::Receiver),
    Terminal(TerminalOutput),
    /// Every writer is gone.
    Ended,
}

impl Source {
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
pub(crate) fn leader(child: &Child) -> io::Result<Pid> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    pid.map(Pid::from_raw).ok_or_else(|| io::Error::other("the child has no pid"))
}

pub(crate) fn how(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Signalled(signal.unwrap_or_default()),
    }
}
