//! Finds the most similar place for a text that was not found, as a hint for the next attempt.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::text_diff::TextDiff;

/// A place that is similar to the old text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestText {
    /// The first line, from 1.
    pub line: u32,
    /// The similarity in percent.
    pub similarity: u8,
    /// The first line that differs, from 1.
    pub first_difference: u32,
    /// The text there, at least around that line.
    pub text: String,
}

/// Bounds of the search: a hint must not delay the model.
const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
const FILE_LINES_MAX: usize = 200_000;
const OLD_LINES_MAX: usize = 400;

/// A hint below this would be misleading.
const SIMILARITY_MIN: u8 = 60;

/// The number of windows, those with the most common words, that are compared closely.
const WINDOWS_COMPARED: usize = 4;

/// Windows up to this size are compared by letters, then by words, larger ones by lines: the cost is quadratic.
const LETTERS_BYTES_MAX: usize = 2_000;
const WORDS_BYTES_MAX: usize = 16_000;

/// Lines shown before the first difference if not all fit.
const LINES_BEFORE: usize = 3;

/// An excerpt identifies the place and does not replace a read.
const SHOWN_LINES_MAX: usize = 20;
const SHOWN_CHARS_MAX: usize = 1_200;

/// Finds the most similar lines of a file.
pub(super) fn find_nearest(file: &str, old: &str) -> Option<NearestText> {
    if file.len() > FILE_BYTES_MAX {
        return None;
    }
    let lines: Vec<&str> = file.lines().collect();
    let old_lines: Vec<&str> = old.lines().collect();
    if lines.is_empty() || lines.len() > FILE_LINES_MAX || old_lines.len() > OLD_LINES_MAX {
        return None;
    }
    let n_lines = old_lines.len().clamp(1, lines.len());
    let old = old_lines.join("\n");
    let windows = likely_windows(&lines, &old_lines, n_lines).into_iter();
    let alike = windows
        .map(|first| (similarity_percent(&old, &lines[first..first + n_lines].join("\n")), Reverse(first)));
    let (similarity, Reverse(first)) = alike.max()?;
    if similarity < SIMILARITY_MIN {
        return None;
    }
    let window = &lines[first..first + n_lines];
    let n_alike = window.iter().zip(&old_lines).take_while(|(line, old)| line == old).count();
    let n_alike = n_alike.min(n_lines - 1);
    Some(NearestText {
        line: u32::try_from(first + 1).ok()?,
        similarity,
        first_difference: u32::try_from(first + n_alike + 1).ok()?,
        text: excerpt_around(window, n_alike),
    })
}

/// Returns an excerpt with the first difference, from the first line if that is near.
fn excerpt_around(window: &[&str], first_difference: usize) -> String {
    if first_difference + LINES_BEFORE < SHOWN_LINES_MAX {
        return truncate_excerpt(&window.join("\n"));
    }
    format!("…\n{}", truncate_excerpt(&window[first_difference - LINES_BEFORE..].join("\n")))
}

/// Slides a window over the file and returns the starts with the most words in common with the old text.
fn likely_windows(lines: &[&str], old: &[&str], n_lines: usize) -> Vec<usize> {
    let mut old_counts: HashMap<&str, usize> = HashMap::new();
    for word in old.iter().copied().flat_map(split_words) {
        *old_counts.entry(word).or_default() += 1;
    }
    let mut window_counts: HashMap<&str, usize> = HashMap::new();
    let mut n_common = 0_usize;
    let mut n_words = 0_usize;
    let n_old_words: usize = old_counts.values().sum();
    let mut scored = Vec::new();
    for (last, line) in lines.iter().enumerate() {
        for word in split_words(line) {
            n_words += 1;
            let Some(old_counts) = old_counts.get(word) else { continue };
            let window_counts = window_counts.entry(word).or_default();
            *window_counts += 1;
            n_common += usize::from(*window_counts <= *old_counts);
        }
        let Some(first) = (last + 1).checked_sub(n_lines) else { continue };
        // Per mille of the words of both, so that many words alone are no advantage.
        scored.push((2_000 * n_common / (n_old_words + n_words).max(1), Reverse(first)));
        for word in split_words(lines[first]) {
            n_words -= 1;
            let (Some(old_counts), Some(window_counts)) = (old_counts.get(word), window_counts.get_mut(word))
            else {
                continue;
            };
            n_common -= usize::from(*window_counts <= *old_counts);
            *window_counts -= 1;
        }
    }
    scored.sort_unstable_by(|a, b| b.cmp(a));
    scored.into_iter().take(WINDOWS_COMPARED).map(|(_, Reverse(first))| first).collect()
}

/// Splits a line into words; the whole line is one as well.
fn split_words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let words = line.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.chain((!line.is_empty()).then_some(line))
}

fn similarity_percent(old: &str, text: &str) -> u8 {
    let n_bytes = old.len().max(text.len());
    let ratio = if n_bytes <= LETTERS_BYTES_MAX {
        TextDiff::compare_chars(old, text).similarity()
    } else if n_bytes <= WORDS_BYTES_MAX {
        TextDiff::compare_words(old, text).similarity()
    } else {
        TextDiff::compare_lines(old, text).similarity()
    };
    (ratio * 100.0) as u8
}

/// Renders the hint of a refusal.
pub(super) fn nearest_hint(nearest: Option<&NearestText>) -> String {
    nearest.map_or_else(String::new, |found| {
        format!(
            "; the most similar place is line {} ({} % similar, the first difference is in line {}):\n{}",
            found.line, found.similarity, found.first_difference, found.text
        )
    })
}

/// Truncates a text that is too long to show.
pub(super) fn truncate_excerpt(text: &str) -> String {
    let text = text.trim_end_matches(['\r', '\n']);
    let shown = text.lines().take(SHOWN_LINES_MAX).collect::<Vec<_>>().join("\n");
    match shown.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &shown[..cut]),
        None if text.lines().nth(SHOWN_LINES_MAX).is_some() => format!("{shown}…"),
        None => shown,
    }
}
