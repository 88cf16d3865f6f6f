//! A file as the session's client sees it, with what is unsaved in it, or as it is on disk. Knows no tool.

use crow_acp::{ClientError, Editor};

use crate::{
    ToolCx,
    files::{self, FILE_BYTES_MAX, ReadError},
    tool::{CANCELLED, Refusal, off_thread},
};

/// A file that was read.
#[derive(Debug)]
pub(crate) enum Opened {
    /// From disk.
    Disk(Vec<u8>),
    /// From the client, which keeps its encoding to itself.
    Buffer(String),
}

/// Where a change of a file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// The disk.
    Disk,
    /// The client's buffer.
    Client,
}

/// What a read through the client is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show it.
    Look,
    /// To write it back: only through a client that does both.
    Change,
}

/// Tells where a change of a file goes. A client has the files of its project and no others.
pub(crate) fn via(cx: &ToolCx<'_>, file_path: &str) -> Via {
    let is_its = cx.abilities().writes_files && cx.workspace.holds(file_path);
    if is_its { Via::Client } else { Via::Disk }
}

/// Reads a file. What is no text is read from disk, as is what the client does not have.
pub(crate) async fn open(
    cx: &ToolCx<'_>,
    file_path: &str,
    purpose: Purpose,
) -> Result<Result<Opened, ReadError>, Refusal> {
    let path = cx.judged(file_path)?;
    let on_disk = cx.read_off_thread(move || Ok(files::read(&path, FILE_BYTES_MAX))).await?;
    let may_be_text = match &on_disk {
        Ok(bytes) => files::may_be_text(bytes),
        Err(ReadError::Missing) => true,
        Err(ReadError::Folder | ReadError::NotAFile | ReadError::TooLarge { .. } | ReadError::System(_)) => {
            false
        }
    };
    let is_wanted = match purpose {
        Purpose::Look => true,
        Purpose::Change => via(cx, file_path) == Via::Client,
    };
    let editor = cx.editor.filter(|editor| editor.abilities().reads_files);
    let Some(editor) = editor.filter(|_| may_be_text && is_wanted && cx.workspace.holds(file_path)) else {
        return Ok(on_disk.map(Opened::Disk));
    };
    match ask(cx, editor, file_path).await? {
        Some(text) => Ok(Ok(Opened::Buffer(text))),
        None => Ok(on_disk.map(Opened::Disk)),
    }
}

/// Asks the client for a file; `None` when it does not have it.
async fn ask(cx: &ToolCx<'_>, editor: &Editor, file_path: &str) -> Result<Option<String>, Refusal> {
    let path = cx.workspace.absolute(file_path);
    match editor.read_file(&path, cx.cut).await {
        Ok(text) if text.len() as u64 <= FILE_BYTES_MAX => Ok(Some(text)),
        Ok(text) => {
            let error = ReadError::TooLarge { n_bytes: text.len() as u64, bytes_max: FILE_BYTES_MAX };
            Err(Refusal(format!("could not read {}: {error}", cx.workspace.shown(file_path))))
        }
        Err(ClientError::Cut) => Err(Refusal(CANCELLED.to_owned())),
        Err(error @ (ClientError::Refused(_) | ClientError::Silent(_))) => {
            tracing::debug!(%error, "the client does not show a file; it is read from disk");
            Ok(None)
        }
    }
}

/// Writes a text through the client and tells what it holds then: an editor may format what it saves.
pub(crate) async fn save(
    cx: &ToolCx<'_>,
    editor: &Editor,
    file_path: &str,
    text: &str,
) -> Result<Option<String>, Refusal> {
    let refuse = |why: &dyn std::fmt::Display| {
        Refusal(format!("could not write {}: {why}", cx.workspace.shown(file_path)))
    };
    let place = cx.judged(file_path)?;
    let made = off_thread(move || Ok(files::folder_of(&place).map(drop))).await?;
    made.map_err(|error| refuse(&error))?;
    let path = cx.workspace.absolute(file_path);
    editor.write_file(&path, text, cx.cut).await.map_err(|error| refuse(&error))?;
    if !editor.abilities().reads_files {
        return Ok(None);
    }
    // What is cut now was written all the same.
    let now = editor.read_file(&path, cx.cut).await.ok();
    Ok(now.filter(|now| now != text))
}
