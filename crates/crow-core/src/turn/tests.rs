use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::{Arguments, CallId, FailureKind, MessageId};

/// How many calls a reply has and how it ended, and what the turn does next.
#[track_caller]
fn check_reply(n_calls: usize, ended: Ended, expected: &Expect) {
    let (turn, _) = Turn::start(Limits { requests_max: 2 });
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
    }
}

fn shown(next: &Next) -> String {
    match next {
        Next::Ask => "ask".to_owned(),
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
    let (mut turn, first) = Turn::start(Limits { requests_max });
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
