//! A file that the person pointed at, as text: the lines that they named, or all of it when it is short.

use crow_core::{PageRange, image_type};

use crate::{
    ToolCx,
    buffers::{self, Opened, Purpose},
    files::ReadError,
    read::{LINE_CHARS_MAX, LOSSY, page, page_of_file, refuse},
    text::{Decoded, decode},
    tool::Refusal,
    workspace::Stamp,
};

/// Bytes of one file; who wants more of it reads it.
const BYTES_MAX: usize = 32 * 1024;

/// Reads a file that may be read, through the client where it has it, as numbered lines. The other side is a sentence that
/// says why there are none.
pub async fn read_link(cx: ToolCx<'_>, path: &str, lines: Option<(u64, u64)>) -> Result<String, String> {
    text_of_link(cx, path, lines).await.map_err(|Refusal(why)| why)
}

async fn text_of_link(cx: ToolCx<'_>, path: &str, lines: Option<(u64, u64)>) -> Result<String, Refusal> {
    let resolved = cx.judged(path)?;
    let shown = cx.workspace.shown(path);
    let range = range(lines);
    let too_large = |n_bytes: u64| {
        Refusal(format!(
            "{shown} is not put here: it has {n_bytes} bytes; read what you need of it with `read`"
        ))
    };
    let bytes = match buffers::open(&cx, path, Purpose::Look).await? {
        Ok(Opened::Buffer(text)) => text.into_bytes(),
        Ok(Opened::Disk(bytes)) => bytes,
        Err(ReadError::TooLarge { .. }) if lines.is_some() => {
            let cut = cx.cut.clone();
            let shown = shown.clone();
            return cx.read_off_thread(move || page_of_file(&resolved, &shown, range, &cut)).await;
        }
        Err(ReadError::TooLarge { n_bytes, .. }) => return Err(too_large(n_bytes)),
        Err(error) => return Err(refuse(&resolved, &shown, &error)),
    };
    let n_bytes = bytes.len();
    if let Some(mime) = image_type(&bytes) {
        return Err(Refusal(format!("{shown} is an image ({mime}, {n_bytes} bytes); `read` shows it")));
    }
    let (text, note) = match decode(bytes) {
        Decoded::Text(text, _) => (text, ""),
        Decoded::Lossy(text) => (text, LOSSY),
        Decoded::Binary => return Err(Refusal(format!("{shown} is a binary file of {n_bytes} bytes"))),
    };
    if lines.is_none() && text.len() > BYTES_MAX {
        return Err(too_large(n_bytes as u64));
    }
    let page = page(&text, &shown, range)? + note;
    cx.workspace.remember(resolved, Stamp::of(&text));
    Ok(page)
}

fn range(lines: Option<(u64, u64)>) -> PageRange {
    let to_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (first, lines_max) = lines.map_or((1, usize::MAX), |(first, last)| {
        (to_usize(first), to_usize(last.saturating_sub(first).saturating_add(1)))
    });
    PageRange { first, lines_max, bytes_max: BYTES_MAX, chars_max: LINE_CHARS_MAX }
}
