//! Requests to a client's files and terminals: commands, their output, and errors. Knows neither the protocol nor how a
//! request is sent.

use std::path::PathBuf;
use std::time::Duration;

/// The reason why a client did not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("the client rejected the request: {0}")]
    Rejected(String),
    #[error("the client did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The turn was cancelled.
    #[error("stopped: the turn was cancelled")]
    Cancelled,
}

/// A command for a client's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalCommand {
    pub program: String,
    pub args: Vec<String>,
    /// Variables in addition to the client's own.
    pub env: Vec<(String, String)>,
    /// Absolute working directory.
    pub cwd: PathBuf,
    /// Bytes of output that the client keeps, from the end.
    pub output_bytes_max: u64,
}

/// A command for a terminal of a client, as an agent requested it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedCommand {
    pub program: String,
    pub args: Vec<String>,
    /// Variables in addition to the client's own.
    pub env: Vec<(String, String)>,
    /// The working directory; that of the session if the agent gives none.
    pub cwd: Option<PathBuf>,
    /// Bytes of output to keep, from the end.
    pub output_bytes_max: Option<u64>,
}

/// The exit status of a command in a client's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalExit {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<u32>,
    /// The signal's name.
    pub signal: Option<String>,
}

/// The output of a command in a client's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTerminalOutput {
    /// The text, or its end.
    pub text: String,
    /// The beginning is missing.
    pub is_truncated: bool,
    /// The exit status, once it has ended.
    pub exit: Option<TerminalExit>,
}
