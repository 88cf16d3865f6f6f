//! The environment of a session's MCP servers.

use std::path::PathBuf;

use tokio::sync::watch;

/// The environment of a session's servers.
#[derive(Debug, Clone)]
pub struct McpEnvironment {
    /// The working directory of their programs.
    pub cwd: PathBuf,
    /// Variables that their programs do not inherit.
    pub secret_variables: Vec<String>,
    /// Variables added to the inherited environment of their programs; the server's own configuration has precedence.
    pub variables: watch::Receiver<Vec<(String, String)>>,
    /// The session's roots, which servers may request.
    pub roots: Vec<PathBuf>,
    /// The directory of stored logins.
    pub auth_dir: PathBuf,
}
