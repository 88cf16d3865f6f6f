//! Which MCP servers a session has, as configuration and clients name them. Knows no protocol: connecting is
//! somebody else's work.

use std::{path::PathBuf, time::Duration};

/// A server to connect to.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// What it is called here; its tools get it as a prefix where names clash.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Tools of it, in its own names, that are neither shown nor run.
    pub disabled_tools: Vec<String>,
    /// The only tools of it that are shown and run, where the configuration lists some.
    pub included_tools: Option<Vec<String>>,
    /// The folder that its program starts in, relative to the session's; that one where nothing is said.
    pub cwd: Option<PathBuf>,
    /// How long a request may go without a word.
    pub timeout: Option<Duration>,
}

impl McpServer {
    /// Names a server with all of its tools.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            disabled_tools: Vec::new(),
            included_tools: None,
            cwd: None,
            timeout: None,
        }
    }

    /// Whether a tool of it is shown and run.
    pub fn has_tool(&self, name: &str) -> bool {
        let is_included = |names: &Vec<String>| names.iter().any(|included| included == name);
        !self.disabled_tools.iter().any(|disabled| disabled == name)
            && self.included_tools.as_ref().is_none_or(is_included)
    }
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that is started and spoken to on its stdin and stdout.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets beside the usual ones.
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        /// Where it answers.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
    /// The older HTTP transport, which answers on one long stream of events.
    Sse {
        /// Where the stream is.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

impl McpTransport {
    /// Gives the address of a server that is not a program.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { url, .. } | Self::Sse { url, .. } => Some(url),
        }
    }

    /// Tells whether its requests say already who asks.
    pub fn has_authorization(&self) -> bool {
        match self {
            Self::Stdio { .. } => false,
            Self::Http { headers, .. } | Self::Sse { headers, .. } => {
                headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            }
        }
    }
}

/// Headers and variables hold keys, so they are not shown.
impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.transport {
            McpTransport::Stdio { .. } => "stdio",
            McpTransport::Http { .. } => "http",
            McpTransport::Sse { .. } => "sse",
        };
        write!(f, "McpServer({} by {kind})", self.name)
    }
}
