//! The old text differs from the file in something significant.

use super::{Kind, NOWHERE, case, refused};
use crate::harness::{chance::Chance, mutate, outcome::Case, spot::Spot};

pub(super) const KINDS: &[Kind] = &[
    refused("a line dropped", |file, _, chance| {
        lines(file, chance, |lines, at| {
            lines.remove(at);
        })
    }),
    refused("a line doubled", |file, _, chance| {
        lines(file, chance, |lines, at| lines.insert(at, lines[at].clone()))
    }),
    refused("lines swapped", |file, _, chance| lines(file, chance, |lines, at| lines.swap(at, at - 1))),
    refused("a word changed", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let old = spot.old.replacen(&spot.name(chance)?, NOWHERE, 1);
        other(file, &spot, old)
    }),
    refused("a name changed", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let old = spot.old.replace(&spot.name(chance)?, NOWHERE);
        other(file, &spot, old)
    }),
    refused("another body", |file, theirs, chance| {
        let spot = Spot::pick(file, 5, chance)?;
        let body = Spot::pick(theirs, 3, chance)?;
        let lines = spot.lines();
        let old = [lines[0], &body.old, lines[lines.len() - 1]].concat();
        other(file, &spot, old)
    }),
    refused("a line in the middle changed", |file, _, chance| {
        lines(file, chance, |lines, at| lines[at] = format!("{NOWHERE}\n"))
    }),
    refused("cut, and something before it", |file, _, chance| {
        let spot = Spot::pick(file, 3, chance)?;
        let lines = spot.lines();
        let (at, _) = lines[0].char_indices().nth(lines[0].chars().count() / 2)?;
        other(file, &spot, format!("{NOWHERE}{}", &spot.old[at..]))
    }),
];

/// Changes a line that is neither the first nor the last.
fn lines(file: &str, chance: &mut Chance, change: impl Fn(&mut Vec<String>, usize)) -> Option<Case> {
    let spot = Spot::pick(file, 3, chance)?;
    let at = spot.inner_line(chance)?;
    let mut lines: Vec<String> = spot.lines().into_iter().map(str::to_owned).collect();
    change(&mut lines, at);
    other(file, &spot, lines.concat())
}

/// An edit with another old text that does not occur in the file.
fn other(file: &str, spot: &Spot, old: String) -> Option<Case> {
    let is_there = mutate::bare(file).contains(&mutate::bare(&old));
    (!is_there).then(|| case(file, spot, (old, spot.new.clone())))
}
