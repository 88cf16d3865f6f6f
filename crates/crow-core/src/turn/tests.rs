use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::{Arguments, CallId, FailureKind, MessageId};

/// How many calls a reply has and how it ended, and what the turn does next.
#[track_caller]
fn check_reply(n_calls: usize, ended: Ended, expected: &Expect) {
    let (mut turn, _) = Turn::start(Limits { requests_max: 2, compact_tokens_max: 1000 });
    expected.assert_eq(&shown(&turn.on_reply(&reply(n_calls, ended))));
}

fn reply(n_calls: usize, ended: Ended) -> Reply {
    let calls = (0..n_calls).map(|index| Call {
        id: CallId::at(1, index),
        provider_id: String::new(),
        name: "read".to_owned(),
        arguments: Arguments::Valid(Map::new()),
    });
    Reply {
        id: MessageId::at(1),
        thought: String::new(),
        text: String::new(),
        calls: calls.collect(),
        ended,
        usage: None,
        sealed: None,
    }
}

fn shown(next: &Next) -> String {
    match next {
        Next::Ask => "ask".to_owned(),
        Next::Compact(occasion) => format!("compact {occasion:?}"),
        Next::Run(calls) => format!("run {}", calls.len()),
        Next::End(TurnEnd::Failed(failure)) => format!("end: {failure}"),
        Next::End(end) => format!("end {end:?}"),
    }
}

#[test]
fn after_a_reply() {
    check_reply(0, Ended::Normally, &expect!["end Done"]);
    check_reply(2, Ended::Normally, &expect!["run 2"]);
    check_reply(0, Ended::OutputLimit, &expect!["end OutputLimit"]);
    check_reply(1, Ended::OutputLimit, &expect!["run 1"]);
    check_reply(0, Ended::Refused, &expect!["end Refused"]);
    check_reply(0, Ended::Cancelled, &expect!["end Cancelled"]);
    let failure = Failure::new(FailureKind::Connection, "the connection broke");
    check_reply(0, Ended::Failed(failure), &expect!["end: the connection broke"]);
}

/// What the turn does after each round of results; `true` is a round that was cancelled.
#[track_caller]
fn check_results(requests_max: u32, cancelled: &[bool], expected: &Expect) {
    let (mut turn, first) = Turn::start(Limits { requests_max, compact_tokens_max: 1000 });
    let rounds = cancelled.iter().map(|&cancelled| shown(&turn.on_results(cancelled)));
    let steps: Vec<String> = std::iter::once(shown(&first)).chain(rounds).collect();
    expected.assert_eq(&steps.join(" | "));
}

#[test]
fn after_results() {
    check_results(3, &[false, false, false], &expect!["ask | ask | ask | end RequestLimit"]);
    check_results(1, &[false], &expect!["ask | end RequestLimit"]);
    check_results(1, &[true], &expect!["ask | end Cancelled"]);
    check_results(5, &[false, true], &expect!["ask | ask | end Cancelled"]);
}

/// What a turn does after each of these: `fill TOKENS MEASURED` before it asks, `overflow`, `reply` with a call and its
/// result, or what came of a compaction that left the context so large.
#[track_caller]
fn check_compaction(script: &str, expected: &Expect) {
    let (mut turn, _) = Turn::start(Limits { requests_max: 9, compact_tokens_max: 100 });
    let mut steps = Vec::new();
    for step in script.split(" | ") {
        let words: Vec<&str> = step.split(' ').collect();
        let number = |index: usize| words[index].parse().unwrap();
        let next = match words[0] {
            "fill" => turn.before_asking(Fill { tokens: number(1), measured: number(2) }, 100),
            "overflow" => {
                let failure = Failure::new(FailureKind::ContextOverflow, "too long");
                turn.on_reply(&reply(0, Ended::Failed(failure)))
            }
            "reply" => {
                turn.on_reply(&Reply { text: "hm".to_owned(), ..reply(1, Ended::Normally) });
                turn.on_results(false)
            }
            "done" => turn.on_compacted(Compacted::Done, number(1)),
            "nothing" => turn.on_compacted(Compacted::Nothing, number(1)),
            "failed" => turn.on_compacted(Compacted::Failed, number(1)),
            "cancelled" => turn.on_compacted(Compacted::Cancelled, number(1)),
            _ => panic!("{step}"),
        };
        steps.push(shown(&next));
    }
    expected.assert_eq(&steps.join(" | "));
}

#[test]
fn a_full_context_is_compacted_before_the_model_is_asked() {
    check_compaction("fill 100 90 | reply | fill 101 90", &expect!["ask | ask | compact Full"]);
    // Again only when it grew by a tenth of the limit, whatever the provider counts.
    check_compaction(
        "fill 101 90 | done 40 | fill 120 50 | reply | fill 120 51",
        &expect!["compact Full | ask | ask | ask | compact Full"],
    );
    check_compaction(
        "fill 101 90 | nothing 90 | fill 101 90 | reply | fill 120 101",
        &expect!["compact Full | ask | ask | ask | compact Full"],
    );
    check_compaction(
        "fill 101 90 | failed 90 | fill 101 90 | reply | fill 900 900 | overflow",
        &expect!["compact Full | ask | ask | ask | ask | end: too long"],
    );
    check_compaction("fill 101 90 | cancelled 90", &expect!["compact Full | end Cancelled"]);
}

#[test]
fn a_request_that_was_too_long_is_made_shorter_once() {
    check_compaction(
        "overflow | done 40 | fill 40 40 | overflow",
        &expect!["compact Overflow | ask | ask | end: too long"],
    );
    check_compaction(
        "overflow | done 40 | fill 40 40 | reply | overflow",
        &expect!["compact Overflow | ask | ask | ask | compact Overflow"],
    );
    check_compaction("overflow | nothing 40", &expect!["compact Overflow | end: too long"]);
    check_compaction("overflow | failed 40", &expect!["compact Overflow | end: too long"]);
    check_compaction("overflow | cancelled 40", &expect!["compact Overflow | end Cancelled"]);
    check_compaction(
        "fill 101 90 | done 40 | overflow | done 20 | overflow",
        &expect!["compact Full | ask | compact Overflow | ask | end: too long"],
    );
}
