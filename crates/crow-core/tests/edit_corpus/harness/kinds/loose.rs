//! The old text differs from the file in something insignificant. The new one is changed in the same way, and the
//! result must be as if neither were.

use super::{Kind, Promise, case, lands};
use crate::harness::{
    chance::Chance,
    mutate,
    outcome::{Case, Truth},
    spot::Spot,
};

pub(super) const KINDS: &[Kind] = &[
    lands("trailing added", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let old = mutate::with_trailing(&spot.old, chance);
        inexact(case(file, &spot, (old, spot.new.clone())))
    }),
    lands("trailing lost", |file, _, chance| {
        let mut spot = Spot::pick(file, 1, chance)?;
        let file = spoil_ends(file, &mut spot, chance);
        let texts = (mutate::without_trailing(&spot.old), mutate::without_trailing(&spot.new));
        inexact(case(&file, &spot, texts))
    }),
    lands("indented more", |file, _, chance| {
        both(file, chance, |text| mutate::indented(text, if text.contains('\t') { "\t" } else { "    " }))
    }),
    lands("indented less", |file, _, chance| {
        both(file, chance, |text| mutate::dedented(text, if text.starts_with('\t') { "\t" } else { "  " }))
    }),
    lands("tabs for spaces", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let texts =
            (mutate::spaces_to_tabs(&spot.old, spot.width)?, mutate::spaces_to_tabs(&spot.new, spot.width)?);
        inexact(case(file, &spot, texts))
    }),
    lands("spaces for tabs", |file, _, chance| {
        let width = [2, 4, 8][chance.below(3)];
        both(&mutate::tabbed(file)?, chance, |text| {
            // With mixed tabs and spaces, the intended tab width is unknown.
            mutate::is_tabbed(text).then(|| mutate::tabs_to_spaces(text, width))?
        })
    }),
    Kind { name: "other steps", promise: Promise::AppliedOrRefused, make: other_steps },
    lands("other spacing", |file, _, chance| {
        let style = chance.below(3);
        both(file, chance, |text| Some(mutate::spaced(text, style)))
    }),
    lands("typographic in the call", |file, _, chance| {
        let style = chance.below(3);
        both(file, chance, |text| Some(mutate::typographic(text, style)))
    }),
    lands("typographic in the file", |file, _, chance| {
        let style = chance.below(3);
        both(&mutate::typographic(file, style), chance, |text| Some(mutate::plain(text)))
    }),
    lands("blank line added", |file, _, chance| with_blank(file, chance, |text| Some(text.to_owned()))),
    lands("blank lines lost", |file, _, chance| {
        both(file, chance, |text| Some(mutate::without_blanks(text)))
    }),
    lands("blank lines around", |file, _, chance| both(file, chance, |text| Some(format!("\n{text}\n\n")))),
    lands("escaped", |file, _, chance| both(file, chance, |text| Some(mutate::escaped(text)))),
    lands("quotes escaped", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let old = mutate::with_escaped_quotes(&spot.old)?;
        inexact(case(file, &spot, (old, spot.new.replace('"', "\\\""))))
    }),
    lands("several of these", |file, _, chance| {
        let style = chance.below(3);
        with_blank(file, chance, |text| mutate::indented(&mutate::typographic(text, style), "  "))
    }),
];

/// Changes both texts of a spot alike.
fn both(file: &str, chance: &mut Chance, change: impl Fn(&str) -> Option<String>) -> Option<Case> {
    let spot = Spot::pick(file, 1, chance)?;
    inexact(case(file, &spot, (change(&spot.old)?, change(&spot.new)?)))
}

/// Adds a blank line at the same place of both texts, and changes both alike.
fn with_blank(file: &str, chance: &mut Chance, change: impl Fn(&str) -> Option<String>) -> Option<Case> {
    let spot = Spot::pick(file, 2, chance)?;
    let at = 1 + chance.below(spot.lines().len() - 1);
    let at_new = if at > spot.changed { at + 1 } else { at };
    let texts =
        (mutate::with_blank(&change(&spot.old)?, at), mutate::with_blank(&change(&spot.new)?, at_new));
    inexact(case(file, &spot, texts))
}

/// The width of a step that the old text does not have is unknown: the resulting text is not checked.
fn other_steps(file: &str, _: &str, chance: &mut Chance) -> Option<Case> {
    let mut case = both(file, chance, mutate::other_steps)?;
    if let Truth::At { ideal, .. } = &mut case.truth {
        *ideal = None;
    }
    Some(case)
}

/// Drops a case whose old text occurs in the file exactly.
fn inexact(case: Case) -> Option<Case> {
    (!case.file.contains(&case.old) && !case.old.trim().is_empty()).then_some(case)
}

/// Adds trailing white space to the lines of the spot, in the file and so in the expected result.
fn spoil_ends(file: &str, spot: &mut Spot, chance: &mut Chance) -> String {
    let spoilt = mutate::with_trailing(&spot.old, chance);
    let mut file = file.to_owned();
    file.replace_range(spot.range.clone(), &spoilt);
    let old: Vec<&str> = spoilt.split_inclusive('\n').collect();
    let new: Vec<&str> = spot.new.split_inclusive('\n').collect();
    let changed = &new[spot.changed..spot.changed + 2];
    spot.new = [&old[..spot.changed], changed, &old[spot.changed + 1..]].concat().concat();
    spot.range = spot.range.start..spot.range.start + spoilt.len();
    spot.old = spoilt;
    file
}
