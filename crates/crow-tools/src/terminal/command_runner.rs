//! The environment of all commands, and the choice of the way in which one runs. Must not know the ways themselves.

use std::{path::PathBuf, time::Duration};

use crow_acp::AcpClientCapabilities;
use crow_process::{ProcessGroups, SandboxWrapper};

use super::{arguments::CommandRequest, interactivity::TerminalNeed, limits::SOFT_LIMIT, shell::Shell};
use crate::BuiltinToolConfig;

/// Whether commands run in the client's terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TerminalPreference {
    /// In the client's terminals if it has some, else in our own processes.
    #[default]
    ClientFirst,
    /// In the client's terminals; without them no command runs.
    ClientOnly,
    /// In our own processes.
    Local,
    /// No command runs.
    Never,
}

/// The way one command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandRoute {
    Client,
    /// In our own process; the client gets its output as a stream.
    LocalStreamed,
    /// In our own process; the client gets snapshots of its output.
    Local,
    /// Not at all.
    Unavailable,
}

impl TerminalPreference {
    pub(super) fn select_route(self, client: AcpClientCapabilities) -> CommandRoute {
        match self {
            Self::ClientFirst | Self::ClientOnly if client.terminals => CommandRoute::Client,
            Self::ClientOnly | Self::Never => CommandRoute::Unavailable,
            Self::ClientFirst | Self::Local if client.terminal_output => CommandRoute::LocalStreamed,
            Self::ClientFirst | Self::Local => CommandRoute::Local,
        }
    }
}

/// The environment of all commands.
pub(super) struct CommandRunner {
    pub(super) groups: ProcessGroups,
    /// The directory for output that is too long for the model.
    pub(super) spill_dir: PathBuf,
    pub(super) terminals: TerminalPreference,
    pub(super) shell: Shell,
    /// The supervisor of the commands.
    pub(super) sandbox: Option<SandboxWrapper>,
    /// Time a call waits for a command without a timeout.
    pub(super) soft_limit: Duration,
}

impl CommandRunner {
    pub(super) fn new(groups: ProcessGroups, config: &BuiltinToolConfig) -> Self {
        Self {
            groups,
            spill_dir: config.spill_dir.clone(),
            terminals: config.terminals,
            shell: config.shell.clone(),
            sandbox: config.sandbox.clone(),
            soft_limit: config.soft_limit.unwrap_or(SOFT_LIMIT),
        }
    }

    /// Chooses the way in which a command runs.
    pub(super) fn command_route(
        &self,
        request: &CommandRequest,
        client: AcpClientCapabilities,
    ) -> CommandRoute {
        match self.terminals.select_route(client) {
            // Crow cannot type into a terminal of the client.
            CommandRoute::Client
                if request.need == TerminalNeed::Interactive
                    && self.terminals == TerminalPreference::ClientFirst =>
            {
                CommandRoute::Local
            }
            route @ (CommandRoute::Client
            | CommandRoute::LocalStreamed
            | CommandRoute::Local
            | CommandRoute::Unavailable) => route,
        }
    }
}
