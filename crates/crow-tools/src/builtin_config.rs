//! The configuration of the built-in tools, which the program's settings fill in.

use std::{path::PathBuf, time::Duration};

use crow_process::SandboxWrapper;

use crate::{
    terminal::{Shell, TerminalPreference},
    web::WebConfig,
};

/// Configuration of the built-in tools.
#[derive(Debug, Clone, Default)]
pub struct BuiltinToolConfig {
    /// The directory for output that is too long for the model.
    pub spill_dir: PathBuf,
    /// Whether commands run in the client's terminals.
    pub terminals: TerminalPreference,
    /// The shell that runs commands.
    pub shell: Shell,
    /// The supervisor of the programs; `None` if its executable was not found.
    pub sandbox: Option<SandboxWrapper>,
    /// Time a call waits for a command without a timeout before the command becomes a job; two minutes by default.
    pub soft_limit: Option<Duration>,
    /// Access to the web.
    pub web: WebConfig,
}
