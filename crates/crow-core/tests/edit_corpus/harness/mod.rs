//! Edits of real files with the typical mistakes of models, and their outcomes.
//!
//! Every case is built from a file and a place in it, so that the right place is known without a matcher.

mod chance;
mod kinds;
mod mutate;
mod outcome;
mod sources;
mod spot;

pub(crate) use kinds::{Kind, Promise};
pub(crate) use outcome::{Tally, table};
pub(crate) use sources::{Source, read_folder};

use chance::Chance;
use outcome::run_case;

/// Builds and runs the cases of all kinds for all sources, `n_rounds` times.
pub(crate) fn run(sources: &[Source], n_rounds: u64) -> Vec<(Kind, Tally)> {
    let mut tallies: Vec<(Kind, Tally)> = Kind::all().map(|kind| (kind, Tally::default())).collect();
    std::thread::scope(|scope| {
        for (kind, tally) in &mut tallies {
            scope.spawn(|| run_kind(kind, sources, n_rounds, tally));
        }
    });
    tallies
}

fn run_kind(kind: &Kind, sources: &[Source], n_rounds: u64, tally: &mut Tally) {
    for (at, source) in sources.iter().enumerate() {
        for round in 0..n_rounds {
            let mut chance = Chance::of(&format!("{}|{}|{round}", source.name, kind.name));
            let other = &sources[(at + 1 + chance.below(sources.len().max(2) - 1)) % sources.len()];
            match kind.case(source, other, &mut chance) {
                Some(case) => tally.add(&source.name, &case, &run_case(&case)),
                None => tally.n_left_out += 1,
            }
        }
    }
}
