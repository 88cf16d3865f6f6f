//! Reasoning that stands in the text between tags.

/// What ends it.
const END_TAG: &str = "</think>";

/// Reasoning while it arrives. The blanks before its first word are nobody's.
#[derive(Debug, Default)]
pub(super) struct ThoughtReader {
    /// What may be the beginning of its end.
    held: String,
    has_begun: bool,
}

impl ThoughtReader {
    /// Shows what waits.
    pub(super) fn pending_text(&self) -> &str {
        &self.held
    }

    /// Takes more; gives what follows the end, once it is there.
    pub(super) fn feed(&mut self, text: &str, say: &mut impl FnMut(&str)) -> Option<String> {
        let text = std::mem::take(&mut self.held) + text;
        let text = if self.has_begun { text.as_str() } else { text.trim_start() };
        if let Some((thought, rest)) = text.split_once(END_TAG) {
            say(thought);
            return Some(rest.to_owned());
        }
        self.has_begun |= !text.is_empty();
        let held = (1..END_TAG.len()).rev().find(|len| text.ends_with(&END_TAG[..*len])).unwrap_or(0);
        let (thought, held) = text.split_at(text.len() - held);
        say(thought);
        self.held = held.to_owned();
        None
    }
}
