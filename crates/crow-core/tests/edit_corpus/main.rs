//! The promise of the `edit` tool: only the intended text is changed, for any mistake of a model.
//!
//! Cases are built from the repository's own files and from a few in other languages. `cargo run --release -p
//! crow-core --example edit_corpus -- DIRECTORY` does the same with any directory.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod harness;

use std::path::Path;

use harness::{Promise, Source, Tally, read_folder, run, table};

/// Enough for every kind to occur often, in the time of a test.
const SOURCES_MAX: usize = 60;

/// Kinds that need tabs, quotes or blank lines do not occur in every file.
const CASES_MIN_PER_KIND: usize = 5;

/// The minimum share of applied edits; the others have several places.
const WANTED_PERCENT_MIN: usize = 95;

fn sources() -> Vec<Source> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fixtures = crate_folder.join("tests/edit_corpus/fixtures");
    let repository = crate_folder.ancestors().nth(2).expect("the crate is in the repository");
    let mut sources = read_folder(&fixtures, SOURCES_MAX);
    sources.extend(read_folder(repository, SOURCES_MAX - sources.len()));
    sources
}

#[test]
fn no_edit_lands_in_the_wrong_place() {
    let tallies = run(&sources(), 1);
    let table = table(&tallies);
    for (kind, tally) in &tallies {
        let told = |cases: &[String]| format!("{}\n{}\n\n{table}", kind.name, cases.join("\n\n"));
        assert!(tally.wrong.is_empty(), "wrong: {}", told(&tally.wrong));
        assert!(tally.off.is_empty(), "not as it should read: {}", told(&tally.off));
        assert!(tally.n_cases() >= CASES_MIN_PER_KIND, "too few cases: {}", told(&[]));
        match kind.promise {
            Promise::Applied => assert!(tally.refused.is_empty(), "refused: {}", told(&tally.refused)),
            Promise::AppliedOrRefused => {}
            Promise::Refused => assert_eq!(tally.n_landed(), 0, "not refused: {}", told(&[])),
        }
        // At most half of the cases of a kind may have several places.
        let is_reached = kind.promise != Promise::Applied || 2 * tally.n_landed() > tally.n_cases();
        assert!(is_reached, "landed too seldom: {}", told(&[]));
    }
    let n_cases: usize = tallies.iter().map(|(_, tally)| tally.n_cases()).sum();
    assert!(n_cases >= 2_500, "too few cases: {n_cases}\n{table}");
    let wanted =
        || tallies.iter().filter(|(kind, _)| kind.promise == Promise::Applied).map(|(_, tally)| tally);
    let (n_landed, n_wanted) =
        (wanted().map(Tally::n_landed).sum::<usize>(), wanted().map(Tally::n_cases).sum::<usize>());
    assert!(
        100 * n_landed >= WANTED_PERCENT_MIN * n_wanted,
        "{n_landed} of {n_wanted} changes that were wanted were made\n{table}"
    );
}
