//! Signals as values, and ending with the status of another process.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use nix::sys::{
    resource::{Resource, setrlimit},
    signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction},
    signalfd::{SfdFlags, SignalFd},
    wait::WaitStatus,
};

use super::failure::EXIT_CANNOT_RUN;

/// The signals that a supervisor receives: the ends of its children, and those it forwards.
const HANDLED_SIGNALS: [Signal; 6] =
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH];

/// The signals of this process, in order, none of them with its default action.
pub(super) struct SignalQueue(SignalFd);

impl SignalQueue {
    pub(super) fn open() -> io::Result<Self> {
        let signals: SigSet = HANDLED_SIGNALS.into_iter().collect();
        signals.thread_block()?;
        Ok(Self(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Returns the next pending signal.
    pub(super) fn next_signal(&self) -> io::Result<Option<Signal>> {
        let info = self.0.read_signal()?;
        Ok(info.and_then(|info| i32::try_from(info.ssi_signo).ok()).and_then(|n| Signal::try_from(n).ok()))
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ends this process as a child ended, so that the caller sees the real status.
pub(super) fn exit_with_status(status: WaitStatus) -> ! {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only two of them are ends")]
    let code = match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => {
            exit_by_signal(signal);
            SIGNAL_EXIT_BASE + signal as i32
        }
        _ => i32::from(EXIT_CANNOT_RUN),
    };
    std::process::exit(code)
}

/// Added to a signal's number, as shells do.
const SIGNAL_EXIT_BASE: i32 = 128;

/// Ends this process by a signal; returns if that does not work.
fn exit_by_signal(signal: Signal) {
    // One core dump is enough, and ours says nothing of the command.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    #[expect(unsafe_code, reason = "the only way to set it")]
    // SAFETY: the default action is no code of ours.
    let _ = unsafe { sigaction(signal, &action) };
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
}
