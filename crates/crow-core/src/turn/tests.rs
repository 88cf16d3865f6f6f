use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::{CallId, FailureKind, MessageId, ToolArguments};

/// The number of calls and the end of a reply, with the next action.
#[track_caller]
fn check_reply(n_calls: usize, ended: ReplyEnd, expected: &Expect) {
    let (mut turn, _) = Turn::start(TurnLimits { requests_max: 2, compact_tokens_max: 1000 });
    expected.assert_eq(&shown(&turn.on_reply(&reply(n_calls, ended))));
}

fn reply(n_calls: usize, ended: ReplyEnd) -> Reply {
    let calls = (0..n_calls).map(|index| ToolCall {
        id: CallId::from_position(1, index),
        provider_id: String::new(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(Map::new()),
    });
    Reply {
        id: MessageId::from_seq(1),
        thought: String::new(),
        text: String::new(),
        calls: calls.collect(),
        end: ended,
        usage: None,
        provider_state: None,
        fallback_model: None,
    }
}

fn shown(next: &TurnAction) -> String {
    match next {
        TurnAction::RequestReply => "ask".to_owned(),
        TurnAction::Compact(trigger) => format!("compact {trigger:?}"),
        TurnAction::Run(calls) => format!("run {}", calls.len()),
        TurnAction::Resume(ReplyResume { attempt: n_times, attempts_max: n_max, .. }) => {
            format!("resume {n_times} of {n_max}")
        }
        TurnAction::StopRepeating => "stop repeating".to_owned(),
        TurnAction::Confirm(repeated) => format!("confirm after {}", repeated.n_times),
        TurnAction::Settle(check) => format!("settle {check:?}"),
        TurnAction::End(TurnEnd::Failed(failure)) => format!("end: {failure}"),
        TurnAction::End(end) => format!("end {end:?}"),
    }
}

#[test]
fn action_after_a_reply() {
    check_reply(0, ReplyEnd::Complete, &expect!["settle Input"]);
    check_reply(2, ReplyEnd::Complete, &expect!["run 2"]);
    check_reply(0, ReplyEnd::OutputLimit, &expect!["end OutputLimit"]);
    check_reply(1, ReplyEnd::OutputLimit, &expect!["run 1"]);
    check_reply(0, ReplyEnd::Refused, &expect!["end Refused"]);
    check_reply(0, ReplyEnd::Cancelled, &expect!["end Cancelled"]);
    let failure = Failure::new(FailureKind::Connection, "the connection broke");
    check_reply(0, ReplyEnd::Failed(failure), &expect!["end: the connection broke"]);
}

/// The next action after each round of results: `done`, `cancelled`, `stop`, `cancelled stop` or `5 equal`.
#[track_caller]
fn check_results(requests_max: u32, rounds: &str, expected: &Expect) {
    let (mut turn, first) = Turn::start(TurnLimits { requests_max, compact_tokens_max: 1000 });
    let rounds = rounds.split(", ").map(|round| {
        let n_equal_calls = round.split_once(" equal").and_then(|(number, _)| number.parse().ok());
        let report = CallsReport {
            is_cancelled: round.contains("cancelled"),
            must_stop: round.contains("stop"),
            n_equal_calls: n_equal_calls.unwrap_or(0),
        };
        shown(&turn.on_results(report, &[]))
    });
    let steps: Vec<String> = std::iter::once(shown(&first)).chain(rounds).collect();
    expected.assert_eq(&steps.join(" | "));
}

#[test]
fn action_after_results() {
    check_results(3, "done, done, done", &expect!["ask | ask | ask | end RequestLimit"]);
    check_results(1, "done", &expect!["ask | end RequestLimit"]);
    check_results(1, "cancelled", &expect!["ask | end Cancelled"]);
    check_results(5, "done, cancelled", &expect!["ask | ask | end Cancelled"]);
    check_results(5, "stop", &expect!["ask | end Completed"]);
    check_results(1, "stop", &expect!["ask | end RequestLimit"]);
    check_results(5, "cancelled stop", &expect!["ask | end Cancelled"]);
    check_results(5, "4 equal, 5 equal", &expect!["ask | ask | stop repeating"]);
    check_results(5, "5 equal cancelled", &expect!["ask | end Cancelled"]);
    check_results(1, "5 equal", &expect!["ask | end RequestLimit"]);
}

/// The actions after a complete reply, with each finding: `none`, `more` or `cancelled`. `reply` is the next reply.
#[track_caller]
fn check_settling(requests_max: u32, findings: &str, expected: &Expect) {
    let (mut turn, _) = Turn::start(TurnLimits { requests_max, compact_tokens_max: 1000 });
    let mut next = turn.on_reply(&reply(0, ReplyEnd::Complete));
    let mut steps = vec![shown(&next)];
    for finding in findings.split(' ') {
        next = match (finding, &next) {
            ("reply", TurnAction::RequestReply) => turn.on_reply(&reply(0, ReplyEnd::Complete)),
            ("none", TurnAction::Settle(check)) => turn.on_settled(*check, SettleFinding::Nothing),
            ("more", TurnAction::Settle(check)) => turn.on_settled(*check, SettleFinding::MoreWork),
            ("cancelled", TurnAction::Settle(check)) => turn.on_settled(*check, SettleFinding::Cancelled),
            (finding, next) => panic!("{finding} after {next:?}"),
        };
        steps.push(shown(&next));
    }
    expected.assert_eq(&steps.join(" | "));
}

#[test]
fn finished_model_settles_in_order() {
    check_settling(
        9,
        "none none none none",
        &expect![
            "settle Input | settle Tasks | settle Announcement | settle Hooks { n_continuations: 0 } | end Completed"
        ],
    );
    // Input goes to the model, and the checks start again after its reply.
    check_settling(9, "more reply", &expect!["settle Input | ask | settle Input"]);
    check_settling(1, "more", &expect!["settle Input | end RequestLimit"]);
    // A task that ended has a message, or it was cancelled and has none.
    check_settling(
        9,
        "none more none none none",
        &expect![
            "settle Input | settle Tasks | settle Input | settle Tasks | settle Announcement | settle Hooks { n_continuations: 0 }"
        ],
    );
    check_settling(
        9,
        "none none none more reply none none none",
        &expect![
            "settle Input | settle Tasks | settle Announcement | settle Hooks { n_continuations: 0 } | ask | settle Input | settle Tasks | settle Announcement | settle Hooks { n_continuations: 1 }"
        ],
    );
    check_settling(
        1,
        "none none none more",
        &expect![
            "settle Input | settle Tasks | settle Announcement | settle Hooks { n_continuations: 0 } | end RequestLimit"
        ],
    );
}

#[test]
fn model_is_asked_once_for_what_it_announced() {
    check_settling(
        9,
        "none none more reply none none none",
        &expect![
            "settle Input | settle Tasks | settle Announcement | ask | settle Input | settle Tasks | settle Hooks { n_continuations: 0 } | end Completed"
        ],
    );
    check_settling(
        1,
        "none none more",
        &expect!["settle Input | settle Tasks | settle Announcement | end RequestLimit"],
    );
    check_settling(
        9,
        "none none cancelled",
        &expect!["settle Input | settle Tasks | settle Announcement | end Cancelled"],
    );
}

#[test]
fn cancelled_turn_does_not_settle() {
    check_settling(9, "cancelled", &expect!["settle Input | end Cancelled"]);
    check_settling(9, "none cancelled", &expect!["settle Input | settle Tasks | end Cancelled"]);
    check_settling(
        9,
        "none none none cancelled",
        &expect![
            "settle Input | settle Tasks | settle Announcement | settle Hooks { n_continuations: 0 } | end Cancelled"
        ],
    );
}

/// The next action after each of these: `fill TOKENS MEASURED` before a request, `overflow`, `reply` with a call and
/// its result, or the result of a compaction with the context size after it.
#[track_caller]
fn check_compaction(script: &str, expected: &Expect) {
    let (mut turn, _) = Turn::start(TurnLimits { requests_max: 9, compact_tokens_max: 100 });
    let mut steps = Vec::new();
    for step in script.split(" | ") {
        let words: Vec<&str> = step.split(' ').collect();
        let number = |index: usize| words[index].parse().unwrap();
        let next = match words[0] {
            "fill" => {
                let context = ContextTokens { tokens: number(1), measured: number(2) };
                match turn.needs_compaction(context, 100) {
                    true => TurnAction::Compact(CompactionTrigger::LimitReached),
                    false => TurnAction::RequestReply,
                }
            }
            "overflow" => {
                let failure = Failure::new(FailureKind::ContextOverflow, "too long");
                turn.on_reply(&reply(0, ReplyEnd::Failed(failure)))
            }
            "reply" => {
                turn.on_reply(&Reply { text: "hm".to_owned(), ..reply(1, ReplyEnd::Complete) });
                turn.on_results(CallsReport::default(), &[])
            }
            "done" => turn.on_compacted(CompactionOutcome::Compacted, number(1)),
            "nothing" => turn.on_compacted(CompactionOutcome::NothingToCompact, number(1)),
            "failed" => turn.on_compacted(CompactionOutcome::Failed, number(1)),
            "cancelled" => turn.on_compacted(CompactionOutcome::Cancelled, number(1)),
            _ => panic!("{step}"),
        };
        steps.push(shown(&next));
    }
    expected.assert_eq(&steps.join(" | "));
}

#[test]
fn full_context_is_compacted_before_request() {
    check_compaction("fill 100 90 | reply | fill 101 90", &expect!["ask | ask | compact LimitReached"]);
    // Only after growth by a tenth of the limit, for any count of the provider.
    check_compaction(
        "fill 101 90 | done 40 | fill 120 50 | reply | fill 120 51",
        &expect!["compact LimitReached | ask | ask | ask | compact LimitReached"],
    );
    check_compaction(
        "fill 101 90 | nothing 90 | fill 101 90 | reply | fill 120 101",
        &expect!["compact LimitReached | ask | ask | ask | compact LimitReached"],
    );
    check_compaction(
        "fill 101 90 | failed 90 | fill 101 90 | reply | fill 900 900 | overflow",
        &expect!["compact LimitReached | ask | ask | ask | ask | end: too long"],
    );
    check_compaction("fill 101 90 | cancelled 90", &expect!["compact LimitReached | end Cancelled"]);
}

#[test]
fn too_long_request_is_compacted_once() {
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
        &expect!["compact LimitReached | ask | compact Overflow | ask | end: too long"],
    );
}

