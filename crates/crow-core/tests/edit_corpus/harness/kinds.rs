//! The kinds of cases: what happens to a text between the file and the call, and what may come of it.

mod copied;
mod exact;
mod garbled;
mod loose;
mod misplaced;
mod repeated;

use crow_core::edit::EditOccurrences;

use super::{
    chance::Chance,
    judge::{Case, Truth},
    sources::Source,
    spot::Spot,
};

/// One thing that goes wrong.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) promise: Promise,
    make: fn(&str, &str, &mut Chance) -> Option<Case>,
}

/// What may come of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Lands, unless there are several places.
    Lands,
    /// Lands at the right place or is refused.
    May,
    /// Never lands.
    Refused,
}

/// A word that no source has, this one included.
const NOWHERE: &str = concat!("no_source", "_has_this");

impl Kind {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let all =
            [exact::KINDS, loose::KINDS, repeated::KINDS, copied::KINDS, garbled::KINDS, misplaced::KINDS];
        all.into_iter().flatten().copied()
    }

    /// Makes a case of this kind from a source, if that has what it takes; some need another one too.
    pub(crate) fn case(self, source: &Source, other: &Source, chance: &mut Chance) -> Option<Case> {
        (self.make)(&source.text, &other.text, chance)
    }
}

const fn lands(name: &'static str, make: fn(&str, &str, &mut Chance) -> Option<Case>) -> Kind {
    Kind { name, promise: Promise::Lands, make }
}

const fn refused(name: &'static str, make: fn(&str, &str, &mut Chance) -> Option<Case>) -> Kind {
    Kind { name, promise: Promise::Refused, make }
}

/// An edit of the spot with these texts, which should put the spot's new text there.
fn case(file: &str, spot: &Spot, (old, new): (String, String)) -> Case {
    let truth = Truth::At { range: spot.range.clone(), ideal: Some(spot.applied(file)) };
    Case { file: file.to_owned(), old, new, occurrences: EditOccurrences::One, truth }
}

/// An edit that must not land.
fn nowhere(file: String, old: String, new: String) -> Case {
    Case { file, old, new, occurrences: EditOccurrences::One, truth: Truth::Nowhere }
}
