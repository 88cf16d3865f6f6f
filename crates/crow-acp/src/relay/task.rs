//! The work that a worker gives its agent.

use std::path::PathBuf;

use crow_core::Mode;

/// The work of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayTask {
    pub cwd: PathBuf,
    /// The session that goes on with the prompt; without one it is a new session.
    pub session: Option<ResumedSession>,
    pub prompt: String,
    pub model: Option<String>,
    pub mode: Mode,
    /// The version of this program.
    pub version: &'static str,
}

/// A session that goes on, perhaps in another directory. Its agent must list it in its first one: a parent that names the
/// session of another one does not get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumedSession {
    pub id: String,
    /// The working directory of its `session/new`.
    pub first_cwd: PathBuf,
}
