//! The old text is not from this file, or has no unique place in it.

use super::{Kind, nowhere, refused};
use crate::harness::{
    mutate,
    outcome::{Case, MARK},
    spot::Spot,
};

pub(super) const KINDS: &[Kind] = &[
    refused("another file", |file, theirs, chance| other(file, Spot::pick(theirs, 1, chance)?.old)),
    refused("another file, spaced", |file, theirs, chance| {
        other(file, mutate::spaced(&Spot::pick(theirs, 1, chance)?.old, 0))
    }),
    refused("two places", |file, _, chance| {
        other(file, Spot::pick(file, 1, chance)?.old + &Spot::pick(file, 1, chance)?.old)
    }),
    refused("two files", |file, theirs, chance| {
        other(file, Spot::pick(file, 2, chance)?.old + &Spot::pick(theirs, 1, chance)?.old)
    }),
    refused("an empty file", |_, theirs, chance| other("", Spot::pick(theirs, 1, chance)?.old)),
];

/// An edit with a text that does not occur in the file, even loosely.
fn other(file: &str, old: String) -> Option<Case> {
    let is_there = mutate::bare(file).contains(&mutate::bare(&old));
    (!is_there).then(|| nowhere(file.to_owned(), old, MARK.to_owned()))
}
