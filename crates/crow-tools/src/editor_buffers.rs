//! A file's content from the client's buffer, with unsaved changes, or from disk. Must not know any tool.

use crow_acp::{ClientEditor, ClientError};
use crow_files::ReadError;

use crate::{
    ToolCx,
    text_encoding::may_be_text,
    tool_error::{CANCELLED, ToolError, run_blocking},
};

/// Larger files are not read as a whole: they are searched, or shown in parts.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Content of a file.
#[derive(Debug)]
pub(crate) enum OpenedFile {
    Disk(Vec<u8>),
    /// Text from the client, which handles the encoding itself.
    Buffer(String),
}

/// Why a file could not be opened.
#[derive(Debug)]
pub(crate) enum OpenFileError {
    /// It cannot be read. Some tools can do without its content.
    Unreadable(ReadError),
    /// The call failed.
    Failed(ToolError),
}

impl From<ToolError> for OpenFileError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// The destination of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTarget {
    Disk,
    Client,
}

/// The purpose of a read through the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPurpose {
    Show,
    /// The content is written back: requires a client that can read and write files.
    Modify,
    /// The same for the preview of a change. The client is not asked for a new file, since many log an error each time;
    /// the change itself asks.
    Preview,
}

/// Returns where a change of a file is written. A client only has the files of its project.
pub(crate) fn write_target(cx: &ToolCx<'_>, file_path: &str) -> WriteTarget {
    let is_client_file = cx.client_capabilities().writes_files && cx.workspace.contains(file_path);
    if is_client_file { WriteTarget::Client } else { WriteTarget::Disk }
}

/// Reads a file: from the client if it has it, else from disk. Binary files are read from disk.
pub(crate) async fn open_file(
    cx: &ToolCx<'_>,
    file_path: &str,
    purpose: ReadPurpose,
) -> Result<OpenedFile, OpenFileError> {
    let path = cx.approved_path(file_path)?;
    let is_unread = cx.workspace.seen_stamp(&path).is_none();
    let on_disk = cx.read_blocking(move || Ok(crow_files::read_file(&path, FILE_BYTES_MAX))).await?;
    let may_be_text = match &on_disk {
        Ok(bytes) => may_be_text(bytes),
        Err(ReadError::Missing) => true,
        Err(
            ReadError::Directory | ReadError::NotAFile | ReadError::TooLarge { .. } | ReadError::System(_),
        ) => false,
    };
    let wants_buffer = match purpose {
        ReadPurpose::Show => true,
        ReadPurpose::Modify => write_target(cx, file_path) == WriteTarget::Client,
        ReadPurpose::Preview => {
            let is_new = is_unread && matches!(on_disk, Err(ReadError::Missing));
            !is_new && write_target(cx, file_path) == WriteTarget::Client
        }
    };
    let editor = cx.editor.filter(|editor| editor.capabilities().reads_files);
    let Some(editor) = editor.filter(|_| may_be_text && wants_buffer && cx.workspace.contains(file_path))
    else {
        return on_disk.map(OpenedFile::Disk).map_err(OpenFileError::Unreadable);
    };
    match read_from_client(cx, editor, file_path).await? {
        Some(text) => Ok(OpenedFile::Buffer(text)),
        None => on_disk.map(OpenedFile::Disk).map_err(OpenFileError::Unreadable),
    }
}

/// Reads a file through the client; `None` if the client does not have it.
async fn read_from_client(
    cx: &ToolCx<'_>,
    editor: &ClientEditor,
    file_path: &str,
) -> Result<Option<String>, ToolError> {
    let path = cx.workspace.to_absolute(file_path);
    match editor.read_file(&path, cx.cancel).await {
        Ok(text) if text.len() as u64 <= FILE_BYTES_MAX => Ok(Some(text)),
        Ok(text) => {
            let error = ReadError::TooLarge { n_bytes: text.len() as u64, bytes_max: FILE_BYTES_MAX };
            Err(ToolError(format!("could not read {}: {error}", cx.workspace.display_path(file_path))))
        }
        Err(ClientError::Cancelled) => Err(ToolError(CANCELLED.to_owned())),
        Err(error @ (ClientError::Rejected(_) | ClientError::TimedOut(_))) => {
            tracing::debug!(%error, "the client did not return a file; reading it from disk");
            Ok(None)
        }
    }
}

/// Writes a text through the client and returns the client's text if it differs: an editor may format on save.
pub(crate) async fn save_through_client(
    cx: &ToolCx<'_>,
    editor: &ClientEditor,
    file_path: &str,
    text: &str,
) -> Result<Option<String>, ToolError> {
    let refuse = |reason: &dyn std::fmt::Display| {
        ToolError(format!("could not write {}: {reason}", cx.workspace.display_path(file_path)))
    };
    let approved_path = cx.approved_path(file_path)?;
    let created =
        run_blocking(move || Ok(crow_files::open_or_create_parent(&approved_path).map(drop))).await?;
    created.map_err(|error| refuse(&error))?;
    let path = cx.workspace.to_absolute(file_path);
    editor.write_file(&path, text, cx.cancel).await.map_err(|error| refuse(&error))?;
    if !editor.capabilities().reads_files {
        return Ok(None);
    }
    // The write is done even if this is cancelled.
    let current = editor.read_file(&path, cx.cancel).await.ok();
    Ok(current.filter(|current| current != text))
}
