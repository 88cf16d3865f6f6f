//! The old text occurs in the file exactly.

use super::{Kind, case, lands};
use crate::harness::{
    chance::Chance,
    mutate,
    outcome::{Case, MARK, Truth},
    spot::Spot,
};

pub(super) const KINDS: &[Kind] = &[
    lands("exact", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        Some(case(file, &spot, (spot.old.clone(), spot.new.clone())))
    }),
    lands("cut anywhere", |file, _, chance| cut(file, Spot::pick(file, 1, chance)?, chance)),
    lands("a very long line", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let old = spot.old.replace('\n', " ");
        cut(&file.replace('\n', " "), Spot { old, ..spot }, chance)
    }),
    lands("no final newline", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let (old, new) = (spot.old.strip_suffix('\n')?.to_owned(), spot.new.strip_suffix('\n')?.to_owned());
        Some(case(file, &spot, (old, new)))
    }),
    lands("CRLF in the call", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        Some(case(file, &spot, (mutate::with_crlf(&spot.old), mutate::with_crlf(&spot.new))))
    }),
    lands("CRLF in the file", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        Some(in_crlf(case(file, &spot, (spot.old.clone(), spot.new.clone()))))
    }),
    lands("byte order mark", |file, _, chance| {
        let mut spot = Spot::pick(file, 1, chance)?;
        let file = format!("\u{feff}{file}");
        let n_bytes = '\u{feff}'.len_utf8();
        spot.range = spot.range.start + n_bytes..spot.range.end + n_bytes;
        Some(case(&file, &spot, (spot.old.clone(), spot.new.clone())))
    }),
];

/// Replaces an arbitrary part of the spot by another text.
fn cut(file: &str, mut spot: Spot, chance: &mut Chance) -> Option<Case> {
    let ends: Vec<usize> = spot.old.char_indices().map(|(at, _)| at).collect();
    let (a, b) = (chance.pick(&ends)?, chance.pick(&ends)?);
    let (a, b) = (a.min(b), a.max(b));
    let piece = spot.old[a..b].to_owned();
    spot.range = spot.range.start + a..spot.range.start + b;
    spot.new = MARK.to_owned();
    (!piece.trim().is_empty()).then(|| case(file, &spot, (piece, MARK.to_owned())))
}

/// The same in a file with CRLF; the call is unchanged.
fn in_crlf(case: Case) -> Case {
    let Truth::At { range, ideal } = case.truth else { return case };
    let at = |at: usize| at + case.file[..at].matches('\n').count();
    let ideal = ideal.map(|ideal| mutate::with_crlf(&ideal));
    let truth = Truth::At { range: at(range.start)..at(range.end), ideal };
    Case { file: mutate::with_crlf(&case.file), truth, ..case }
}
