//! What the variables of a line may hold: the values that the line itself gives them, the working directory and the
//! home folder.

use std::collections::BTreeMap;

use crate::shell::{Assignment, Extent, Piece, Simple, Word};

/// Readings of one word that are looked at; more are not told apart.
const READINGS_MAX: usize = 16;

/// The values that a line gives to its variables.
#[derive(Clone)]
pub(super) struct Variables {
    values: BTreeMap<String, Vec<Word>>,
}

impl Variables {
    /// Collects the assignments of all commands of a line, which begins in `cwd` and stays there if that is known.
    pub(super) fn collect(commands: &[&Simple], cwd: Option<&str>) -> Self {
        let mut values: BTreeMap<String, Vec<Word>> = BTreeMap::new();
        let mut add = |name: &str, value: Word| values.entry(name.to_owned()).or_default().push(value);
        for simple in commands {
            for Assignment { name, value } in given(simple) {
                add(name, value.clone());
            }
        }
        add("HOME", Word { text: "~".into(), extent: Extent::Home, rest: Vec::new() });
        if let Some(cwd) = cwd {
            add("PWD", Word::known(cwd));
        }
        Self { values }
    }

    /// Lists what a word may be: itself, and with each of the values that its variables are given in the line.
    pub(super) fn readings(&self, word: &Word) -> Vec<Word> {
        if word.rest.is_empty() {
            return vec![word.clone()];
        }
        let is_home = word.text == "~" || word.text.starts_with("~/");
        let extent = if is_home { Extent::Home } else { Extent::Whole };
        let mut readings = vec![Word { text: word.text.clone(), extent, rest: Vec::new() }];
        for piece in &word.rest {
            let values = self.values_of(piece);
            let longer = readings.iter().flat_map(|reading| values.iter().map(|value| join(reading, value)));
            readings = longer.take(READINGS_MAX + 1).collect();
        }
        if readings.len() > READINGS_MAX {
            return vec![word.clone()];
        }
        readings
    }

    fn values_of(&self, piece: &Piece) -> Vec<Word> {
        let same = || unknown(piece.clone());
        match piece {
            Piece::Known(text) => vec![Word::known(text.as_str())],
            Piece::Glob => vec![same()],
            Piece::Unknown(instead) => {
                let instead = instead.iter().flat_map(|text| split(&Word::known(text.as_str())));
                instead.chain([same()]).collect()
            }
            Piece::Variable(name) => match self.values.get(name) {
                Some(values) => values.iter().flat_map(split).collect(),
                None => vec![same()],
            },
        }
    }
}

/// The assignments of a command. A loop over a list begins with one of something unknown, which the values replace.
fn given(simple: &Simple) -> &[Assignment] {
    match simple.assignments.as_slice() {
        [first, values @ ..]
            if !values.is_empty()
                && simple.words.is_empty()
                && first.value == Word::unknown()
                && values.iter().all(|value| value.name == first.name) =>
        {
            values
        }
        assignments => assignments,
    }
}

/// A word of which only this is there.
fn unknown(piece: Piece) -> Word {
    Word { text: String::new(), extent: Extent::Begins, rest: vec![piece] }
}

/// Splits a value at blanks, where it may become several words.
fn split(value: &Word) -> Vec<Word> {
    let has_blanks = value.text.contains([' ', '\t', '\n']);
    match value.rest.is_empty() && has_blanks {
        true => value.text.split_whitespace().map(Word::known).collect(),
        false => vec![value.clone()],
    }
}

fn join(front: &Word, back: &Word) -> Word {
    let mut joined = front.clone();
    match joined.rest.last_mut() {
        None => {
            // A home folder behind other text is only text.
            let is_start = joined.text.is_empty();
            joined.text.push_str(&back.text);
            if back.extent != Extent::Home || is_start {
                joined.extent = joined.extent.max(back.extent);
            }
        }
        Some(Piece::Known(text)) => text.push_str(&back.text),
        Some(Piece::Glob | Piece::Variable(_) | Piece::Unknown(_)) if back.text.is_empty() => {}
        Some(Piece::Glob | Piece::Variable(_) | Piece::Unknown(_)) => {
            joined.rest.push(Piece::Known(back.text.clone()));
        }
    }
    joined.rest.extend(back.rest.iter().cloned());
    if !joined.rest.is_empty() {
        joined.extent = joined.extent.max(Extent::Begins);
    }
    joined
}
