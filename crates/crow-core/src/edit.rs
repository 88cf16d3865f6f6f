//! Where an edit lands. Takes texts and gives a text back; must never know of files, encodings or tools.
//!
//! Matchers go from strict to loose, and every line of the old text has to match by the matcher that hits.
//! A matcher that finds two places ends the search: a looser one would only hide the doubt.

mod exact;
mod indent;
mod lines;
mod nearest;

use std::fmt;
use std::ops::Range;

pub use nearest::Near;

/// How many places an edit is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// Exactly one; more are a refusal.
    One,
    /// Every one there is.
    All,
}

/// An edit that landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole text after it.
    pub text: String,
    /// What found the place.
    pub matcher: Matcher,
    /// In how many places it landed.
    pub n_replaced: usize,
    /// The first line that changed, from 1.
    pub line: u32,
}

/// How the old text was compared with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matcher {
    /// Letter by letter, apart from the kind of line ending.
    Exact,
    /// Whole lines, whatever whitespace they end in.
    LineTrimmed,
    /// Whole lines, all indented more or less by the same amount.
    Indentation,
    /// Whole lines, typographic punctuation taken for plain.
    Punctuation,
}

impl Matcher {
    const STRICT_TO_LOOSE: [Self; 4] = [Self::Exact, Self::LineTrimmed, Self::Indentation, Self::Punctuation];

    /// Says how it compared, in words for the model and the person.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "ignoring trailing spaces",
            Self::Indentation => "ignoring indentation",
            Self::Punctuation => "ignoring typographic quotes and dashes",
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an edit did not land, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// There is nothing to look for.
    #[error("the old text is empty; give the lines to replace, or write the whole file")]
    Empty,
    /// The file would stay as it is.
    #[error("the edit changes nothing: the new text is what the file says already")]
    Same,
    /// The old text is nowhere.
    #[error("the old text is not in the file; read the file again and copy the lines exactly{}", hint(nearest.as_ref()))]
    NotFound {
        /// The most similar place, if one is similar enough to help.
        nearest: Option<Near>,
    },
    /// The old text is in several places.
    #[error(
        "the old text is in more than one place ({}); add lines around it until it names one place, \
         or replace all of them",
        listed(lines)
    )]
    Ambiguous {
        /// The lines where it begins, from 1; the first few of them.
        lines: Vec<u32>,
    },
}

fn hint(nearest: Option<&Near>) -> String {
    nearest.map_or_else(String::new, |near| {
        format!(
            "; the most similar place is line {} ({} % alike):\n{}",
            near.line, near.similarity, near.text
        )
    })
}

fn listed(lines: &[u32]) -> String {
    let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    format!("{noun} {}", numbers.join(", "))
}

/// What an edit is made of, apart from the file.
#[derive(Clone, Copy)]
struct Change<'a> {
    old: &'a str,
    new: &'a str,
    occurrences: Occurrences,
}

/// A place where the old text was found.
struct Place {
    /// Where the old text begins.
    start: usize,
    /// What to take out.
    range: Range<usize>,
    /// What to put in.
    text: String,
}

/// Enough to show that a place is not the only one.
const PLACES_SHOWN_MAX: usize = 10;

/// Replaces `old` with `new` in the text of a file.
pub fn apply(file: &str, old: &str, new: &str, occurrences: Occurrences) -> Result<Edited, EditRefusal> {
    if old.is_empty() {
        return Err(EditRefusal::Empty);
    }
    if old == new {
        return Err(EditRefusal::Same);
    }
    let change = Change { old, new, occurrences };
    for matcher in Matcher::STRICT_TO_LOOSE {
        let places = match matcher {
            Matcher::Exact => exact::places(file, change),
            Matcher::LineTrimmed | Matcher::Indentation | Matcher::Punctuation => {
                lines::places(file, change, matcher)
            }
        };
        if places.len() > 1 && occurrences == Occurrences::One {
            let starts = places.iter().take(PLACES_SHOWN_MAX);
            let mut lines: Vec<u32> = starts.map(|place| line_at(file, place.start)).collect();
            lines.dedup();
            return Err(EditRefusal::Ambiguous { lines });
        }
        if !places.is_empty() {
            return finish(file, &places, matcher);
        }
    }
    Err(EditRefusal::NotFound { nearest: nearest::nearest(file, old) })
}

fn finish(file: &str, places: &[Place], matcher: Matcher) -> Result<Edited, EditRefusal> {
    let mut text = String::with_capacity(file.len());
    let mut n_copied = 0;
    for place in places {
        text.push_str(&file[n_copied..place.range.start]);
        text.push_str(&place.text);
        n_copied = place.range.end;
    }
    text.push_str(&file[n_copied..]);
    if text == file {
        return Err(EditRefusal::Same);
    }
    let n_same = file.bytes().zip(text.bytes()).take_while(|(before, after)| before == after).count();
    let line = n_newlines(&file.as_bytes()[..n_same]).saturating_add(1);
    Ok(Edited { text, matcher, n_replaced: places.len(), line })
}

/// The line, from 1, that holds byte `at`.
fn line_at(file: &str, at: usize) -> u32 {
    n_newlines(&file.as_bytes()[..at]).saturating_add(1)
}

fn n_newlines(bytes: &[u8]) -> u32 {
    let n_newlines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(n_newlines).unwrap_or(u32::MAX)
}

/// The line ending that most lines of a text have; `None` when it has none.
fn dominant_ending(text: &str) -> Option<&'static str> {
    let n_all = text.matches('\n').count();
    let n_crlf = text.matches("\r\n").count();
    match n_all {
        0 => None,
        _ if 2 * n_crlf > n_all => Some("\r\n"),
        _ => Some("\n"),
    }
}

/// The line ending to write into a region of a file; `None` when the file has no lines to go by.
fn ending_for(file: &str, region: Range<usize>) -> Option<&'static str> {
    dominant_ending(&file[region]).or_else(|| dominant_ending(file))
}

#[cfg(test)]
mod tests;
