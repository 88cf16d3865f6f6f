//! The text of prompt and result parts, and tool names, the same for every API. Knows nothing of requests.

use std::borrow::Cow;

use crow_core::{ContentPart, link};

/// Replaces an empty result, which providers reject.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Returns the text of a part that is not an image, unless it is empty.
pub(crate) fn part_text(part: &ContentPart) -> Option<Cow<'_, str>> {
    match part {
        ContentPart::Text(text) if text.trim().is_empty() => None,
        ContentPart::Text(text) => Some(Cow::Borrowed(text)),
        ContentPart::Image { .. } => None,
        ContentPart::Link { uri, name, .. } => Some(Cow::Owned(link::format_link(uri, name))),
        ContentPart::Resource { uri, text, .. } => Some(Cow::Owned(resource_element(uri, text))),
        ContentPart::FromCrow { kind: what, text } => Some(Cow::Owned(resource_element(&what.uri(), text))),
    }
}

/// The longest name of a call or a tool that all providers accept.
const NAME_LEN_MAX: usize = 64;

/// Replaces an empty tool name, which providers reject.
const NO_NAME: &str = "_";

/// Returns a valid name for a tool that a model called, whatever it invented.
pub(crate) fn wire_tool_name(name: &str) -> Cow<'_, str> {
    if is_valid_name(name) {
        return Cow::Borrowed(name);
    }
    let sanitized =
        name.bytes().take(NAME_LEN_MAX).map(|byte| if is_name_byte(byte) { char::from(byte) } else { '_' });
    let sanitized: String = sanitized.collect();
    if sanitized.is_empty() { Cow::Borrowed(NO_NAME) } else { Cow::Owned(sanitized) }
}

/// Whether every provider accepts a name.
pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn resource_element(uri: &str, text: &str) -> String {
    format!("<resource uri=\"{uri}\">\n{text}\n</resource>")
}
