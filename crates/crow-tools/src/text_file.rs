//! The text of a file that a tool changes, and whether it is the version that the model knows. Must not know any tool.

use std::path::Path;

use crate::{
    ToolCx,
    editor_buffers::{FILE_BYTES_MAX, OpenedFile},
    file_write::{CHANGED_OR_UNSAVED, CHANGED_SINCE_READ},
    text_encoding::{DecodedText, TextEncoding, decode_text},
    tool_error::{ToolError, run_blocking},
    workspace::ContentStamp,
};

const UNKNOWN_ENCODING: &str = "its encoding is unknown and would be lost";
const BINARY: &str = "it is a binary file";

/// A file's text.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) text: String,
    /// The encoding of the file on disk; `None` if the client writes it.
    pub(crate) encoding: Option<TextEncoding>,
}

/// Decodes an opened file, by its resolved path. `Err` is the reason why it cannot be changed.
pub(crate) async fn decode_file(opened: OpenedFile, path: &Path) -> Result<TextFile, ToolError> {
    let path = path.to_owned();
    run_blocking(move || match opened {
        OpenedFile::Disk(bytes) => match decode_text(bytes) {
            DecodedText::Text(text, encoding) => Ok(TextFile { text, encoding: Some(encoding) }),
            DecodedText::Lossy(_) => Err(ToolError(UNKNOWN_ENCODING.to_owned())),
            DecodedText::Binary => Err(ToolError(BINARY.to_owned())),
        },
        OpenedFile::Buffer(text) => {
            check_buffer(&text, &path)?;
            Ok(TextFile { text, encoding: None })
        }
    })
    .await
}

/// Rejects an editor's buffer with replacement characters if the file's encoding is unknown: saving it would write them
/// over the original bytes.
fn check_buffer(text: &str, path: &Path) -> Result<(), ToolError> {
    if !text.contains(char::REPLACEMENT_CHARACTER) {
        return Ok(());
    }
    match crow_files::read_file(path, FILE_BYTES_MAX).map(decode_text) {
        Ok(DecodedText::Lossy(_)) => Err(ToolError(UNKNOWN_ENCODING.to_owned())),
        Ok(DecodedText::Text(..) | DecodedText::Binary) | Err(_) => Ok(()),
    }
}

/// Rejects a text that is another one than the model has read, by the resolved path of the file; a file that it has not
/// read is accepted.
pub(crate) fn check_known_version(cx: &ToolCx<'_>, path: &Path, text: &str) -> Result<(), &'static str> {
    let known = cx.workspace.seen_stamp(path);
    if known.is_none_or(|stamp| stamp == ContentStamp::from_text(text)) {
        return Ok(());
    }
    let is_read_only_client = cx.client_capabilities().reads_files && !cx.client_capabilities().writes_files;
    Err(if is_read_only_client { CHANGED_OR_UNSAVED } else { CHANGED_SINCE_READ })
}
