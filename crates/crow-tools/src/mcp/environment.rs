//! The environment of a session's MCP servers.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The requests that the servers may send to the session.
    pub features: McpClientFeatures,
    /// The servers of this process that no session waits for again.
    pub slow_servers: Arc<SlowServers>,
}

/// The optional features of an MCP client that a session has, as its servers are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct McpClientFeatures {
    /// Its user answers forms.
    pub elicitation: bool,
    /// Its model answers requests.
    pub sampling: bool,
}

/// The names of servers that did not answer while a session waited for them.
#[derive(Debug, Default)]
pub struct SlowServers(Mutex<HashSet<String>>);

impl SlowServers {
    /// Adds a server; false if it was known.
    pub(super) fn insert(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned())
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }
}
