//! Crow's own tools for any MCP client.
//!
//! The client asks its person before it calls a tool, so what stays inside the folders it was given counts as allowed.
//! The rest is asked for through the client, or refused.

mod call_mode;
mod convert;
mod elicitation;
mod handler;
mod http_server;

use std::{
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use crow_core::{Mode, PermissionRules, SandboxMode};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use self::handler::{RootsPolicy, ToolServerHandler};
use crate::ToolRegistry;

pub use self::http_server::{McpHttpEndpoint, serve_http};

/// A script that closes its side right after its calls still gets the answers of quick ones.
const FINAL_RESPONSES_WAIT: Duration = Duration::from_secs(1);

/// What is served, and within which bounds.
#[derive(Clone)]
pub struct McpServeConfig {
    /// The tools.
    pub tools: ToolRegistry,
    /// Where they work.
    pub cwd: PathBuf,
    /// Environment variables that hold keys; no command gets them.
    pub secret_variables: Vec<String>,
    /// The mode of the configuration; only `plan` makes a difference.
    pub mode: Mode,
    /// What is allowed and denied for good.
    pub rules: PermissionRules,
    /// Which commands run in the sandbox.
    pub sandbox: SandboxMode,
    /// Where may be read beside the folders, such as the output of commands.
    pub readable: Vec<PathBuf>,
    /// The configuration with its keys.
    pub config_dir: PathBuf,
}

/// Why serving came to an end that nobody wanted.
#[derive(Debug, thiserror::Error)]
pub enum McpServeError {
    /// The other side does not speak the protocol.
    #[error("the client does not begin as MCP clients do: {0}")]
    NoHandshake(String),
    /// The connection to the client is gone in the middle of something.
    #[error("the connection to the client broke: {0}")]
    Broken(String),
    /// The system refused.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// What reads a client's words, and tells that it has closed its side.
struct EofSignalReader<R> {
    inner: R,
    closed: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EofSignalReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let n_before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = polled
            && buffer.filled().len() == n_before
        {
            self.closed.cancel();
        }
        polled
    }
}

/// Serves one client on a pair of pipes, until it closes its side or `cut` says so.
pub async fn serve_stdio(
    config: McpServeConfig,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    cancel: CancellationToken,
) -> Result<(), McpServeError> {
    let tools = config.tools.clone();
    let handler = ToolServerHandler::new(Arc::new(config), RootsPolicy::Client);
    let closed = CancellationToken::new();
    let read = EofSignalReader { inner: read, closed: closed.clone() };
    let result = match serve_server_with_ct(handler, (read, write), cancel.clone()).await {
        Ok(running) => {
            let programs = tools.clone();
            let shutdown = tokio::spawn(async move {
                closed.cancelled().await;
                tokio::time::sleep(FINAL_RESPONSES_WAIT).await;
                programs.stop_programs();
            });
            let quit_result = running.waiting().await;
            shutdown.abort();
            match quit_result {
                Ok(QuitReason::JoinError(error)) | Err(error) => {
                    Err(McpServeError::Broken(error.to_string()))
                }
                Ok(_) => Ok(()),
            }
        }
        Err(ServerInitializeError::Cancelled) => Ok(()),
        // Somebody looked in and left.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(McpServeError::NoHandshake(crate::tool::to_title(&error.to_string()))),
    };
    tools.stop_programs();
    result
}
