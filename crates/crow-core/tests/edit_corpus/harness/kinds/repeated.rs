//! The old text occurs in the file more than once.

use crow_core::edit::EditOccurrences;

use super::{Kind, NOWHERE, lands, nowhere, refused};
use crate::harness::{
    mutate,
    outcome::{Case, Truth},
    spot::Spot,
};

pub(super) const KINDS: &[Kind] = &[
    refused("duplicated", |file, _, chance| {
        let spot = Spot::pick(file, 2, chance)?;
        Some(nowhere(format!("{file}\n{NOWHERE}\n{}", spot.old), spot.old, spot.new))
    }),
    refused("duplicated elsewhere", |file, _, chance| {
        let spot = Spot::pick(file, 2, chance)?;
        let again = mutate::indented(&spot.old, "  ")?;
        let old = mutate::with_trailing(&spot.old, chance);
        inexact(nowhere(format!("{file}\n{NOWHERE}\n{again}"), old, spot.new))
    }),
    refused("overlapping", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        Some(nowhere(spot.old.repeat(3), spot.old.repeat(2), spot.new))
    }),
    lands("every occurrence", |file, _, chance| {
        let spot = Spot::pick(file, 2, chance)?;
        Some(each(&spot.old, &spot.new, (spot.old.clone(), spot.new.clone())))
    }),
    lands("every loose one", |file, _, chance| {
        let spot = Spot::pick(file, 2, chance)?;
        let there = mutate::indented(&spot.old, "  ")?;
        let then = mutate::indented(&spot.new, "  ")?;
        let old = mutate::with_trailing(&spot.old, chance);
        inexact(each(&there, &then, (old, spot.new)))
    }),
];

/// A file that contains a text twice, and an edit of both.
fn each(there: &str, then: &str, (old, new): (String, String)) -> Case {
    let twice = |text: &str| format!("{text}{NOWHERE}\n{text}");
    let truth = Truth::Each { ideal: twice(then) };
    Case { file: twice(there), old, new, occurrences: EditOccurrences::All, truth }
}

/// Drops a case whose old text occurs in the file exactly.
fn inexact(case: Case) -> Option<Case> {
    (!case.file.contains(&case.old)).then_some(case)
}
