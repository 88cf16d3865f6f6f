//! The possible values of variables in a line: assignments in the line, the working directory and the home directory.

use std::collections::BTreeMap;

use crate::shell::{Assignment, KnownExtent, ShellWord, SimpleCommand, WordPiece};

/// Limit of readings of one word; with more, the word counts as unknown.
const READINGS_MAX: usize = 16;

/// The values of a line's variables.
#[derive(Clone)]
pub(super) struct ShellVariables {
    values: BTreeMap<String, Vec<ShellWord>>,
}

impl ShellVariables {
    /// Collects the assignments of all commands of a line; `cwd` is its working directory, if known and constant.
    pub(super) fn from_commands(commands: &[&SimpleCommand], cwd: Option<&str>) -> Self {
        let mut values: BTreeMap<String, Vec<ShellWord>> = BTreeMap::new();
        let mut add = |name: &str, value: ShellWord| values.entry(name.to_owned()).or_default().push(value);
        for simple in commands {
            for Assignment { name, value } in given_assignments(simple) {
                add(name, value.clone());
            }
        }
        add("HOME", ShellWord { text: "~".into(), extent: KnownExtent::Home, pieces: Vec::new() });
        if let Some(cwd) = cwd {
            add("PWD", ShellWord::from_text(cwd));
        }
        Self { values }
    }

    /// Returns the possible readings of a word, with each value of its variables.
    pub(super) fn word_readings(&self, word: &ShellWord) -> Vec<ShellWord> {
        if word.pieces.is_empty() {
            return vec![word.clone()];
        }
        let is_home = word.text == "~" || word.text.starts_with("~/");
        let extent = if is_home { KnownExtent::Home } else { KnownExtent::Full };
        let mut readings = vec![ShellWord { text: word.text.clone(), extent, pieces: Vec::new() }];
        let is_alone = word.text.is_empty() && word.pieces.len() == 1;
        for piece in &word.pieces {
            let values = self.piece_values(piece);
            let values: Vec<ShellWord> = match word.extent {
                // Without quotes the shell splits a value and expands its patterns.
                KnownExtent::Unknown if !matches!(piece, WordPiece::Known(_)) => {
                    values.iter().flat_map(|value| unquoted_readings(value, is_alone)).collect()
                }
                KnownExtent::Full | KnownExtent::Home | KnownExtent::Prefix | KnownExtent::Unknown => values,
            };
            let longer =
                readings.iter().flat_map(|reading| values.iter().map(|value| join_words(reading, value)));
            readings = longer.take(READINGS_MAX + 1).collect();
        }
        if readings.len() > READINGS_MAX {
            return vec![word.clone()];
        }
        readings
    }

    fn piece_values(&self, piece: &WordPiece) -> Vec<ShellWord> {
        let unknown = || unknown_word(piece.clone());
        match piece {
            WordPiece::Known(text) => vec![ShellWord::from_text(text.as_str())],
            WordPiece::Glob => vec![unknown()],
            WordPiece::Unknown(default) => {
                default.iter().map(ShellWord::from_text).chain([unknown()]).collect()
            }
            WordPiece::Variable(name) => self.values.get(name).cloned().unwrap_or_else(|| vec![unknown()]),
        }
    }
}

/// Returns the assignments of a command. A loop over a list begins with an unknown value, which the list replaces.
fn given_assignments(simple: &SimpleCommand) -> &[Assignment] {
    match simple.assignments.as_slice() {
        [first, values @ ..]
            if !values.is_empty()
                && simple.words.is_empty()
                && first.value == ShellWord::unknown()
                && values.iter().all(|value| value.name == first.name) =>
        {
            values
        }
        assignments => assignments,
    }
}

/// A word with a single unknown piece.
fn unknown_word(piece: WordPiece) -> ShellWord {
    ShellWord { text: String::new(), extent: KnownExtent::Prefix, pieces: vec![piece] }
}

