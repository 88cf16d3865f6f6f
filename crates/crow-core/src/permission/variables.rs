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
        for piece in &word.pieces {
            let values = self.piece_values(piece);
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
                let default =
                    default.iter().flat_map(|text| split_blanks(&ShellWord::from_text(text.as_str())));
                default.chain([unknown()]).collect()
            }
            WordPiece::Variable(name) => match self.values.get(name) {
                Some(values) => values.iter().flat_map(split_blanks).collect(),
                None => vec![unknown()],
            },
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

/// Splits a value at white space, where it may become several words.
fn split_blanks(value: &ShellWord) -> Vec<ShellWord> {
    let has_blanks = value.text.contains([' ', '\t', '\n']);
    match value.pieces.is_empty() && has_blanks {
        true => value.text.split_whitespace().map(ShellWord::from_text).collect(),
        false => vec![value.clone()],
    }
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
