//! What a tool is. Knows none of them.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use crow_acp::{AcpClientCapabilities, ClientEditor, ClientTerminal};
use crow_core::{
    CallId, Confinement, ToolAccess, ToolCallContent, ToolCallInfo, ToolResult, ToolSpec, escape_hidden,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{UndoRecorder, Workspace, workspace::PATH_BYTES_MAX};

/// A call at work.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// What a call would change, on its way; the other side is why it cannot be done at all.
pub type PreviewFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<ToolCallContent>, ToolResult>> + Send + 'a>>;

/// Something the model can have done.
pub trait Tool: Send + Sync {
    /// How the model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// Names the MCP server that it belongs to, when it is none of ours.
    fn server_name(&self) -> Option<&str> {
        None
    }

    /// What that server calls it.
    fn server_tool_name(&self) -> Option<&str> {
        None
    }

    /// Tells whether all it ever does is read what is on this machine: such a call may run though its arguments are
    /// in doubt.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Says what a call would do, whatever is in its arguments.
    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo;

    /// The folder of a call whose output comes piece by piece with such a client.
    fn live_output_dir(
        &self,
        _arguments: &Map<String, Value>,
        _workspace: &Workspace,
        _client: AcpClientCapabilities,
    ) -> Option<PathBuf> {
        None
    }

    /// Tells whether a call runs a command in a terminal of such a client.
    fn runs_in_client(
        &self,
        _arguments: &Map<String, Value>,
        _workspace: &Workspace,
        _client: AcpClientCapabilities,
    ) -> bool {
        false
    }

    /// Shows what it would change, for whoever decides. The arguments fit the schema.
    fn preview<'a>(&'a self, _arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> PreviewFuture<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Does it. The arguments fit the schema.
    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a>;
}

/// All that a call has around it.
#[derive(Clone, Copy)]
pub struct ToolCx<'a> {
    /// The session's folders and what was read in them.
    pub workspace: &'a Workspace,
    /// The files and terminals of the session's client, where there is one.
    pub editor: Option<&'a ClientEditor>,
    /// What it was judged by, as its [`ToolCallInfo`] said: files elsewhere are not opened for it.
    pub access: &'a ToolAccess,
    /// Which call it is, where it belongs to a conversation.
    pub call: Option<CallId>,
    /// How its commands are held. In a terminal of the client one that is free has nothing around it.
    pub confinement: Confinement,
    /// Stops the call.
    pub cancel: &'a CancellationToken,
    /// Shows how far it is.
    pub progress: &'a (dyn Fn(ToolProgress) + Send + Sync),
    /// Keeps what is in a file before it is changed, where changes can be undone.
    pub undo_recorder: Option<&'a dyn UndoRecorder>,
}

impl ToolCx<'_> {
    /// What the client can do; nothing where there is none.
    pub(crate) fn client_capabilities(&self) -> AcpClientCapabilities {
        self.editor.map(ClientEditor::capabilities).unwrap_or_default()
    }

    /// Finds where a path of the call leads, which has to be where it led when the call was judged.
    pub(crate) fn approved_path(&self, path: &str) -> Result<PathBuf, ToolError> {
        let refuse =
            |reason: &str| ToolError(format!("could not use the path `{}`: {reason}", to_title(path)));
        if path.contains('\0') {
            return Err(refuse("no path holds a zero byte"));
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
        let is_evaluated = path.to_str().is_some_and(|path| evaluated.iter().any(|judged| judged == path));
        if is_evaluated { Ok(path) } else { Err(ToolError(PATH_CHANGED.to_owned())) }
    }
}

impl ToolCx<'_> {
    /// Does reading that blocks, off the thread that everybody shares. A disk that does not answer keeps that thread and
    /// not the turn, and a session leaves no more of them behind than [`READERS_MAX`].
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
                Err(ToolError(format!("could not be read: the disk did not answer for {n_seconds} seconds")))
            }
            None => Err(ToolError(CANCELLED.to_owned())),
        }
    }
}

/// Reads of one session at a time; more wait for each other.
pub(crate) const READERS_MAX: usize = 32;

/// Longer than a search of the largest project.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// How far a call is.
#[derive(Debug)]
pub enum ToolProgress {
    /// What there is to see so far, instead of what was there before.
    Content(Vec<ToolCallContent>),
    /// More of what it prints.
    Output(String),
    /// The program that printed has ended.
    Exited {
        /// Its exit code, when it had one.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// It runs in this terminal of the client, to be kept until its result was shown.
    Terminal(Arc<ClientTerminal>),
    /// It did not run: it was to be held, and in the client's terminals nothing can be; see
    /// [`Workspace::no_client_sandbox`].
    SandboxUnavailable,
}

/// Why a call was not done, as a sentence for the model.
#[derive(Debug)]
pub(crate) struct ToolError(pub(crate) String);

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) const PATH_CHANGED: &str =
    "not done: a link leads elsewhere than when the call was judged; look again";

pub(crate) const CANCELLED: &str = "stopped: the turn was cancelled";

/// Makes a call's work into a running call, and a refusal into a failed outcome.
pub(crate) fn into_tool_future<'a>(
    work: impl Future<Output = Result<ToolResult, ToolError>> + Send + 'a,
) -> ToolFuture<'a> {
    Box::pin(async move { work.await.unwrap_or_else(|ToolError(message)| ToolResult::failure(message)) })
}

/// Makes the working out of a preview into one, and a refusal into a failed outcome.
pub(crate) fn into_preview_future<'a>(
    work: impl Future<Output = Result<Vec<ToolCallContent>, ToolError>> + Send + 'a,
) -> PreviewFuture<'a> {
    Box::pin(async move { work.await.map_err(|ToolError(message)| ToolResult::failure(message)) })
}

/// Does work that blocks, off the thread that everybody shares.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(ToolError(format!("the tool broke: {error}"))))
}

/// Reads arguments into a tool's own type.
pub(crate) fn parse_arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| ToolError(format!("the arguments do not fit: {error}")))
}

/// Shows a text argument, empty when there is none: facets are wanted of broken calls too.
pub(crate) fn text_argument<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A title is one line in a list.
const TITLE_CHARS_MAX: usize = 100;

/// Makes a title of one line out of anything.
pub(crate) fn to_title(text: &str) -> String {
    let mut lines = text.trim().lines();
    let line = lines.next().unwrap_or_default().trim_end();
    let is_whole = lines.next().is_none() && line.chars().count() <= TITLE_CHARS_MAX;
    let title = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    let title: String =
        if is_whole { title.collect() } else { title.take(TITLE_CHARS_MAX - 1).chain(['…']).collect() };
    escape_hidden(&title)
}

/// Makes a title of what is done to a path, which a broken call may not have.
pub(crate) fn path_title(verb: &str, path: &str, workspace: &Workspace) -> String {
    if path.is_empty() {
        verb.to_owned()
    } else {
        to_title(&format!("{verb} {}", workspace.display_path(path)))
    }
}