/// Returns the readings of a value without quotes; `is_alone` if the word has no other part.
fn unquoted_readings(value: &ShellWord, is_alone: bool) -> Vec<ShellWord> {
    let is_single = !value.text.contains(BLANKS) && !known_pieces(value).any(|text| text.contains(BLANKS));
    match is_single {
        true => vec![expand_patterns(value)],
        false if is_alone && value.pieces.is_empty() && !value.text.trim_matches(BLANKS).is_empty() => {
            split_value(value)
        }
        // The parts at both ends belong to different words.
        false => vec![unknown_word(WordPiece::Unknown(None))],
    }
}

/// The letters at which a shell splits a value.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// Returns the words in the known parts of a value, as the shell expands them without quotes.
pub(super) fn split_value(value: &ShellWord) -> Vec<ShellWord> {
    let texts = std::iter::once(value.text.as_str()).chain(known_pieces(value));
    let words = texts.flat_map(|text| text.split(BLANKS)).filter(|text| !text.is_empty());
    words.map(|text| expand_patterns(&ShellWord::from_text(text))).collect()
}

fn known_pieces(value: &ShellWord) -> impl Iterator<Item = &str> {
    value.pieces.iter().filter_map(|piece| match piece {
        WordPiece::Known(text) => Some(text.as_str()),
        WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_) => None,
    })
}

/// Expands the patterns in the known parts of a value: file names that are not known.
fn expand_patterns(value: &ShellWord) -> ShellWord {
    let start = ShellWord { text: String::new(), extent: value.extent, pieces: Vec::new() };
    let parts = value.pieces.iter().flat_map(|piece| match piece {
        WordPiece::Known(text) => pattern_parts(text),
        WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_) => vec![unknown_word(piece.clone())],
    });
    let parts = pattern_parts(&value.text).into_iter().chain(parts);
    parts.fold(start, |joined, part| join_words(&joined, &part))
}

/// Splits a text into literal parts and patterns. A backslash makes the next letter literal in some shells.
fn pattern_parts(text: &str) -> Vec<ShellWord> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['*', '?', '[', '\\']) {
        parts.push(ShellWord::from_text(&rest[..at]));
        let after = &rest[at + 1..];
        let end = match rest.as_bytes()[at] {
            b'[' => bracket_end(after),
            b'\\' => None,
            _ => Some(0),
        };
        let Some(end) = end else {
            parts.push(unknown_word(WordPiece::Unknown(None)));
            return parts;
        };
        parts.push(unknown_word(WordPiece::Glob));
        rest = &after[end..];
    }
    parts.push(ShellWord::from_text(rest));
    parts
}

/// Returns the length of a bracket expression after its `[`, if it ends in the same file name.
fn bracket_end(after: &str) -> Option<usize> {
    let n_negations = usize::from(after.starts_with(['!', '^']));
    let mut letters = after.char_indices().skip(n_negations + 1);
    let (end, _) = letters.find(|(_, letter)| *letter == ']')?;
    (!after[..end].contains('/')).then_some(end + 1)
}

fn join_words(start: &ShellWord, end: &ShellWord) -> ShellWord {
    let mut joined = start.clone();
    match joined.pieces.last_mut() {
        None => {
            // A tilde after other text is only text.
            let is_start = joined.text.is_empty();
            joined.text.push_str(&end.text);
            if end.extent != KnownExtent::Home || is_start {
                joined.extent = joined.extent.max(end.extent);
            }
        }
        Some(WordPiece::Known(text)) => text.push_str(&end.text),
        Some(WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_)) if end.text.is_empty() => {}
        Some(WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_)) => {
            joined.pieces.push(WordPiece::Known(end.text.clone()));
        }
    }
    joined.pieces.extend(end.pieces.iter().cloned());
    if !joined.pieces.is_empty() {
        joined.extent = joined.extent.max(KnownExtent::Prefix);
    }
    joined
}
