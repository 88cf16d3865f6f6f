//! Which MCP servers a session has, as configuration and clients name them. Knows no protocol: connecting is
//! somebody else's work.

/// A server to connect to.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// What it is called here; its tools get it as a prefix where names clash.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
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
