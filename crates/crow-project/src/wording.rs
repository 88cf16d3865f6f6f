//! Counts and lists in the sentences of questions and notices.

use std::slice;

/// Formats a number of things.
pub(crate) fn count_text(n: usize, noun: &str) -> Option<String> {
    match n {
        0 => None,
        1 => Some(format!("1 {noun}")),
        n => Some(format!("{n} {noun}s")),
    }
}

/// Joins items with commas, at most `n_max` of them.
pub(crate) fn join_items(items: slice::Iter<'_, String>, n_max: usize) -> String {
    let n_more = items.len().saturating_sub(n_max);
    let mut shown_items: Vec<String> = items.take(n_max).cloned().collect();
    shown_items.extend((n_more > 0).then(|| format!("{n_more} more")));
    shown_items.join(", ")
}