/// The next action after each reply in a turn of `requests_max` requests: `broke` after text and `mute` before any,
/// `busy` in the middle, `wrong` permanently, and `whole` with a call and its result.
#[track_caller]
fn check_resuming(requests_max: u32, script: &str, expected: &Expect) {
    let (mut turn, _) = Turn::start(TurnLimits { requests_max, compact_tokens_max: 1000 });
    let said = |kind| {
        let ended = ReplyEnd::Failed(Failure::new(kind, "it broke"));
        Reply { text: "Well".to_owned(), ..reply(0, ended) }
    };
    let steps = script.split(' ').map(|step| {
        let reply = match step {
            "broke" => said(FailureKind::Connection),
            "mute" => Reply { text: String::new(), ..said(FailureKind::Connection) },
            "busy" => said(FailureKind::ProviderOverloaded),
            "wrong" => said(FailureKind::Protocol),
            "whole" => {
                turn.on_reply(&reply(1, ReplyEnd::Complete));
                return shown(&turn.on_results(CallsReport::default(), &[]));
            }
            _ => panic!("{step}"),
        };
        shown(&turn.on_reply(&reply))
    });
    expected.assert_eq(&steps.collect::<Vec<_>>().join(" | "));
}

#[test]
fn interrupted_reply_is_continued() {
    check_resuming(9, "broke whole broke", &expect!["resume 1 of 3 | ask | resume 1 of 3"]);
    check_resuming(
        9,
        "broke busy broke broke",
        &expect!["resume 1 of 3 | resume 2 of 3 | resume 3 of 3 | end: it broke"],
    );
    check_resuming(9, "mute", &expect!["end: it broke"]);
    check_resuming(9, "wrong", &expect!["end: it broke"]);
    check_resuming(2, "broke broke", &expect!["resume 1 of 3 | end: it broke"]);
}

#[test]
fn repeating_model_continues_if_user_agrees() {
    let (turn, _) = Turn::start(TurnLimits { requests_max: 9, compact_tokens_max: 1000 });
    assert_eq!(shown(&turn.on_answer(false, true)), "ask");
    assert_eq!(shown(&turn.on_answer(false, false)), "end Repetition");
    assert_eq!(shown(&turn.on_answer(true, false)), "end Cancelled");
}
