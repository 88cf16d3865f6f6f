//! The words for a part of a prompt or of a result, the same in every dialect. Knows nothing of requests.

use std::borrow::Cow;

use crow_core::{Part, link};

/// What a result without a word becomes: providers refuse an empty one.
pub(crate) const NO_WORDS: &str = "(no output)";

/// Spells a part that is no image, unless it says nothing.
pub(crate) fn text(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(Cow::Borrowed(text)),
        Part::Image { .. } => None,
        Part::Link { uri, name, .. } => Some(Cow::Owned(link::spell(uri, name))),
        Part::Resource { uri, text, .. } => {
            Some(Cow::Owned(format!("<resource uri=\"{uri}\">\n{text}\n</resource>")))
        }
    }
}
