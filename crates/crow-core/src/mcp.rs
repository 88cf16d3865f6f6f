//! MCP servers of a session, by configuration or client. Knows no protocol.

use std::{path::PathBuf, time::Duration};

/// An MCP server.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The configured name; it prefixes tool names that clash.
    pub name: String,
    /// The transport to the server.
    pub transport: McpTransport,
    /// Tools, by the server's names, that are neither offered nor run.
    pub disabled_tools: Vec<String>,
    /// The only tools that are offered and run, if configured.
    pub included_tools: Option<Vec<String>>,
    /// The working directory of its program, relative to the session's; the session's if `None`.
    pub cwd: Option<PathBuf>,
    /// The maximum time without progress of a request.
    pub timeout: Option<Duration>,
}

impl McpServer {
    /// Creates a server with all of its tools.
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

    /// Whether a tool is offered and run.
    pub fn has_tool(&self, name: &str) -> bool {
        let is_included = |names: &Vec<String>| names.iter().any(|included| included == name);
        !self.disabled_tools.iter().any(|disabled| disabled == name)
            && self.included_tools.as_ref().is_none_or(is_included)
    }
}

/// The transport to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program with the protocol on its stdin and stdout.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables added to the inherited ones.
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
    /// The older HTTP transport, with one stream of events.
    Sse {
        /// The address of the stream.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

impl McpTransport {
    /// Returns the address of an HTTP server.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { url, .. } | Self::Sse { url, .. } => Some(url),
        }
    }

    /// Whether the headers contain credentials.
    pub fn has_authorization(&self) -> bool {
        match self {
            Self::Stdio { .. } => false,
            Self::Http { headers, .. } | Self::Sse { headers, .. } => {
                headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            }
        }
    }
}

/// Headers and variables may contain keys and are not shown.
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
