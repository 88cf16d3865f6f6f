//! Edits: nothing changes except the place of the old text.
//!
//! The input is a file, an old and a new text, separated by zero bytes; a fourth part requests an edit of all places.
#![no_main]

use crow_core::edit::{EditMatcher, EditOccurrences, apply_edit};
use libfuzzer_sys::fuzz_target;

/// The letters and digits of a text, which is looser than any comparison.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Checks that the change is limited by the lengths of the old and the new text.
fn check(file: &str, old: &str, new: &str) {
    let Ok(edited) = apply_edit(file, old, new, EditOccurrences::One) else { return };
    assert_eq!(edited.n_replaced, 1);
    assert_ne!(edited.text, file);
    let is_plain = !file.contains('\r') && !old.contains(['\r', '\u{feff}']) && !new.contains(['\r', '\u{feff}']);
    if edited.matcher == EditMatcher::Exact && is_plain && !old.is_empty() {
        assert_eq!(edited.text, file.replacen(old, new, 1));
    }
    // Removed letters were in the old text, so there are at most as many.
    let n_gone = bare(file).chars().count().saturating_sub(bare(&edited.text).chars().count());
    assert!(n_gone <= bare(old).chars().count(), "{edited:?}");
    let n_added = bare(&edited.text).chars().count().saturating_sub(bare(file).chars().count());
    assert!(n_added <= bare(new).chars().count(), "{edited:?}");
    let n_same = file.bytes().zip(edited.text.bytes()).take_while(|(before, after)| before == after).count();
    let is_there = file.as_bytes()[..n_same].iter().filter(|byte| **byte == b'\n').count() + 1;
    assert_eq!(usize::try_from(edited.line).ok(), Some(is_there));
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut texts = text.splitn(4, '\0');
    let (Some(file), Some(old), Some(new)) = (texts.next(), texts.next(), texts.next()) else { return };
    check(file, old, new);
    if texts.next().is_some() {
        drop(apply_edit(file, old, new, EditOccurrences::All));
    }
});
