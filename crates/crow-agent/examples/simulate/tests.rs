//! A short run.

use crate::report::Report;

/// A debug build runs a few seeds in a second; `just simulate` runs many.
const N_SEEDS: u64 = 16;

#[test]
fn seeds_break_no_invariant() {
    let report = Report::run_seeds(0, N_SEEDS).expect("the runs begin");
    assert!(report.failed_seeds.is_empty(), "{report}");
}

#[test]
fn seed_is_reproduced_exactly() {
    let [first, second] = [(), ()].map(|()| Report::run_seeds(0, 4).expect("the runs begin").fingerprint);
    assert_eq!(first, second, "two runs of the same seeds differ");
}
