//! Titles of calls: one line of any text. Pure.

use crow_core::escape_hidden;

/// A title is one line in a list.
const TITLE_CHARS_MAX: usize = 100;

/// Converts any text to a title of one line.
pub(crate) fn to_title(text: &str) -> String {
    let mut lines = text.trim().lines();
    let line = lines.next().unwrap_or_default().trim_end();
    let is_whole = lines.next().is_none() && line.chars().count() <= TITLE_CHARS_MAX;
    let title = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    let title: String =
        if is_whole { title.collect() } else { title.take(TITLE_CHARS_MAX - 1).chain(['…']).collect() };
    escape_hidden(&title)
}
