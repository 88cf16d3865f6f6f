//! Serves Crow's tools to any MCP client.
//!
//! The client asks its user before it calls a tool, so that calls within the roots count as allowed. Other calls need
//! permission through the client, or are rejected.

mod call_mode;
mod call_schedule;
mod convert;
mod elicitation;
mod handler;
mod http_server;
mod watched_streams;

use std::{path::PathBuf, sync::Arc, time::Duration};

use crow_core::{Mode, PermissionRules, SandboxMode};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use self::handler::{RootsPolicy, ToolServerHandler};
use self::watched_streams::{EofSignalReader, ProgressWriter, WriteProgress, wait_for_stall};
use crate::ToolRegistry;

pub use self::http_server::{McpHttpEndpoint, serve_http};

/// A script that closes its side right after its calls still gets the responses of quick ones.
const FINAL_RESPONSES_WAIT: Duration = Duration::from_secs(1);

/// The tools to serve, and their limits.
#[derive(Clone)]
pub struct McpServeConfig {
    /// The tools to serve.
    pub tools: ToolRegistry,
    /// Their working directory.
    pub cwd: PathBuf,
    /// Environment variables that contain keys; commands do not get them.
    pub secret_variables: Vec<String>,
    /// The configured mode; only `plan` has an effect.
    pub mode: Mode,
    /// The rules that allow and deny calls.
    pub rules: PermissionRules,
    /// Which commands run in the sandbox.
    pub sandbox: SandboxMode,
    /// Directories that may be read beside the roots, such as the output of commands.
    pub readable: Vec<PathBuf>,
    /// The directory of the configuration with its keys.
    pub config_dir: PathBuf,
}

/// Reason why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum McpServeError {
    /// The client does not speak the protocol.
    #[error("the client did not initialize as MCP requires: {0}")]
    NoHandshake(String),
    /// The connection to the client was lost.
    #[error("the connection to the client was lost: {0}")]
    Broken(String),
    /// The client has left responses unread.
    #[error("the client did not read the last responses")]
    Unread,
    /// The operating system's error.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// Serves one client on a pair of streams, until it closes its side or `cancel` is cancelled. It gets what is left as long as
/// it reads.
pub async fn serve_stdio(
    config: McpServeConfig,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    cancel: CancellationToken,
) -> Result<(), McpServeError> {
    let tools = config.tools.clone();
    let handler = ToolServerHandler::new(Arc::new(config), RootsPolicy::Client);
    let closed = CancellationToken::new();
    let progress = watch::Sender::new(WriteProgress::default());
    let written = progress.subscribe();
    let read = EofSignalReader { inner: read, closed: closed.clone() };
    let write = ProgressWriter { inner: write, progress };
    let result = match serve_server_with_ct(handler, (read, write), cancel.clone()).await {
        Ok(running) => {
            let end = async {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = closed.cancelled() => tokio::time::sleep(FINAL_RESPONSES_WAIT).await,
                }
                tools.stop_programs();
                wait_for_stall(written).await;
            };
            tokio::select! {
                biased;
                quit_result = running.waiting() => match quit_result {
                    Ok(QuitReason::JoinError(error)) | Err(error) => {
                        Err(McpServeError::Broken(error.to_string()))
                    }
                    Ok(_) => Ok(()),
                },
                () = end => Err(McpServeError::Unread),
            }
        }
        Err(ServerInitializeError::Cancelled) => Ok(()),
        // The client disconnected without a request.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(McpServeError::NoHandshake(crate::title::to_title(&error.to_string()))),
    };
    tools.stop_programs();
    result
}

#[cfg(test)]
mod tests;
