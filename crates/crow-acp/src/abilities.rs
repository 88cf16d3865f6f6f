//! What the client of a connection can do, as it said in its first request. Nothing it did not say is used.

use std::sync::{Arc, OnceLock};

/// What a client can do beyond the baseline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcpClientCapabilities {
    /// It reads files, unsaved buffers included.
    pub reads_files: bool,
    /// It writes files through its buffers.
    pub writes_files: bool,
    /// It runs commands in terminals of its own.
    pub terminals: bool,
    /// It draws the output of commands that run here as it comes.
    pub shows_output: bool,
    /// It shows notices as such.
    pub notices: bool,
    /// It shows compactions as such.
    pub compactions: bool,
    /// It has a person fill in forms.
    pub forms: bool,
    /// It follows the sessions that a session starts.
    pub children: bool,
    /// It is Crow too and counts the agents of a tree; how many levels below the root it has us stand.
    pub depth: Option<u32>,
    /// It can start this program in a terminal to sign in.
    pub terminal_auth: bool,
    /// It can do so the older way, by a whole command line.
    pub terminal_auth_by_command: bool,
}

/// The abilities of a connection's client: none until it said hello, and then for good.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedCapabilities(Arc<OnceLock<AcpClientCapabilities>>);

impl SharedCapabilities {
    /// Remembers what the client says first; a second hello changes nothing.
    pub(crate) fn set_once(&self, abilities: AcpClientCapabilities) {
        if self.0.set(abilities).is_err() {
            tracing::debug!("the client said hello again; what it can do stays as it was");
        }
    }

    pub(crate) fn get(&self) -> AcpClientCapabilities {
        self.0.get().copied().unwrap_or_default()
    }
}
