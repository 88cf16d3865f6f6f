//! Every turn makes progress: turns of any size, with an arbitrary model and summarizer.

use proptest::prelude::*;

use super::*;
use crate::{CallsReport, CompactionOutcome, Turn, TurnAction, TurnLimits};

const REQUESTS_MAX: u32 = 12;

/// One attempt has a summary request, one with a shorter input, and a verification.
const PER_ATTEMPT: u32 = 3;

/// The model's reaction to a request.
#[derive(Debug, Clone)]
enum Act {
    Calls { output: usize, counted: Option<u64> },
    Overflows,
    Fails,
    Ends,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let calls = (0usize..3000, prop::option::of(0u64..20_000))
        .prop_map(|(output, counted)| Act::Calls { output, counted });
    let act = prop_oneof![8 => calls, 4 => Just(Act::Overflows), 1 => Just(Act::Fails), 1 => Just(Act::Ends)];
    prop::collection::vec(act, 1..40)
}

fn summaries() -> impl Strategy<Value = Vec<String>> {
    let summary = prop_oneof![
        4 => (0usize..4000).prop_map(|n| "s".repeat(n)),
        2 => Just("complete".to_owned()),
        1 => Just("!overflow".to_owned()),
        1 => Just("!cut".to_owned()),
        1 => Just("!broken".to_owned()),
    ];
    prop::collection::vec(summary, 1..20)
}

/// Compacts the transcript as an agent would; counts the model requests.
fn compact(
    transcript: &mut Transcript,
    trigger: CompactionTrigger,
    limit: u64,
    summaries: &mut impl Iterator<Item = String>,
    n_asked: &mut u32,
) -> CompactionOutcome {
    let (mut attempt, mut step) = CompactionAttempt::start(transcript, trigger, limit);
    let n_before = *n_asked;
    loop {
        step = match step {
            CompactionStep::Summarise { source } => {
                let fill = transcript.context_tokens();
                assert!(source.len() as u64 <= 4 * limit.max(fill.measured) + 100, "the source is bounded");
                *n_asked += 1;
                attempt.on_summary(transcript, &answer(&summaries.next().unwrap()))
            }
            CompactionStep::Verify { .. } => {
                *n_asked += 1;
                attempt.on_check(transcript, &answer(&summaries.next().unwrap()))
            }
            CompactionStep::Commit(by) => {
                assert!(by.tokens_after < by.tokens_before, "{by:?}");
                assert!(by.keep_from >= transcript.first_seq());
                transcript.compact(by).unwrap();
                return CompactionOutcome::Compacted;
            }
            CompactionStep::Reject(CompactionRejection::NothingToCompact) => {
                assert_eq!(*n_asked, n_before, "nothing costs nothing");
                return CompactionOutcome::NothingToCompact;
            }
            CompactionStep::Reject(CompactionRejection::Cancelled) => return CompactionOutcome::Cancelled,
            CompactionStep::Reject(_) => return CompactionOutcome::Failed,
        };
        assert!(*n_asked - n_before <= PER_ATTEMPT);
    }
}

/// Runs a turn; returns the numbers of model requests and of failed attempts.
fn play(transcript: &mut Transcript, limit: u64, acts: &[Act], summaries: &[String]) -> (u32, u32) {
    let mut acts = acts.iter().cycle();
    let mut summaries = summaries.iter().cloned().cycle();
    let (mut turn, mut next) =
        Turn::start(TurnLimits { requests_max: REQUESTS_MAX, compact_tokens_max: limit });
    let (mut n_asked, mut n_failed) = (0, 0);
    loop {
        next = match next {
            TurnAction::RequestReply if turn.needs_compaction(transcript.context_tokens(), limit) => {
                TurnAction::Compact(CompactionTrigger::LimitReached)
            }
            TurnAction::RequestReply => {
                n_asked += 1;
                assert!(n_asked < 1000, "it goes round");
                let seq = transcript.next_seq();
                match acts.next().unwrap() {
                    Act::Calls { output, counted } => {
                        let usage = counted.map(|input| TokenUsage::new(input, 10));
                        let reply = Reply { usage, ..reply(seq, "hm", 1) };
                        transcript.push(TranscriptEntry::Reply(reply.clone())).unwrap();
                        let next = turn.on_reply(&reply);
                        transcript.push(result(CallId::from_position(seq, 0), &"o".repeat(*output))).unwrap();
                        assert!(matches!(next, TurnAction::Run(_)));
                        turn.on_results(CallsReport::default(), &[])
                    }
                    Act::Ends => turn.on_reply(&reply(seq, "done", 0)),
                    Act::Overflows => turn.on_reply(&Reply { text: String::new(), ..answer("!overflow") }),
                    Act::Fails => turn.on_reply(&Reply { text: String::new(), ..answer("!broken") }),
                }
            }
            TurnAction::Compact(trigger) => {
                let compacted = compact(transcript, trigger, limit, &mut summaries, &mut n_asked);
                n_failed += u32::from(compacted == CompactionOutcome::Failed);
                turn.on_compacted(compacted, transcript.context_tokens().measured)
            }
            TurnAction::Run(_) => unreachable!("calls run at once here"),
            TurnAction::Resume(_) | TurnAction::Confirm(_) | TurnAction::StopRepeating => {
                panic!("nothing broke off, and no two results are the same")
            }
            TurnAction::Settle(_) | TurnAction::End(_) => return (n_asked, n_failed),
        };
    }
}

proptest! {
    #[test]
    fn every_turn_ends(
        before in prop::collection::vec((0usize..1500, 0usize..1500), 0..12),
        limit in 1u64..4000,
        acts in acts(),
        summaries in summaries(),
    ) {
        let mut transcript = Transcript::new("be brief");
        for (prompt, output) in before {
            say(&mut transcript, "prompt", prompt);
            say(&mut transcript, "call", output);
            say(&mut transcript, "reply", 3);
        }
        say(&mut transcript, "prompt", 10);
        let (n_asked, n_failed) = play(&mut transcript, limit, &acts, &summaries);
        // A request may be rejected once and repeated, each time after an attempt.
        prop_assert!(n_asked <= 2 * REQUESTS_MAX * (1 + PER_ATTEMPT), "{n_asked}");
        prop_assert!(n_failed <= 1, "{n_failed} attempts failed");
    }
}
