//! Signals to this process, and those that its children inherit as ignored.

use std::io;

use nix::{
    errno::Errno,
    sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::stop_request::StopRequest;

/// Listens for requests to end, from its creation on. A new listener per wait would miss signals between two waits.
#[derive(Debug)]
pub struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl SignalListener {
    /// Starts to listen. Needs a runtime with signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub async fn next_request(&mut self) -> StopRequest {
        tokio::select! {
            _ = self.terminate.recv() => StopRequest::Terminate,
            _ = self.hangup.recv() => StopRequest::Terminate,
            _ = self.interrupt.recv() => StopRequest::Interrupt,
        }
    }
}

/// Waits for SIGTERM or SIGHUP.
pub async fn wait_for_stop_signal() {
    match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
        (Ok(mut terminate), Ok(mut hangup)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "could not handle signals, they will end the process at once");
            std::future::pending::<()>().await;
        }
    }
}

/// Lets this process go on when its parent is killed, or when it is asked to stop: it ends with its input.
pub fn outlive_parent() {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    for signal in [signal::Signal::SIGTERM, signal::Signal::SIGINT, signal::Signal::SIGHUP] {
        #[expect(unsafe_code, reason = "handlers are process-wide, and this sets none")]
        // SAFETY: to ignore a signal is no code of ours.
        if let Err(error) = unsafe { signal::sigaction(signal, &ignore) } {
            tracing::warn!(%error, %signal, "a signal will end the process");
        }
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_pdeathsig(None) {
        tracing::warn!(%error, "the process will end with its parent");
    }
}

/// Listens for changes of the terminal's size, from its creation on.
#[derive(Debug)]
pub struct WindowResizes(Signal);

impl WindowResizes {
    /// Starts to listen. Needs a runtime with signals.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::window_change()).map(Self)
    }

    /// Waits for the next change. Cancel safe.
    pub async fn next_resize(&mut self) {
        self.0.recv().await;
    }
}

/// Gives every signal its default action, as a program expects. What is ignored stays ignored by the programs that a
/// process starts: behind `nohup`, or in the background of a script, no command could be interrupted.
///
/// Runs in the child between fork and exec: it makes only system calls.
pub(crate) fn restore_default_actions() -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in signal::Signal::iterator() {
        #[expect(unsafe_code, reason = "the only way to set it")]
        // SAFETY: the default action is no code of ours.
        match unsafe { signal::sigaction(signal, &default) } {
            // SIGKILL and SIGSTOP cannot be changed.
            Ok(_) | Err(Errno::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
