//! Applies an edit to a text. Knows no files, encodings or tools.
//!
//! The matchers go from strict to loose, and every line of the old text must match by the same one. None accepts text
//! that is only similar: similarity is used for the hint of a refusal. An inexact match must also be unique for the
//! loosest matcher, since the model may have meant the other place.

mod changes;
mod compare;
mod copied_markup;
mod escapes;
mod exact;
mod hunk;
mod indent;
mod inline;
mod lines;
mod matcher;
mod nearest;
mod place;
mod placeholder;
mod refusal;
mod sequence;

use place::{BOM, EditHit, EditPlace, EditRequest, check_places, count_newlines};

pub use changes::{RefusedChange, TextChange, apply_changes};
pub use hunk::{HunkRefusal, PatchHunk, PatchLine, PatchedText, RefusedHunk, apply_hunks};
pub use matcher::EditMatcher;
pub use nearest::NearestText;
pub use place::{AppliedEdit, EditOccurrences};
pub use refusal::EditRefusal;

/// Replaces `old` with `new` in the text of a file. An empty `old` fills an empty file.
pub fn apply_edit(
    file: &str,
    old: &str,
    new: &str,
    occurrences: EditOccurrences,
) -> Result<AppliedEdit, EditRefusal> {
    let (old, new) = strip_boms(file, old, new);
    if old.is_empty() {
        return fill_empty_file(file, new);
    }
    if old == new {
        return Err(EditRefusal::EqualTexts);
    }
    if let Some((line, text)) = placeholder::find_placeholder(old, new) {
        return Err(EditRefusal::Placeholder { line, text });
    }
    if let Some(hit) = find_hit(file, EditRequest { old, new, occurrences })? {
        return apply_hit(file, &hit);
    }
    if let Some(applied_edit) = apply_numbered(file, old, new)? {
        return Ok(applied_edit);
    }
    let escaped =
        escapes::unescaped_readings(old, new).into_iter().map(|texts| (EditMatcher::Escapes, texts));
    let fenced = copied_markup::strip_fence(old, new).map(|texts| (EditMatcher::Fence, texts));
    for (matcher, (old, new)) in escaped.chain(fenced) {
        if !old.is_empty()
            && let Some(hit) = find_hit(file, EditRequest { old: &old, new: &new, occurrences })?
        {
            return apply_hit(file, &EditHit { matcher, ..hit });
        }
    }
    Err(EditRefusal::NotFound { nearest: nearest::find_nearest(file, old) })
}

/// Removes the byte order mark from both texts: the file keeps its own, or none.
fn strip_boms<'a>(file: &str, old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    // In the middle of a file it is an ordinary character.
    let is_meant = old.starts_with(BOM) && !file.starts_with(BOM) && file.contains(old);
    if is_meant {
        return (old, new);
    }
    (old.strip_prefix(BOM).unwrap_or(old), new.strip_prefix(BOM).unwrap_or(new))
}

/// Fills an empty file.
fn fill_empty_file(file: &str, new: &str) -> Result<AppliedEdit, EditRefusal> {
    match (file.strip_prefix(BOM).unwrap_or(file), new) {
        ("", "") => Err(EditRefusal::NoChange),
        ("", _) => Ok(AppliedEdit {
            text: format!("{file}{new}"),
            matcher: EditMatcher::Exact,
            n_replaced: 1,
            line: 1,
        }),
        (_, _) => Err(EditRefusal::EmptyOldText),
    }
}

/// Applies an edit with copied line numbers at the start of a line; all readings of the numbers must give the same
/// result.
fn apply_numbered(file: &str, old: &str, new: &str) -> Result<Option<AppliedEdit>, EditRefusal> {
    let mut applied_edit: Option<AppliedEdit> = None;
    for copied_markup::UnnumberedTexts { old, new, line } in copied_markup::strip_line_numbers(old, new) {
        if old.trim().is_empty() || old == new {
            continue;
        }
        let request = EditRequest { old: &old, new: &new, occurrences: EditOccurrences::One };
        let Some(hit) = find_hit(file, request)? else { continue };
        let start = hit.places.first().map_or(0, |place| place.range.start);
        let is_exact = hit.matcher == EditMatcher::Exact;
        let at = if is_exact { start } else { line_start(file, start) };
        let applied = apply_hit(file, &hit)?;
        if !copied_markup::is_in_place(file, &applied, at, line) {
            continue;
        }
        match &applied_edit {
            Some(other) if other.text != applied.text => return Ok(None),
            Some(_) | None => {
                applied_edit = Some(AppliedEdit { matcher: EditMatcher::LineNumbers, ..applied });
            }
        }
    }
    Ok(applied_edit)
}

fn line_start(file: &str, at: usize) -> usize {
    file[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn find_hit(file: &str, request: EditRequest<'_>) -> Result<Option<EditHit>, EditRefusal> {
    let places = exact::find_places(file, request)?;
    if !places.is_empty() {
        check_indentation(file, &places, request)?;
        return Ok(Some(EditHit { matcher: EditMatcher::Exact, places }));
    }
    match lines::find_hit(file, request)? {
        Some(hit) if hit.matcher < EditMatcher::Punctuation => Ok(Some(hit)),
        whole_lines => Ok(inline::find_hit(file, request)?.or(whole_lines)),
    }
}

/// Rejects a place inside the indentation of a line if the old text also occurs elsewhere as whole lines: its
/// indentation differs from both, so that the intended one is unknown.
fn check_indentation(file: &str, places: &[EditPlace], request: EditRequest<'_>) -> Result<(), EditRefusal> {
    let (EditOccurrences::One, [EditPlace { range, .. }]) = (request.occurrences, places) else {
        return Ok(());
    };
    let before = &file[line_start(file, range.start)..range.start];
    let is_inside = request.old.starts_with([' ', '\t']) && !before.is_empty() && compare::is_blank(before);
    if !is_inside {
        return Ok(());
    }
    let mut starts = lines::find_other_starts(file, request, range);
    starts.push(range.start);
    starts.sort_unstable();
    check_places(file, &starts, request)
}

fn apply_hit(file: &str, hit: &EditHit) -> Result<AppliedEdit, EditRefusal> {
    let text = splice_places(file, &hit.places);
    if text == file {
        return Err(EditRefusal::NoChange);
    }
    let n_same = file.bytes().zip(text.bytes()).take_while(|(before, after)| before == after).count();
    let line = count_newlines(&file.as_bytes()[..n_same]).saturating_add(1);
    Ok(AppliedEdit { text, matcher: hit.matcher, n_replaced: hit.places.len(), line })
}

/// Replaces places, which are in file order.
fn splice_places(file: &str, places: &[EditPlace]) -> String {
    let mut text = String::with_capacity(file.len());
    let mut n_copied = 0;
    for place in places {
        text.push_str(&file[n_copied..place.range.start]);
        text.push_str(&place.text);
        n_copied = place.range.end;
    }
    text.push_str(&file[n_copied..]);
    text
}

#[cfg(test)]
mod tests;
