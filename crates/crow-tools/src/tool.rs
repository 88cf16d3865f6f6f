//! The [`Tool`] trait and its context. Must not know any tool.

use std::{path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use crow_acp::{AcpClientCapabilities, ClientEditor, ClientTerminal};
use crow_core::{CallId, Confinement, ToolAccess, ToolCallContent, ToolCallInfo, ToolResult, ToolSpec};
use crow_files::PATH_BYTES_MAX;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    McpSessionPort, UndoRecorder, Workspace,
    title::to_title,
    tool_error::{CANCELLED, PATH_CHANGED, ToolError, run_blocking},
};

/// A running call.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// A pending preview; `Err` is the result of a call that cannot run.
pub type PreviewFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<ToolCallContent>, ToolResult>> + Send + 'a>>;

/// A tool that the model can call.
pub trait Tool: Send + Sync {
    /// The specification for the model.
    fn spec(&self) -> &ToolSpec;

    /// The MCP server that it belongs to, if any.
    fn server_name(&self) -> Option<&str> {
        None
    }

    /// The server's name for it.
    fn server_tool_name(&self) -> Option<&str> {
        None
    }

    /// Whether it only reads from this machine: such a call may run even if the repair of its arguments is in doubt.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns the call info for any arguments, valid or not.
    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo;

    /// The working directory of a call whose output such a client shows live.
    fn live_output_dir(
        &self,
        _arguments: &Map<String, Value>,
        _workspace: &Workspace,
        _client: AcpClientCapabilities,
    ) -> Option<PathBuf> {
        None
    }

    /// Whether a call runs a command in a terminal of such a client.
    fn runs_in_client(
        &self,
        _arguments: &Map<String, Value>,
        _workspace: &Workspace,
        _client: AcpClientCapabilities,
    ) -> bool {
        false
    }

    /// Returns what the call would change, for the permission request. The arguments match the schema.
    fn preview<'a>(&'a self, _arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> PreviewFuture<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Runs the call. The arguments match the schema.
    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a>;
}

/// The context of a call.
#[derive(Clone, Copy)]
pub struct ToolCx<'a> {
    /// The session's roots and the files read in them.
    pub workspace: &'a Workspace,
    /// The files and terminals of the session's client, if it has one.
    pub editor: Option<&'a ClientEditor>,
    /// The access that was evaluated, from its [`ToolCallInfo`]: other files are not opened for it.
    pub access: &'a ToolAccess,
    /// Whether the model may read the files that the call writes without a question.
    pub may_read_written: bool,
    /// The call's ID, if it belongs to a conversation.
    pub call: Option<CallId>,
    /// The confinement of its commands. An unconfined command in a terminal of the client runs without the supervisor.
    pub confinement: Confinement,
    /// Cancels the call.
    pub cancel: &'a CancellationToken,
    /// Reports progress.
    pub progress: &'a (dyn Fn(ToolProgress) + Send + Sync),
    /// Records a file before it is changed, if changes can be undone.
    pub undo_recorder: Option<&'a dyn UndoRecorder>,
    /// The session, for requests of the MCP server that runs the call; `None` if there is no user or model for it.
    pub mcp_session: Option<&'a dyn McpSessionPort>,
}

impl ToolCx<'_> {
    /// The client's capabilities; none without a client.
    pub(crate) fn client_capabilities(&self) -> AcpClientCapabilities {
        self.editor.map(ClientEditor::capabilities).unwrap_or_default()
    }

    /// Resolves a path of the call; it must lead where it led when the call was evaluated.
    pub(crate) fn approved_path(&self, path: &str) -> Result<PathBuf, ToolError> {
        let refuse =
            |reason: &str| ToolError(format!("could not use the path `{}`: {reason}", to_title(path)));
        if path.contains('\0') {
            return Err(refuse("a path cannot contain a zero byte"));
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(refuse("it is longer than any path"));
        }
        let evaluated = match self.access {
            ToolAccess::Reads(paths) | ToolAccess::Writes(paths) => paths.as_slice(),
            ToolAccess::Nothing
            | ToolAccess::Runs(_)
            | ToolAccess::Calls { .. }
            | ToolAccess::Fetches { .. }
            | ToolAccess::Searches => &[],
        };
        let path = self.workspace.resolve_path(path);
        let is_evaluated = path.to_str().is_some_and(|path| evaluated.iter().any(|known| known == path));
        if is_evaluated { Ok(path) } else { Err(ToolError(PATH_CHANGED.to_owned())) }
    }
}

impl ToolCx<'_> {
    /// Runs a blocking read on another thread. A disk that does not respond blocks that thread and not the turn, and a
    /// session leaves a bounded number of them behind.
    pub(crate) async fn read_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let readers = self.workspace.read_permits();
        let read_task = async move {
            let permit = readers.acquire_owned().await;
            run_blocking(move || {
                let _permit = permit;
                work()
            })
            .await
        };
        match self.cancel.run_until_cancelled(timeout(READ_TIMEOUT, read_task)).await {
            Some(Ok(read)) => read,
            Some(Err(_)) => {
                let n_seconds = READ_TIMEOUT.as_secs();
                Err(ToolError(format!("could not be read: the disk did not respond for {n_seconds} seconds")))
            }
            None => Err(ToolError(CANCELLED.to_owned())),
        }
    }
}

/// Longer than a search of the largest project.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Progress of a call.
#[derive(Debug)]
pub enum ToolProgress {
    /// The content so far, replacing the previous one.
    Content(Vec<ToolCallContent>),
    /// Further output.
    Output(String),
    /// The program that printed has exited.
    Exited {
        /// Its exit code, if it had one.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// It runs in this terminal of the client, which must be kept until the result was shown.
    Terminal(Arc<ClientTerminal>),
    /// It did not run: it had to be confined, which the client's terminals do not support; see
    /// [`Workspace::no_client_sandbox`].
    SandboxUnavailable,
}

/// Converts a call's work to a tool future, and an error to a failed result.
pub(crate) fn into_tool_future<'a>(
    work: impl Future<Output = Result<ToolResult, ToolError>> + Send + 'a,
) -> ToolFuture<'a> {
    Box::pin(async move { work.await.unwrap_or_else(|ToolError(message)| ToolResult::failure(message)) })
}

/// Converts the computation of a preview to a preview future, and an error to a failed result.
pub(crate) fn into_preview_future<'a>(
    work: impl Future<Output = Result<Vec<ToolCallContent>, ToolError>> + Send + 'a,
) -> PreviewFuture<'a> {
    Box::pin(async move { work.await.map_err(|ToolError(message)| ToolResult::failure(message)) })
}

/// Parses arguments into a tool's own type.
pub(crate) fn parse_arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| ToolError(format!("the arguments are invalid: {error}")))
}

/// Returns a text argument, empty if there is none: invalid calls have a call info too.
pub(crate) fn text_argument<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the title of an action on a path, which an invalid call may not have.
pub(crate) fn path_title(verb: &str, path: &str, workspace: &Workspace) -> String {
    if path.is_empty() {
        verb.to_owned()
    } else {
        to_title(&format!("{verb} {}", workspace.display_path(path)))
    }
}
