//! The words for a part of a prompt or of a result and the names of tools, the same in every dialect. Knows nothing of
//! requests.

use std::borrow::Cow;

use crow_core::{ContentPart, link};

/// What a result without a word becomes: providers refuse an empty one.
pub(crate) const NO_WORDS: &str = "(no output)";

/// Spells a part that is no image, unless it says nothing.
pub(crate) fn part_text(part: &ContentPart) -> Option<Cow<'_, str>> {
    match part {
        ContentPart::Text(text) if text.trim().is_empty() => None,
        ContentPart::Text(text) => Some(Cow::Borrowed(text)),
        ContentPart::Image { .. } => None,
        ContentPart::Link { uri, name, .. } => Some(Cow::Owned(link::format_link(uri, name))),
        ContentPart::Resource { uri, text, .. } => Some(Cow::Owned(resource_element(uri, text))),
        ContentPart::FromCrow { what, text } => Some(Cow::Owned(resource_element(&what.uri(), text))),
    }
}

/// The longest name of a call or a tool that providers take for sure.
const NAME_LEN_MAX: usize = 64;

/// What a call of no tool at all is called: providers refuse an empty name.
const NAMELESS: &str = "_";

/// The name of a tool that a model called, whatever it made up.
pub(crate) fn wire_tool_name(name: &str) -> Cow<'_, str> {
    if is_valid_name(name) {
        return Cow::Borrowed(name);
    }
    let plain =
        name.bytes().take(NAME_LEN_MAX).map(|byte| if is_name_byte(byte) { char::from(byte) } else { '_' });
    let plain: String = plain.collect();
    if plain.is_empty() { Cow::Borrowed(NAMELESS) } else { Cow::Owned(plain) }
}

/// Tells whether every provider takes a name.
pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn resource_element(uri: &str, text: &str) -> String {
    format!("<resource uri=\"{uri}\">\n{text}\n</resource>")
}
