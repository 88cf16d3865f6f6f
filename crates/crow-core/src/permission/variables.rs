//! What the variables of a line may hold: the values that the line itself gives them, the working directory and the
//! home folder.

use std::collections::BTreeMap;

use crate::shell::{Assignment, KnownExtent, ShellWord, SimpleCommand, WordPiece};

/// Readings of one word that are looked at; more are not told apart.
const READINGS_MAX: usize = 16;

/// The values that a line gives to its variables.
#[derive(Clone)]
pub(super) struct ShellVariables {
    values: BTreeMap<String, Vec<ShellWord>>,
}

impl ShellVariables {
    /// Collects the assignments of all commands of a line, which begins in `cwd` and stays there if that is known.
    pub(super) fn from_commands(commands: &[&SimpleCommand], cwd: Option<&str>) -> Self {
        let mut values: BTreeMap<String, Vec<ShellWord>> = BTreeMap::new();
        let mut add = |name: &str, value: ShellWord| values.entry(name.to_owned()).or_default().push(value);
        for simple in commands {
            for Assignment { name, value } in given_assignments(simple) {
                add(name, value.clone());
            }
        }
        add("HOME", ShellWord { text: "~".into(), extent: KnownExtent::Home, rest: Vec::new() });
        if let Some(cwd) = cwd {
            add("PWD", ShellWord::from_text(cwd));
        }
        Self { values }
    }

    /// Lists what a word may be: itself, and with each of the values that its variables are given in the line.
    pub(super) fn word_readings(&self, word: &ShellWord) -> Vec<ShellWord> {
        if word.rest.is_empty() {
            return vec![word.clone()];
        }
        let is_home = word.text == "~" || word.text.starts_with("~/");
        let extent = if is_home { KnownExtent::Home } else { KnownExtent::Whole };
        let mut readings = vec![ShellWord { text: word.text.clone(), extent, rest: Vec::new() }];
        for piece in &word.rest {
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
        let same = || unknown_word(piece.clone());
        match piece {
            WordPiece::Known(text) => vec![ShellWord::from_text(text.as_str())],
            WordPiece::Glob => vec![same()],
            WordPiece::Unknown(instead) => {
                let instead =
                    instead.iter().flat_map(|text| split_blanks(&ShellWord::from_text(text.as_str())));
                instead.chain([same()]).collect()
            }
            WordPiece::Variable(name) => match self.values.get(name) {
                Some(values) => values.iter().flat_map(split_blanks).collect(),
                None => vec![same()],
            },
        }
    }
}

/// The assignments of a command. A loop over a list begins with one of something unknown, which the values replace.
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

/// A word of which only this is there.
fn unknown_word(piece: WordPiece) -> ShellWord {
    ShellWord { text: String::new(), extent: KnownExtent::Begins, rest: vec![piece] }
}

/// Splits a value at blanks, where it may become several words.
fn split_blanks(value: &ShellWord) -> Vec<ShellWord> {
    let has_blanks = value.text.contains([' ', '\t', '\n']);
    match value.rest.is_empty() && has_blanks {
        true => value.text.split_whitespace().map(ShellWord::from_text).collect(),
        false => vec![value.clone()],
    }
}

fn join_words(front: &ShellWord, back: &ShellWord) -> ShellWord {
    let mut joined = front.clone();
    match joined.rest.last_mut() {
        None => {
            // A home folder behind other text is only text.
            let is_start = joined.text.is_empty();
            joined.text.push_str(&back.text);
            if back.extent != KnownExtent::Home || is_start {
                joined.extent = joined.extent.max(back.extent);
            }
        }
        Some(WordPiece::Known(text)) => text.push_str(&back.text),
        Some(WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_)) if back.text.is_empty() => {}
        Some(WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_)) => {
            joined.rest.push(WordPiece::Known(back.text.clone()));
        }
    }
    joined.rest.extend(back.rest.iter().cloned());
    if !joined.rest.is_empty() {
        joined.extent = joined.extent.max(KnownExtent::Begins);
    }
    joined
}
