//! Agents that can be driven, and how far a tree of them may grow.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Levels below the root.
const DEPTH_MAX: u32 = 2;

/// Children that work at once in the whole tree: as many as a machine of a developer runs beside an editor.
const CHILDREN_MAX: u32 = 8;

/// How long one task may take; what takes longer is stuck more often than busy.
const TIME_MAX: Duration = Duration::from_hours(1);

/// An agent of others that can be driven.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentServer {
    /// What it is called here.
    pub name: String,
    /// How it is reached.
    pub reach: AgentTransport,
    /// The folder it works in, for one that does not share ours: a path of its machine.
    pub cwd: Option<PathBuf>,
}

/// How an agent is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum AgentTransport {
    /// A program that is started and spoken to on its stdin and stdout.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets beside the usual ones.
        env: Vec<(String, String)>,
    },
    /// A WebSocket that somebody else listens on.
    Socket {
        /// Where; `ws://` or `wss://`.
        url: String,
        /// Headers of the request that opens it.
        headers: Vec<(String, String)>,
    },
}

// Variables and headers may hold keys.
impl fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentServer({} by {:?})", self.name, self.reach)
    }
}

impl fmt::Debug for AgentTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program { .. } => "program",
            Self::Socket { .. } => "socket",
        })
    }
}

/// How far a tree of agents may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Levels below the root.
    pub depth_max: u32,
    /// Children that work at once, in the whole tree.
    pub children_max: u32,
    /// Tokens that the children of one session may use together; as many as they like without it.
    pub tokens_max: Option<u64>,
    /// How long one task may take.
    pub time_max: Duration,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { depth_max: DEPTH_MAX, children_max: CHILDREN_MAX, tokens_max: None, time_max: TIME_MAX }
    }
}
