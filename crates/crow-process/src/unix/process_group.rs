//! A program with everything it started, as a process group.

use std::io;

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::process::Child;

/// The processes of a program.
#[derive(Debug, Clone)]
pub(crate) struct ProcessGroup {
    leader: Pid,
}

impl ProcessGroup {
    /// The group of a child that was just started.
    pub(super) fn of_leader(child: &Child) -> io::Result<Self> {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let leader = pid.map(Pid::from_raw).ok_or_else(|| io::Error::other("the child has no pid"))?;
        Ok(Self { leader })
    }

    /// Returns the number that identifies it while it lives.
    pub(crate) fn id(&self) -> u32 {
        self.leader.as_raw().unsigned_abs()
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.send_signal(Signal::SIGTERM);
        // A stopped process does not react to other signals.
        self.send_signal(Signal::SIGCONT);
    }

    /// Continues it after a stop.
    pub(crate) fn resume(&self) {
        self.send_signal(Signal::SIGCONT);
    }

    /// Whether any of its processes is left.
    pub(crate) fn is_alive(&self) -> bool {
        killpg(self.leader, None) != Err(nix::errno::Errno::ESRCH)
    }

    /// Sends SIGHUP, which ends an interactive shell.
    pub(crate) fn hang_up(&self) {
        self.send_signal(Signal::SIGHUP);
    }

    /// Interrupts it as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.send_signal(Signal::SIGINT);
    }

    /// Ends every process.
    pub(crate) fn kill(&self) {
        self.send_signal(Signal::SIGKILL);
    }

    /// Signals the group, not the child: a shell's children outlive it. A group that has already ended is not an error.
    fn send_signal(&self, signal: Signal) {
        match killpg(self.leader, signal) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(error) => {
                tracing::warn!(group = %self.leader, %signal, %error, "could not signal a process group");
            }
        }
    }
}
