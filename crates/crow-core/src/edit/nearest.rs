//! Finds what a text that is not there was probably meant to be, to help with the next attempt.

use std::cmp::Reverse;
use std::collections::HashMap;

use similar::TextDiff;

/// A place that is like the old text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestText {
    /// Where it begins, from 1.
    pub line: u32,
    /// How alike it is, in percent.
    pub similarity: u8,
    /// The first line that differs, from 1.
    pub differs: u32,
    /// What it says, around that line at least.
    pub text: String,
}

/// Bounds of the search: it is a courtesy, and a model waits for it.
const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
const FILE_LINES_MAX: usize = 200_000;
const OLD_LINES_MAX: usize = 400;

/// Below this a hint leads astray.
const SIMILARITY_MIN: u8 = 60;

/// So many windows, those that share most words with the old text, are compared closely.
const WINDOWS_COMPARED: usize = 4;

/// Up to here windows are compared by letters and by words, beyond by lines: the work grows with the square.
const LETTERS_BYTES_MAX: usize = 2_000;
const WORDS_BYTES_MAX: usize = 16_000;

/// Lines shown before the one that differs, when what is before it does not fit.
const LINES_BEFORE: usize = 3;

/// An excerpt is for finding the place, not for replacing a read.
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
        differs: u32::try_from(first + n_alike + 1).ok()?,
        text: excerpt_around(window, n_alike),
    })
}

/// Shows what differs, from the first line on if that is near.
fn excerpt_around(window: &[&str], differs: usize) -> String {
    if differs + LINES_BEFORE < SHOWN_LINES_MAX {
        return truncate_excerpt(&window.join("\n"));
    }
    format!("…\n{}", truncate_excerpt(&window[differs - LINES_BEFORE..].join("\n")))
}

/// Slides a window over the file and keeps those that have most words in common with the old text.
fn likely_windows(lines: &[&str], old: &[&str], n_lines: usize) -> Vec<usize> {
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for word in old.iter().copied().flat_map(split_words) {
        *wanted.entry(word).or_default() += 1;
    }
    let mut held: HashMap<&str, usize> = HashMap::new();
    let mut n_common = 0_usize;
    let mut n_words = 0_usize;
    let n_wanted: usize = wanted.values().sum();
    let mut scored = Vec::new();
    for (last, line) in lines.iter().enumerate() {
        for word in split_words(line) {
            n_words += 1;
            let Some(wanted) = wanted.get(word) else { continue };
            let held = held.entry(word).or_default();
            *held += 1;
            n_common += usize::from(*held <= *wanted);
        }
        let Some(first) = (last + 1).checked_sub(n_lines) else { continue };
        // Per mille of the words of both, so that a window of many words is no better for it.
        scored.push((2_000 * n_common / (n_wanted + n_words).max(1), Reverse(first)));
        for word in split_words(lines[first]) {
            n_words -= 1;
            let (Some(wanted), Some(held)) = (wanted.get(word), held.get_mut(word)) else { continue };
            n_common -= usize::from(*held <= *wanted);
            *held -= 1;
        }
    }
    scored.sort_unstable_by(|a, b| b.cmp(a));
    scored.into_iter().take(WINDOWS_COMPARED).map(|(_, Reverse(first))| first).collect()
}

/// The words of a line; a line that has none is its own word.
fn split_words(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let words = line.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.chain((!line.is_empty()).then_some(line))
}

fn similarity_percent(old: &str, text: &str) -> u8 {
    let n_bytes = old.len().max(text.len());
    let ratio = if n_bytes <= LETTERS_BYTES_MAX {
        TextDiff::from_chars(old, text).ratio()
    } else if n_bytes <= WORDS_BYTES_MAX {
        TextDiff::from_words(old, text).ratio()
    } else {
        TextDiff::from_lines(old, text).ratio()
    };
    (ratio * 100.0) as u8
}

/// Cuts a text that is too long to show.
pub(super) fn truncate_excerpt(text: &str) -> String {
    let text = text.trim_end_matches(['\r', '\n']);
    let shown = text.lines().take(SHOWN_LINES_MAX).collect::<Vec<_>>().join("\n");
    match shown.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &shown[..cut]),
        None if text.lines().nth(SHOWN_LINES_MAX).is_some() => format!("{shown}…"),
        None => shown,
    }
}
