//! The kinds of cases: changes of a text between the file and the call, and the allowed outcomes.

mod copied;
mod exact;
mod garbled;
mod loose;
mod misplaced;
mod repeated;

use crow_core::edit::EditOccurrences;

use super::{
    chance::Chance,
    outcome::{Case, Truth},
    sources::Source,
    spot::Spot,
};

/// One kind of mistake.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) promise: Promise,
    make: fn(&str, &str, &mut Chance) -> Option<Case>,
}

/// The allowed outcome of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Applied, unless there are several places.
    Applied,
    /// Applied at the right place, or refused.
    AppliedOrRefused,
    /// Never applied.
    Refused,
}

/// A word that occurs in no source, including this one.
const NOWHERE: &str = concat!("no_source", "_has_this");

impl Kind {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let all =
            [exact::KINDS, loose::KINDS, repeated::KINDS, copied::KINDS, garbled::KINDS, misplaced::KINDS];
        all.into_iter().flatten().copied()
    }

    /// Builds a case of this kind from a source, if that is suitable; some need another source.
    pub(crate) fn case(self, source: &Source, other: &Source, chance: &mut Chance) -> Option<Case> {
        (self.make)(&source.text, &other.text, chance)
    }
}

const fn lands(name: &'static str, make: fn(&str, &str, &mut Chance) -> Option<Case>) -> Kind {
    Kind { name, promise: Promise::Applied, make }
}

const fn refused(name: &'static str, make: fn(&str, &str, &mut Chance) -> Option<Case>) -> Kind {
    Kind { name, promise: Promise::Refused, make }
}

/// An edit of the spot with these texts, whose result should be the spot's new text.
fn case(file: &str, spot: &Spot, (old, new): (String, String)) -> Case {
    let truth = Truth::At { range: spot.range.clone(), ideal: Some(spot.applied(file)) };
    Case { file: file.to_owned(), old, new, occurrences: EditOccurrences::One, truth }
}

/// An edit that must be refused.
fn nowhere(file: String, old: String, new: String) -> Case {
    Case { file, old, new, occurrences: EditOccurrences::One, truth: Truth::Nowhere }
}
