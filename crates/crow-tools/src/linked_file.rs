//! Renders a file that the user linked in a prompt: the lines of the link, or the whole file if it is short.

use crow_core::{PageRange, image_type};
use crow_files::ReadError;

use crate::{
    ToolCx,
    editor_buffers::{self, OpenFileError, OpenedFile, ReadPurpose},
    read::{LINE_CHARS_MAX, LOSSY_NOTE, read_error, read_file_page, render_text},
    text_encoding::{DecodedText, decode_text},
    tool_error::ToolError,
    workspace::ContentStamp,
};

/// Size of one file; the model reads larger ones itself.
const BYTES_MAX: usize = 32 * 1024;

/// Reads a permitted file, through the client if it has it, as numbered lines. `Err` is the reason for the model.
pub async fn read_resource_link(
    cx: ToolCx<'_>,
    path: &str,
    lines: Option<(u64, u64)>,
) -> Result<String, String> {
    render_linked_file(cx, path, lines).await.map_err(|ToolError(reason)| reason)
}

async fn render_linked_file(
    cx: ToolCx<'_>,
    path: &str,
    lines: Option<(u64, u64)>,
) -> Result<String, ToolError> {
    let resolved = cx.approved_path(path)?;
    let display_path = cx.workspace.display_path(path);
    let range = page_range(lines);
    let too_large = |n_bytes: u64| {
        ToolError(format!(
            "{display_path} is not included: it has {n_bytes} bytes; read what you need of it with `read`"
        ))
    };
    let bytes = match editor_buffers::open_file(&cx, path, ReadPurpose::Show).await {
        Ok(OpenedFile::Buffer(text)) => text.into_bytes(),
        Ok(OpenedFile::Disk(bytes)) => bytes,
        Err(OpenFileError::Unreadable(ReadError::TooLarge { .. })) if lines.is_some() => {
            let cancel = cx.cancel.clone();
            let display_path = display_path.clone();
            return cx.read_blocking(move || read_file_page(&resolved, &display_path, range, &cancel)).await;
        }
        Err(OpenFileError::Unreadable(ReadError::TooLarge { n_bytes, .. })) => {
            return Err(too_large(n_bytes));
        }
        Err(OpenFileError::Unreadable(error)) => return Err(read_error(&resolved, &display_path, &error)),
        Err(OpenFileError::Failed(error)) => return Err(error),
    };
    let n_bytes = bytes.len();
    if let Some(mime) = image_type(&bytes) {
        return Err(ToolError(format!(
            "{display_path} is an image ({mime}, {n_bytes} bytes); `read` shows it"
        )));
    }
    let (text, note) = match decode_text(bytes) {
        DecodedText::Text(text, _) => (text, ""),
        DecodedText::Lossy(text) => (text, LOSSY_NOTE),
        DecodedText::Binary => {
            return Err(ToolError(format!("{display_path} is a binary file of {n_bytes} bytes")));
        }
    };
    if lines.is_none() && text.len() > BYTES_MAX {
        return Err(too_large(n_bytes as u64));
    }
    let page = render_text(&text, &display_path, range)? + note;
    cx.workspace.record_seen(resolved, ContentStamp::from_text(&text));
    Ok(page)
}

fn page_range(lines: Option<(u64, u64)>) -> PageRange {
    let to_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (first, lines_max) = lines.map_or((1, usize::MAX), |(first, last)| {
        (to_usize(first), to_usize(last.saturating_sub(first).saturating_add(1)))
    });
    PageRange { first_line: first, lines_max, bytes_max: BYTES_MAX, chars_max: LINE_CHARS_MAX }
}
