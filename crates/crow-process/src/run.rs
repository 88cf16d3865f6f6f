//! One program from start to end, whatever ends it. The one place that waits for several things at once.

use std::{
    future::pending, io, os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus, time::Duration,
};

use nix::unistd::Pid;
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::Child,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{Command, Groups, Output, SpawnError, command::Spawned, groups::Guard, output::Collector};

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

/// How far a program may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// How long it may run.
    pub timeout: Duration,
    /// How much of the beginning of its output is kept.
    pub head_bytes: usize,
    /// How much of the end of its output is kept.
    pub tail_bytes: usize,
    /// The folder for the whole output when that is more than both.
    pub spill: Option<PathBuf>,
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

/// Runs a program to its end. `watcher` sees what it says meanwhile.
///
/// Timeout and cancel ask the whole group to end, then kill it. Dropping the future kills it at once.
pub async fn run(
    groups: &Groups,
    command: Command,
    bounds: Bounds,
    cut: &CancellationToken,
    watcher: impl Watcher,
) -> Result<Ran, SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    if cut.is_cancelled() {
        return Ok(Ran { ended: Ended::Cancelled, output: Output::default() });
    }
    let deadline = Instant::now() + bounds.timeout;
    let output = Collector::new(bounds.head_bytes, bounds.tail_bytes, bounds.spill);
    let mut running = Running::start(groups, command.spawn().await?, output, watcher)?;
    let ended = match running.watch(cut, deadline).await? {
        Happened::Exited(status) => {
            running.drain(Instant::now() + DRAIN).await;
            how(status)
        }
        Happened::TimedOut => {
            running.ask_to_end().await;
            Ended::TimedOut
        }
        Happened::Cut => {
            running.ask_to_end().await;
            Ended::Cancelled
        }
    };
    Ok(Ran { ended, output: running.end().await })
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

enum Happened {
    Exited(ExitStatus),
    TimedOut,
    Cut,
}

/// The guard stands before the child: the group is killed before the child is given to the reaper.
struct Running<W> {
    group: Guard,
    child: Child,
    /// `None` when every writer is gone.
    pipe: Option<pipe::Receiver>,
    buffer: Vec<u8>,
    output: Collector,
    shown_at: Instant,
    has_news: bool,
    watcher: W,
}

impl<W: Watcher> Running<W> {
    fn start(groups: &Groups, spawned: Spawned, output: Collector, watcher: W) -> Result<Self, SpawnError> {
        Ok(Self {
            group: groups.guard(leader(&spawned.child)?),
            child: spawned.child,
            pipe: Some(spawned.pipe),
            buffer: vec![0; READ_BYTES],
            output,
            shown_at: Instant::now(),
            has_news: false,
            watcher,
        })
    }

    /// Reads until the child exits or has to.
    async fn watch(&mut self, cut: &CancellationToken, deadline: Instant) -> io::Result<Happened> {
        loop {
            let show_at = self.shown_at + PROGRESS_INTERVAL;
            tokio::select! {
                biased;
                status = self.child.wait() => return status.map(Happened::Exited),
                () = cut.cancelled() => return Ok(Happened::Cut),
                () = sleep_until(deadline) => return Ok(Happened::TimedOut),
                () = sleep_until(show_at), if self.has_news => self.show(),
                read = read(&mut self.pipe, &mut self.buffer) => self.take(read).await,
            }
        }
    }

    /// Reads until every writer is gone or the time is over. What the pipe holds already is read even by
    /// a busy machine that notices late.
    async fn drain(&mut self, deadline: Instant) {
        let mut n_late_max = PIPE_BYTES_MAX;
        while self.pipe.is_some() && n_late_max > 0 {
            tokio::select! {
                biased;
                read = read(&mut self.pipe, &mut self.buffer) => {
                    if Instant::now() >= deadline {
                        n_late_max = n_late_max.saturating_sub(*read.as_ref().unwrap_or(&0));
                    }
                    self.take(read).await;
                }
                () = sleep_until(deadline) => return,
            }
        }
    }

    async fn ask_to_end(&mut self) {
        self.group.terminate();
        let deadline = Instant::now() + GRACE;
        self.drain(deadline).await;
        // How it ends is of no interest any more, only that it does.
        let _ = tokio::time::timeout_at(deadline, self.child.wait()).await;
    }

    /// Kills what is left of the group and takes what is left in the pipe.
    async fn end(mut self) -> Output {
        self.group.kill();
        if timeout(REAP, self.child.wait()).await.is_err() {
            tracing::warn!("a killed child has not gone");
        }
        self.drain(Instant::now() + DRAIN).await;
        self.output.end().await
    }

    async fn take(&mut self, read: io::Result<usize>) {
        match read {
            Ok(0) => self.pipe = None,
            Ok(n_bytes) => {
                self.watcher.piece(&self.buffer[..n_bytes]);
                self.output.push(&self.buffer[..n_bytes]).await;
                self.has_news = true;
            }
            Err(error) => {
                tracing::warn!(%error, "could not read a command's output");
                self.pipe = None;
            }
        }
    }

    fn show(&mut self) {
        self.watcher.picture(&|| self.output.text());
        self.shown_at = Instant::now();
        self.has_news = false;
    }
}

async fn read(pipe: &mut Option<pipe::Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => pending().await,
    }
}
