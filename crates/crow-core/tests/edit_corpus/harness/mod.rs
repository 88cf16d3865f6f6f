//! Edits of real files as a model gets them slightly wrong, and what became of them.
//!
//! Every case is made from a file and a place in it, so that the right place is known; no matcher is asked.

mod chance;
mod judge;
mod kinds;
mod mutate;
mod sources;
mod spot;

pub(crate) use judge::{Tally, table};
pub(crate) use kinds::{Kind, Promise};
pub(crate) use sources::{Source, read_folder};

use chance::Chance;
use judge::judge;

/// Makes the cases of all kinds over all sources, `n_rounds` times, and judges them.
pub(crate) fn run(sources: &[Source], n_rounds: u64) -> Vec<(Kind, Tally)> {
    let mut tallies: Vec<(Kind, Tally)> = Kind::all().map(|kind| (kind, Tally::default())).collect();
    for (at, source) in sources.iter().enumerate() {
        for (kind, tally) in &mut tallies {
            for round in 0..n_rounds {
                let mut chance = Chance::of(&format!("{}|{}|{round}", source.name, kind.name));
                let other = &sources[(at + 1 + chance.below(sources.len().max(2) - 1)) % sources.len()];
                match kind.case(source, other, &mut chance) {
                    Some(case) => tally.add(&source.name, &case, &judge(&case)),
                    None => tally.n_left_out += 1,
                }
            }
        }
    }
    tallies
}
