//! Reasoning between tags in the text.

/// The closing tag.
const END_TAG: &str = "</think>";

/// Reasoning while it arrives, without leading white space.
#[derive(Debug, Default)]
pub(super) struct ThoughtReader {
    /// Possibly the start of the closing tag.
    pending: String,
    has_text: bool,
}

impl ThoughtReader {
    /// Returns the text that is held back.
    pub(super) fn pending_text(&self) -> &str {
        &self.pending
    }

    /// Processes more text; returns the text after the closing tag.
    pub(super) fn feed(&mut self, text: &str, emit: &mut impl FnMut(&str)) -> Option<String> {
        let text = std::mem::take(&mut self.pending) + text;
        let text = if self.has_text { text.as_str() } else { text.trim_start() };
        if let Some((thought, rest)) = text.split_once(END_TAG) {
            emit(thought);
            return Some(rest.to_owned());
        }
        self.has_text |= !text.is_empty();
        let held = (1..END_TAG.len()).rev().find(|len| text.ends_with(&END_TAG[..*len])).unwrap_or(0);
        let (thought, held) = text.split_at(text.len() - held);
        emit(thought);
        self.pending = held.to_owned();
        None
    }
}
