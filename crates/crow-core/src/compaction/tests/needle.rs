//! An early prompt stays available after many compactions, independent of the model's summaries.

use super::*;

const LIMIT: u64 = 4_000;

/// Runs twenty-five compactions with summaries by the function. Returns the last request.
fn many(first: &str, filler: usize, sum_up: impl Fn(&str) -> String) -> (usize, String) {
    let mut transcript = Transcript::new("be brief");
    prompt(&mut transcript, first);
    let mut n_compactions = 0;
    for round in 0.. {
        if n_compactions == 25 {
            break;
        }
        prompt(&mut transcript, &format!("step {round}{}", " and so on".repeat(filler)));
        say(&mut transcript, "call", 2000);
        say(&mut transcript, "reply", 200);
        if transcript.context_tokens().tokens <= LIMIT {
            continue;
        }
        let (mut attempt, mut step) =
            CompactionAttempt::start(&transcript, CompactionTrigger::LimitReached, LIMIT);
        loop {
            step = match step {
                CompactionStep::Summarise { source } => {
                    attempt.on_summary(&transcript, &reply(0, &sum_up(&source), 0))
                }
                CompactionStep::Verify { .. } => attempt.on_check(&transcript, &answer("complete")),
                CompactionStep::Commit(by) => {
                    transcript.compact(by).unwrap();
                    break;
                }
                CompactionStep::Reject(rejected) => panic!("{rejected}"),
            };
        }
        n_compactions += 1;
        assert!(transcript.context_tokens().tokens < LIMIT, "{:?}", transcript.context_tokens());
        assert!(transcript.entries().len() < 20, "the entries before the cut are gone");
    }
    (n_compactions, format!("{:?}", transcript.for_model().unwrap().steps().collect::<Vec<_>>()))
}

#[test]
fn prompt_outlives_useless_summaries() {
    let (n_compactions, request) = many("The key is 4711.", 0, |_| "Things happened.".to_owned());
    assert!(n_compactions >= 20 && request.contains("The key is 4711."), "{request}");
}

#[test]
fn fact_beyond_budget_continues_in_summary() {
    // A good model copies the fact wherever it reads it, in prompts or in its own summaries.
    let sum_up = |source: &str| {
        let fact = if source.contains("4711") { "The key is 4711." } else { "" };
        format!("Notes. {fact}")
    };
    let (_, request) = many(&format!("The key is 4711.{}", " and so on".repeat(60)), 60, sum_up);
    assert!(!request.contains("<said>\\nThe key"), "the budget was to be too small: {request}");
    assert!(request.contains("Notes. The key is 4711."), "{request}");
}
