//! Signals as values, and ending the way somebody else did.

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

/// What a warden hears of: its children's ends, and what it passes on.
const HEARD: [Signal; 6] =
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH];

/// The signals of this process, one after the other, none of them acting by itself.
pub(super) struct SignalQueue(SignalFd);

impl SignalQueue {
    pub(super) fn open() -> io::Result<Self> {
        let heard: SigSet = HEARD.into_iter().collect();
        heard.thread_block()?;
        Ok(Self(SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// The next one that has come already.
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

/// Ends this process as a child ended, so that whoever waits for us sees the truth.
pub(super) fn exit_with_status(status: WaitStatus) -> ! {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only two of them are ends")]
    let code = match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => {
            exit_by_signal(signal);
            SIGNALLED + signal as i32
        }
        _ => i32::from(super::CODE_CANNOT),
    };
    std::process::exit(code)
}

/// Added to a signal's number, as shells do.
const SIGNALLED: i32 = 128;

/// Ends this process by a signal; comes back when that does not work.
fn exit_by_signal(signal: Signal) {
    // One image of the memory is enough, and ours says nothing of the command.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    #[expect(unsafe_code, reason = "the only way to set it")]
    // SAFETY: the default action is no code of ours.
    let _ = unsafe { sigaction(signal, &action) };
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
}
