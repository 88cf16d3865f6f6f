//! The exit of a command, of our own or in a terminal of the client.

use crow_acp::TerminalExit;
use crow_process::ExitReason;

use crate::tool_error::CANCELLED;

/// The exit of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandExit {
    /// A known exit.
    Known(ExitReason),
    /// A signal, as the client names it.
    ClientSignal { signal: String },
    /// An exit that could not be determined.
    Unknown(String),
}

impl CommandExit {
    pub(super) fn describe_exit(&self) -> String {
        match self {
            Self::Known(ExitReason::Exited(code)) => format!("exit code {code}"),
            Self::Known(ExitReason::Signalled(signal)) => format!("ended by signal {signal}"),
            Self::Known(ExitReason::TimedOut) => "stopped: it timed out".into(),
            Self::Known(ExitReason::Cancelled) => CANCELLED.to_owned(),
            Self::ClientSignal { signal } => format!("ended by signal {signal}"),
            Self::Unknown(reason) => format!("how it ended is unknown: {reason}"),
        }
    }

    pub(super) fn from_client_exit(exit: TerminalExit) -> Self {
        match exit {
            TerminalExit { code: Some(code), .. } => {
                Self::Known(ExitReason::Exited(i32::try_from(code).unwrap_or(i32::MAX)))
            }
            TerminalExit { signal: Some(signal), .. } => Self::ClientSignal { signal },
            TerminalExit { code: None, signal: None } => {
                Self::Unknown("the client did not report how it ended".into())
            }
        }
    }
}
