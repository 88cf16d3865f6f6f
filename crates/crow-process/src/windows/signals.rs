//! Events of the console, in place of signals.

use std::io;

use tokio::{
    signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff,
        ctrl_shutdown,
    },
    time::{Interval, MissedTickBehavior, interval},
};

use crate::stop_request::StopRequest;
use std::time::Duration;

/// A console reports a new size only to a reader of its events, so its size is looked at.
const SIZE_INTERVAL: Duration = Duration::from_millis(250);

/// Does nothing: the system ends a process with the job of its parent.
pub fn outlive_parent() {}

/// Listens for requests to end, from its creation on. A new listener per wait would miss events between two waits.
#[derive(Debug)]
pub struct SignalListener {
    interrupt: CtrlC,
    terminations: TerminationEvents,
}

/// The events after which the system ends the process.
#[derive(Debug)]
struct TerminationEvents {
    ctrl_break: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl TerminationEvents {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            ctrl_break: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    async fn next_event(&mut self) {
        tokio::select! {
            _ = self.ctrl_break.recv() => {}
            _ = self.close.recv() => {}
            _ = self.logoff.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}

impl SignalListener {
    /// Starts to listen. Needs a runtime with signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, terminations: TerminationEvents::listen()? })
    }

    /// Waits for the next event. Cancel safe.
    pub async fn next_request(&mut self) -> StopRequest {
        tokio::select! {
            () = self.terminations.next_event() => StopRequest::Terminate,
            _ = self.interrupt.recv() => StopRequest::Interrupt,
        }
    }
}

/// Waits for an event after which the system ends the process.
pub async fn wait_for_stop_signal() {
    match TerminationEvents::listen() {
        Ok(mut terminations) => terminations.next_event().await,
        Err(error) => {
            tracing::warn!(%error, "could not handle events of the console, they will end the process at once");
            std::future::pending::<()>().await;
        }
    }
}

/// The times to look at the terminal's size.
#[derive(Debug)]
pub struct WindowResizes(Interval);

impl WindowResizes {
    /// Starts the intervals. Needs a runtime with a clock.
    #[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
    pub fn listen() -> io::Result<Self> {
        let mut ticks = interval(SIZE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self(ticks))
    }

    /// Waits until the size may have changed. Cancel safe.
    pub async fn next_resize(&mut self) {
        self.0.tick().await;
    }
}
