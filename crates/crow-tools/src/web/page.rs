//! Decodes a response body: its type, its encoding, one part of its text. Pure.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use reqwest::Url;

use super::markdown;
use crate::{text_encoding::may_be_text, tool_error::ToolError};

/// Browsers search for an encoding declaration in as many bytes.
const PRESCAN_BYTES: usize = 1024;

/// Minimum length of the line around a page.
const FENCE_MIN: usize = 8;

/// The type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    Html,
    Text,
    Image,
    /// Determined by its bytes.
    Unknown,
    Binary,
}

impl PageKind {
    /// Parses a content type, in lower case.
    pub(super) fn from_content_type(content_type: &str) -> Self {
        let essence = mime_essence(content_type);
        let (class, name) = essence.split_once('/').unwrap_or_default();
        match (class, name) {
            ("text", "html") | ("application", "xhtml+xml") => Self::Html,
            ("text", _) => Self::Text,
            ("image", "png" | "jpeg" | "gif" | "webp") => Self::Image,
            (_, name) if name.ends_with("+json") || name.ends_with("+xml") => Self::Text,
            (
                "application",
                "json" | "xml" | "javascript" | "yaml" | "x-yaml" | "toml" | "x-ndjson" | "sql",
            ) => Self::Text,
            ("audio" | "font" | "image" | "video", _) => Self::Binary,
            ("application", "gzip" | "pdf" | "wasm" | "zip" | "zstd") => Self::Binary,
            _ => Self::Unknown,
        }
    }
}

/// The type without parameters.
pub(super) fn mime_essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// The requested form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageForm {
    Readable,
    Source,
}

/// Converts a body to text; CPU intensive.
pub(super) fn body_to_text(
    bytes: &[u8],
    content_type: &str,
    url: &Url,
    form: PageForm,
) -> Result<String, ToolError> {
    let encoding = detect_encoding(bytes, content_type);
    let is_utf16 = encoding == UTF_16LE || encoding == UTF_16BE;
    if !is_utf16 && !may_be_text(bytes) {
        return Err(binary_error(content_type));
    }
    let (text, ..) = encoding.decode(bytes);
    let is_html = match PageKind::from_content_type(content_type) {
        PageKind::Html => true,
        PageKind::Unknown => looks_like_html(&text),
        PageKind::Text | PageKind::Image | PageKind::Binary => false,
    };
    if !is_html || form == PageForm::Source {
        return Ok(text.into_owned());
    }
    let broken = || ToolError("the page could not be converted; raw=true shows its source".to_owned());
    markdown::html_to_markdown(&text, url).ok_or_else(broken)
}

/// Returns the error for a binary body.
pub(super) fn binary_error(content_type: &str) -> ToolError {
    let kind = match mime_essence(content_type) {
        "" => "of unknown type",
        essence => essence,
    };
    ToolError(format!("it is a binary file ({kind}); to use it, download it with a command"))
}

fn looks_like_html(text: &str) -> bool {
    let head = text.trim_start().get(..14).unwrap_or_default().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

/// Detects a text's encoding: byte order mark, then the server's, then its own declaration, then its content.
fn detect_encoding(bytes: &[u8], content_type: &str) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    let labelled = find_encoding_label(content_type.as_bytes(), "charset");
    let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
    let declared = || match PageKind::from_content_type(content_type) {
        PageKind::Html | PageKind::Unknown => {
            find_encoding_label(head, "charset").or_else(|| find_encoding_label(head, "encoding"))
        }
        PageKind::Text if mime_essence(content_type).ends_with("xml") => {
            find_encoding_label(head, "encoding")
        }
        PageKind::Text | PageKind::Image | PageKind::Binary => None,
    };
    // Text that could be read as ASCII is not UTF-16, whatever it declares.
    let declared = || {
        declared().map(|encoding| if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
    };
    match labelled.or_else(declared) {
        Some(encoding) => encoding,
        None if is_utf8(bytes) => UTF_8,
        None => WINDOWS_1252,
    }
}

/// Parses `key=label`, quoted or not.
fn find_encoding_label(bytes: &[u8], key: &str) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let (_, rest) = text.split_once(key)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let ends = |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_' | '.' | ':');
    Encoding::for_label(rest.split(ends).next()?.as_bytes())
}

/// A truncated text may end within a character.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// A part of a text, counted in characters.
pub(super) struct TextExcerpt<'a> {
    pub(super) text: &'a str,
    pub(super) end: usize,
    pub(super) n_chars: usize,
}

/// Returns a part of a text; `None` if the text ends before it.
pub(super) fn cut_excerpt(text: &str, start: usize, chars_max: usize) -> Option<TextExcerpt<'_>> {
    let n_chars = text.chars().count();
    if start > 0 && start >= n_chars {
        return None;
    }
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let end = start.saturating_add(chars_max).min(n_chars);
    Some(TextExcerpt { text: &text[byte(start)..byte(end)], end, n_chars })
}

/// Encloses untrusted text in two lines that do not occur in it.
pub(super) fn fence_text(text: &str) -> String {
    let rulers = text.lines().map(|line| line.trim()).filter(|line| line.bytes().all(|byte| byte == b'='));
    let longest = rulers.map(str::len).max().unwrap_or_default();
    let fence = "=".repeat(FENCE_MIN.max(longest + 1));
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{newline}{fence}\n")
}

#[cfg(test)]
mod tests;
