//! The thread that kills: it waits for the event and the delay, finds the process and sends SIGKILL.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::process_table::{kind_of, processes_in};
use super::schedule::{PlannedKill, Trigger, VictimKind};

/// The interval at which the thread looks whether the turn has ended or its process has started.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The surroundings of the process to kill.
pub(crate) struct KillTarget {
    pub(crate) agent: u32,
    pub(crate) home: PathBuf,
    pub(crate) program: PathBuf,
}

/// A kill that is prepared.
pub(crate) struct Killer {
    pub(crate) trigger: SyncSender<()>,
    signals: Arc<KillSignals>,
    thread: JoinHandle<bool>,
}

#[derive(Default)]
struct KillSignals {
    is_turn_over: AtomicBool,
    is_killed: AtomicBool,
}

impl Killer {
    pub(crate) fn start(kill: PlannedKill, target: KillTarget) -> Self {
        let (trigger, triggered) = sync_channel(1);
        let signals = Arc::new(KillSignals::default());
        let thread_signals = Arc::clone(&signals);
        let thread = std::thread::spawn(move || run_kill(kill, &target, &triggered, &thread_signals));
        Self { trigger, signals, thread }
    }

    pub(crate) fn has_killed(&self) -> bool {
        self.signals.is_killed.load(Ordering::SeqCst)
    }

    /// Ends the wait for the event: an agent is then killed at once, and other processes are not awaited any more.
    pub(crate) fn end_turn(&self) {
        self.signals.is_turn_over.store(true, Ordering::SeqCst);
    }

    /// Waits for the kill; returns whether there was one.
    pub(crate) fn finish(self) -> bool {
        self.end_turn();
        self.thread.join().unwrap_or(false)
    }
}

fn run_kill(kill: PlannedKill, target: &KillTarget, triggered: &Receiver<()>, signals: &KillSignals) -> bool {
    let is_over = || signals.is_turn_over.load(Ordering::SeqCst);
    if kill.trigger != Trigger::Appearance {
        while triggered.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) && !is_over() {}
    }
    loop {
        while target.find_pid(kill).is_none() && !is_over() {
            std::thread::sleep(POLL_INTERVAL);
        }
        wait_exactly(kill.delay);
        let pid = target.find_pid(kill);
        let is_killed =
            pid.is_some_and(|pid| nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok());
        signals.is_killed.store(is_killed, Ordering::SeqCst);
        // A process that has ended meanwhile was a short one: a longer one may follow.
        if is_killed || is_over() {
            return is_killed;
        }
    }
}

impl KillTarget {
    /// Returns the process to kill, if it is there.
    fn find_pid(&self, kill: PlannedKill) -> Option<i32> {
        let agent = self.agent.cast_signed();
        if kill.victim == VictimKind::Agent {
            return Some(agent);
        }
        let mut pids = processes_in(&self.home);
        pids.retain(|pid| kind_of(*pid, agent, &self.program) == Some(kill.victim));
        let choice = usize::try_from(kill.choice).unwrap_or_default().checked_rem(pids.len())?;
        pids.get(choice).copied()
    }
}

/// Waits more exactly than a sleep does.
fn wait_exactly(delay: Duration) {
    let started_at = Instant::now();
    while started_at.elapsed() < delay {
        std::hint::spin_loop();
    }
}
