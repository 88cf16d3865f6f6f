//! Titles of sessions, made from their prompts.

use crate::{Prompt, TranscriptEntry};

/// Characters of a title; clients show it on one line.
const TITLE_CHARS_MAX: usize = 60;

/// Makes a title from a prompt; `None` for another entry.
pub fn prompt_title(entry: &TranscriptEntry) -> Option<String> {
    let TranscriptEntry::Prompt(prompt) = entry else { return None };
    let user_parts = prompt.parts.iter().filter(|part| part.crow_part().is_none()).cloned().collect();
    Some(text_title(&Prompt { id: prompt.id.clone(), parts: user_parts }.text()))
}

/// Makes a title from a text: its first non-empty line.
pub fn text_title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end_index, _)) => format!("{}…", line[..end_index].trim_end()),
        None => line.to_owned(),
    }
}
