//! A short run, and the seeds of bugs that were found.

use crate::report::Report;
use crate::run::SeedRunner;

/// A debug build runs a few seeds in a second; `just simulate` runs many.
const N_SEEDS: u64 = 16;

/// Fails if a seed breaks an invariant, or if no event of it contains a text.
#[track_caller]
fn check(seed: u64, event: &str) {
    let mut runner = SeedRunner::create().expect("a directory can be made");
    let journal = runner.run_seed(seed, true).expect("the run begins");
    let trace = journal.trace.join("\n");
    assert!(journal.violations.is_empty(), "seed {seed}: {:#?}\n{trace}", journal.violations);
    assert!(trace.contains(event), "seed {seed} has no event {event}");
}

#[test]
fn panicking_tool_ends_its_call() {
    check(4, "fault ToolPanics");
}

#[test]
fn report_is_told_once_if_the_mailbox_cannot_be_read() {
    check(1208, "its report comes to you as a message");
}

#[test]
fn steering_that_is_not_stored_is_answered_with_the_reason() {
    check(43, r#""id":6,"error":{"code":-32603,"message":"Internal error","data":{"kind":"store""#);
}

#[test]
fn call_that_is_not_stored_stays_failed_after_a_question_of_its_task() {
    check(82181, r#""kind":"other","status":"failed","title":"Task for helper: word49""#);
}

#[test]
fn seeds_break_no_invariant() {
    let report = Report::run_seeds(0..N_SEEDS).expect("the runs begin");
    assert!(report.failed_seeds.is_empty(), "{report}");
}

/// Elsewhere the keys of hash maps are not the seed's.
#[cfg(target_os = "linux")]
#[test]
fn seed_is_reproduced_exactly() {
    // A client dies with several open requests, which the SDK ends in the order of a hash map.
    const SEED: u64 = 531;
    let mut runner = SeedRunner::create().expect("a directory can be made");
    let alone = runner.run_seed(SEED, false).expect("the run begins").fingerprint;
    for other in 0..4 {
        runner.run_seed(other, false).expect("the run begins");
        let again = runner.run_seed(SEED, false).expect("the run begins").fingerprint;
        assert_eq!(alone, again, "the seed runs in another way after seed {other}");
    }
}
