//! External agents that Crow can drive, and the limits of a tree of agents.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Levels below the root.
const DEPTH_MAX: u32 = 2;

/// Children that run at the same time in the whole tree: as many as a developer's machine runs beside an editor.
const CHILDREN_MAX: u32 = 8;

/// Time limit of one task; a longer task is stuck more often than busy.
const TASK_TIMEOUT: Duration = Duration::from_hours(1);

/// An external agent that Crow can drive.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentServer {
    /// The configured name.
    pub name: String,
    /// The transport to the agent.
    pub transport: AgentTransport,
    /// The working directory for an agent on another machine: a path there.
    pub cwd: Option<PathBuf>,
}

impl AgentServer {
    /// Whether its tasks wait in a queue for workers.
    pub fn is_farm(&self) -> bool {
        matches!(self.transport, AgentTransport::Farm(_))
    }
}

/// The transport to an agent.
#[derive(Clone, PartialEq, Eq)]
pub enum AgentTransport {
    /// A program that is started and speaks ACP on its stdin and stdout.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables added to the inherited ones.
        env: Vec<(String, String)>,
    },
    /// A WebSocket or an HTTP address that another process listens on.
    Socket {
        /// The address, with `ws://`, `wss://`, `http://` or `https://`.
        url: String,
        /// Headers of the opening request.
        headers: Vec<(String, String)>,
    },
    /// A queue that workers on other machines take tasks from.
    Farm(Box<FarmAddress>),
}

/// A queue of tasks at a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmAddress {
    pub server: NatsServer,
    /// The queue's name.
    pub queue: String,
    /// The name of this parent in the subjects, to which its user at the server may be limited.
    pub parent_name: String,
}

/// A NATS server, or the servers of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsServer {
    /// Addresses, separated by commas.
    pub urls: String,
    /// The proof of the user who connects.
    pub credentials: NatsCredentials,
    /// A file with the certificate of the authority that signed the server's.
    pub tls_ca_file: Option<PathBuf>,
}

/// The credentials of a user of a NATS server.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum NatsCredentials {
    /// None, or those in the address.
    #[default]
    None,
    Token(String),
    Password {
        user: String,
        password: String,
    },
    /// A file with a JWT and its key.
    CredentialsFile(PathBuf),
    /// A file with the seed of an NKey.
    NkeyFile(PathBuf),
}

// Variables, headers and credentials may hold keys.
impl fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentServer({} by {:?})", self.name, self.transport)
    }
}

impl fmt::Debug for AgentTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program { .. } => "program",
            Self::Socket { .. } => "socket",
            Self::Farm(_) => "farm",
        })
    }
}

impl fmt::Debug for NatsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NatsServer")
    }
}

/// The limits of a tree of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Levels below the root.
    pub depth_max: u32,
    /// Children that run at the same time in the whole tree.
    pub children_max: u32,
    /// Tokens that the children of one session may use together; `None` is no limit.
    pub tokens_max: Option<u64>,
    /// The time limit of one task.
    pub task_timeout: Duration,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            depth_max: DEPTH_MAX,
            children_max: CHILDREN_MAX,
            tokens_max: None,
            task_timeout: TASK_TIMEOUT,
        }
    }
}
