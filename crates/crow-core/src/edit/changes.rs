//! Makes several changes of one text, one after the other, all or none.

use super::place::{AppliedEdit, EditOccurrences, EditPlace, count_newlines, dominant_ending};
use super::{EditMatcher, EditRefusal, apply_edit, splice_places};

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// Replaces a text.
    Replace { old: String, new: String, occurrences: EditOccurrences },
    /// Inserts lines after a line, from 1; after line 0 they are the first.
    Insert { after_line: usize, text: String },
    /// Inserts lines after the last one.
    Append { text: String },
}

/// A refused change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedChange {
    /// Its index.
    pub index: usize,
    pub refusal: EditRefusal,
}

impl TextChange {
    /// The text that the change adds.
    pub fn new_text(&self) -> &str {
        match self {
            Self::Replace { new, .. } => new,
            Self::Insert { text, .. } | Self::Append { text } => text,
        }
    }

    /// Whether the change, where it can be made, does not depend on the rest of the file.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Replace { occurrences: EditOccurrences::One, .. } | Self::Append { .. } => true,
            Self::Replace { occurrences: EditOccurrences::All, .. } | Self::Insert { .. } => false,
        }
    }

    fn apply(&self, file: &str) -> Result<AppliedEdit, EditRefusal> {
        match self {
            Self::Replace { old, new, occurrences } => apply_edit(file, old, new, *occurrences),
            Self::Insert { after_line, text } => insert_lines(file, *after_line, text),
            Self::Append { text } => insert_lines(file, file.split_inclusive('\n').count(), text),
        }
    }
}

/// Makes changes; each sees what the earlier ones did.
pub fn apply_changes(file: &str, changes: &[TextChange]) -> Result<AppliedEdit, RefusedChange> {
    let mut result: Option<AppliedEdit> = None;
    for (index, change) in changes.iter().enumerate() {
        let text = result.as_ref().map_or(file, |applied| applied.text.as_str());
        let applied = change.apply(text).map_err(|refusal| RefusedChange { index, refusal })?;
        result = Some(match result {
            None => applied,
            Some(before) => AppliedEdit {
                matcher: before.matcher.max(applied.matcher),
                n_replaced: before.n_replaced + applied.n_replaced,
                line: first_changed_line(file, &applied.text),
                text: applied.text,
            },
        });
    }
    match result {
        Some(applied) if applied.text != file => Ok(applied),
        // Nothing was asked for, or a later change took back the earlier ones.
        Some(_) | None => {
            Err(RefusedChange { index: changes.len().saturating_sub(1), refusal: EditRefusal::NoChange })
        }
    }
}

/// Inserts lines with the line ending of the file.
fn insert_lines(file: &str, after_line: usize, text: &str) -> Result<AppliedEdit, EditRefusal> {
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    if after_line > lines.len() {
        return Err(EditRefusal::NoLine { line: after_line, n_lines: lines.len() });
    }
    if text.is_empty() {
        return Err(EditRefusal::NoChange);
    }
    let at = lines[..after_line].iter().map(|line| line.len()).sum();
    let ending = dominant_ending(file).unwrap_or("\n");
    let body = text.replace("\r\n", "\n");
    let body = body.strip_suffix('\n').unwrap_or(&body).replace('\n', ending);
    let is_after_open_line = at > 0 && !file[..at].ends_with('\n');
    let inserted = match (is_after_open_line, at == file.len()) {
        // The last line has no ending, and keeps none.
        (true, _) => format!("{ending}{body}"),
        (false, true) if !text.ends_with('\n') && file.is_empty() => body,
        (false, _) => format!("{body}{ending}"),
    };
    let text = splice_places(file, &[EditPlace { range: at..at, text: inserted }]);
    let line = first_changed_line(file, &text);
    Ok(AppliedEdit { text, matcher: EditMatcher::Exact, n_replaced: 1, line })
}

/// Returns the first line that differs, from 1.
fn first_changed_line(before: &str, after: &str) -> u32 {
    let n_same = before.bytes().zip(after.bytes()).take_while(|(before, after)| before == after).count();
    count_newlines(&after.as_bytes()[..n_same]).saturating_add(1)
}
