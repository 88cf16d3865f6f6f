mod crow_parts;
mod hostile;
mod needle;
mod pruned_memory;
mod simulation;

use expect_test::{Expect, expect};
use serde_json::{Map, Value};

use super::*;
use crate::{
    ContentPart, Failure, FailureKind, MessageId, ModelStep, Prompt, Reply, ReplyEnd, TokenUsage, ToolAccess,
    ToolArguments, ToolCall, ToolCallInfo, ToolKind, ToolResult, Transcript, TranscriptEntry,
};

/// Builds a conversation from steps `prompt TOKENS`, `reply TOKENS`, `counted TOKENS` (a reply whose request had so
/// many tokens) and `call TOKENS` (a reply with a call and its result).
fn conversation(script: &str) -> Transcript {
    let mut transcript = Transcript::new("be brief");
    for step in script.split(" | ").filter(|step| !step.is_empty()) {
        let (word, n_tokens) = step.split_once(' ').unwrap();
        say(&mut transcript, word, n_tokens.parse().unwrap());
    }
    transcript
}

fn say(transcript: &mut Transcript, word: &str, n_tokens: usize) {
    let seq = transcript.next_seq();
    let text = format!("{word}-{seq} {}", "x".repeat((4 * n_tokens).saturating_sub(10)));
    match word {
        "prompt" => prompt(transcript, &text),
        "reply" => transcript.push(TranscriptEntry::Reply(reply(seq, &text, 0))).unwrap(),
        "counted" => {
            let usage = Some(TokenUsage::new(n_tokens as u64, 1));
            transcript.push(TranscriptEntry::Reply(Reply { usage, ..reply(seq, "well", 0) })).unwrap();
        }
        "call" => {
            transcript.push(TranscriptEntry::Reply(reply(seq, "", 1))).unwrap();
            transcript.push(result(CallId::from_position(seq, 0), &text)).unwrap();
        }
        _ => panic!("{word}"),
    }
}

fn prompt(transcript: &mut Transcript, text: &str) {
    let id = transcript.next_message_id();
    transcript
        .push(TranscriptEntry::Prompt(Prompt { id, parts: vec![ContentPart::Text(text.to_owned())] }))
        .unwrap();
}

fn reply(seq: u64, text: &str, n_calls: usize) -> Reply {
    let calls = (0..n_calls).map(|index| ToolCall {
        id: CallId::from_position(seq, index),
        provider_id: "c".to_owned(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(Map::from_iter([("path".to_owned(), Value::from("a.txt"))])),
    });
    Reply {
        id: MessageId::from_seq(seq),
        thought: String::new(),
        text: text.to_owned(),
        calls: calls.collect(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    }
}

fn result(call: CallId, text: &str) -> TranscriptEntry {
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Read,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    TranscriptEntry::Result { call, info, result: ToolResult::success(text) }
}

/// A reply to the summary request: `TEXT`, `!cut`, `!cancelled`, `!overflow` or `!broken`.
fn answer(text: &str) -> Reply {
    let failed = |kind| ReplyEnd::Failed(Failure::new(kind, "it broke"));
    let ended = match text {
        "!cut" => ReplyEnd::OutputLimit,
        "!cancelled" => ReplyEnd::Cancelled,
        "!overflow" => failed(FailureKind::ContextOverflow),
        "!broken" => failed(FailureKind::Connection),
        _ => return reply(0, text, 0),
    };
    Reply { end: ended, ..reply(0, "half of", 0) }
}

/// Runs an attempt to its end with these answers.
fn attempt(
    transcript: &Transcript,
    trigger: CompactionTrigger,
    limit: u64,
    answers: &[&str],
) -> (Vec<String>, CompactionStep) {
    let mut answers = answers.iter();
    let (mut attempt, mut step) = CompactionAttempt::start(transcript, trigger, limit);
    let mut shown = Vec::new();
    loop {
        step = match step {
            CompactionStep::Summarise { source } => {
                shown.push(format!("summarise {} bytes", source.len()));
                attempt.on_summary(transcript, &answer(answers.next().unwrap()))
            }
            CompactionStep::Verify { .. } => {
                shown.push("verify".to_owned());
                attempt.on_check(transcript, &answer(answers.next().unwrap()))
            }
            end @ (CompactionStep::Commit(_) | CompactionStep::Reject(_)) => return (shown, end),
        };
    }
}

#[track_caller]
fn check(script: &str, (trigger, limit): (CompactionTrigger, u64), answers: &[&str], expected: &Expect) {
    let mut transcript = conversation(script);
    let (mut shown, end) = attempt(&transcript, trigger, limit, answers);
    match end {
        CompactionStep::Commit(by) => {
            shown.push(format!("commit {} -> {}", by.tokens_before, by.tokens_after));
            transcript.compact(by.clone()).unwrap();
            assert_eq!(transcript.context_tokens().tokens, by.tokens_after);
            shown.extend(seen(&transcript));
        }
        CompactionStep::Reject(rejected) => shown.push(format!("reject: {rejected}")),
        CompactionStep::Summarise { .. } | CompactionStep::Verify { .. } => panic!("no end"),
    }
    expected.assert_eq(&(shown.join("\n") + "\n"));
}

/// The model's view, one line per step, without filler text.
fn seen(transcript: &Transcript) -> Vec<String> {
    let first_line = |text: &str| text.split("xxx").next().unwrap().trim().to_owned();
    let steps = transcript.for_model().unwrap().steps().map(|step| match step {
        ModelStep::Prompt(prompt) if prompt.id.as_str() == "foreword" => {
            let words: Vec<&str> = prompt
                .parts
                .iter()
                .map(|part| if let ContentPart::Text(text) = part { text } else { "" })
                .collect();
            let said = words[0].match_indices("<said>").map(|(at, _)| first_line(&words[0][at..]));
            let said: Vec<String> = said.map(|line| line.replace("<said>\n", "")).collect();
            let summary = words[0].split("<summary>\n").nth(1).map(|text| text.replace("\n</summary>", ""));
            format!("  foreword: {} / {:?}", said.join(", "), summary.unwrap_or_default())
        }
        ModelStep::Prompt(prompt) => format!("  {}", first_line(&prompt.text())),
        ModelStep::Reply(reply) => format!("  {} {} calls", reply.id, reply.calls.len()),
        ModelStep::Result { call, result: outcome } => {
            let ContentPart::Text(text) = &outcome.for_model[0] else { panic!("no text") };
            format!("    {call} {}", first_line(text))
        }
    });
    steps.collect()
}

const FULL: (CompactionTrigger, u64) = (CompactionTrigger::LimitReached, 1000);

/// The user wrote little, and long ago.
const OLD: &str = "prompt 20 | reply 500 | prompt 30 | reply 500 | prompt 10 | reply 20";

#[test]
fn pruning_of_old_output_comes_first_and_may_suffice() {
    check(
        "prompt 10 | call 400 | call 300 | prompt 10 | call 100 | prompt 10 | call 250 | reply 5",
        FULL,
        &[],
        &expect![[r#"
            commit 1167 -> 515
              prompt-0
              msg-1 1 calls
                call-1-0 (this output was removed to save room; query_session reads it, or run the call again for less)
              msg-3 1 calls
                call-3-0 (this output was removed to save room; query_session reads it, or run the call again for less)
              prompt-5
              msg-6 1 calls
                call-6-0 call-6
              prompt-8
              msg-9 1 calls
                call-9-0 call-9
              msg-11 0 calls
        "#]],
    );
}

#[test]
fn old_entries_are_summarized_and_verified() {
    check(
        OLD,
        FULL,
        &["the gist", "COMPLETE."],
        &expect![[r#"
            summarise 2499 bytes
            verify
            commit 1106 -> 172
              foreword: prompt-0, prompt-2 / "the gist"
              prompt-4
              msg-5 0 calls
        "#]],
    );
    check(
        OLD,
        FULL,
        &["the gist", "the port is 7"],
        &expect![[r#"
            summarise 2499 bytes
            verify
            commit 1106 -> 177
              foreword: prompt-0, prompt-2 / "the gist\n\nAlso:\nthe port is 7"
              prompt-4
              msg-5 0 calls
        "#]],
    );
    check(
        OLD,
        FULL,
        &["the gist", "!broken"],
        &expect![[r#"
            summarise 2499 bytes
            verify
            commit 1106 -> 172
              foreword: prompt-0, prompt-2 / "the gist"
              prompt-4
              msg-5 0 calls
        "#]],
    );
    check(
        OLD,
        FULL,
        &["!overflow", "the gist", "complete"],
        &expect![[r#"
            summarise 2499 bytes
            summarise 729 bytes
            verify
            commit 1106 -> 172
              foreword: prompt-0, prompt-2 / "the gist"
              prompt-4
              msg-5 0 calls
        "#]],
    );
}

#[test]
fn attempt_without_savings_is_rejected() {
    check(
        OLD,
        FULL,
        &[&"y".repeat(5000)],
        &expect![[r#"
            summarise 2499 bytes
            reject: the result would not be smaller
        "#]],
    );
    check(
        OLD,
        FULL,
        &["  "],
        &expect![[r#"
            summarise 2499 bytes
            reject: the model did not finish its summary
        "#]],
    );
    check(
        OLD,
        FULL,
        &["!cut"],
        &expect![[r#"
            summarise 2499 bytes
            reject: the model did not finish its summary
        "#]],
    );
}

#[test]
fn attempt_without_summary_changes_nothing() {
    check(
        OLD,
        FULL,
        &["!cancelled"],
        &expect![[r#"
            summarise 2499 bytes
            reject: it was cancelled
        "#]],
    );
    check(
        OLD,
        FULL,
        &["gist", "!cancelled"],
        &expect![[r#"
            summarise 2499 bytes
            verify
            reject: it was cancelled
        "#]],
    );
    check(
        OLD,
        FULL,
        &["!broken"],
        &expect![[r#"
            summarise 2499 bytes
            reject: it broke
        "#]],
    );
    check(
        OLD,
        FULL,
        &["!overflow", "!overflow"],
        &expect![[r#"
            summarise 2499 bytes
            summarise 729 bytes
            reject: it broke
        "#]],
    );
    check(
        "prompt 2000",
        FULL,
        &[],
        &expect![[r#"
        reject: there is nothing to compact yet
    "#]],
    );
}

#[test]
fn verification_that_adds_too_much_is_ignored() {
    check(
        OLD,
        FULL,
        &["gist", &"y".repeat(5000)],
        &expect![[r#"
            summarise 2499 bytes
            verify
            commit 1106 -> 171
              foreword: prompt-0, prompt-2 / "gist"
              prompt-4
              msg-5 0 calls
        "#]],
    );
}

#[test]
fn long_turn_is_cut_before_a_reply() {
    check(
        "prompt 20 | call 300 | call 300 | call 300 | call 100 | call 50",
        FULL,
        &["the gist", "complete"],
        &expect![[r#"
            summarise 1955 bytes
            verify
            commit 1156 -> 282
              foreword: prompt-0 / "the gist"
              msg-7 1 calls
                call-7-0 call-7
              msg-9 1 calls
                call-9-0 call-9
        "#]],
    );
    check(
        "prompt 20 | call 20 | call 900",
        FULL,
        &["the gist", "complete"],
        &expect![[r#"
            reject: there is nothing to compact yet
        "#]],
    );
}

#[test]
fn overflow_keeps_less_than_full_context() {
    let overflow = (CompactionTrigger::Overflow, 1000);
    check(
        "prompt 20 | call 60 | prompt 20 | call 60 | call 60",
        overflow,
        &["the gist", "complete"],
        &expect![[r#"
            summarise 339 bytes
            verify
            commit 278 -> 138
              foreword:  / "the gist"
              msg-6 1 calls
                call-6-0 call-6
        "#]],
    );
    // One output exceeds the window.
    check(
        "prompt 20 | call 20 | call 900",
        overflow,
        &["the gist", "complete"],
        &expect![[r#"
            summarise 98 bytes
            verify
            commit 978 -> 176
              foreword: prompt-0 / "the gist"
              msg-1 1 calls
                call-1-0 call-1
              msg-3 1 calls
                call-3-0 (this output was removed to save room; query_session reads it, or run the call again for less)
        "#]],
    );
    // One prompt exceeds the window.
    check(
        "prompt 4000",
        overflow,
        &["it pasted x", "complete"],
        &expect![[r#"
            summarise 1049 bytes
            verify
            commit 4006 -> 3161
              foreword: prompt-0 / "it pasted x"
        "#]],
    );
}

#[test]
fn manual_compaction_works_far_below_limit() {
    let asked = (CompactionTrigger::Manual, 100_000);
    let some = "prompt 20 | reply 100 | prompt 20 | reply 100 | prompt 20 | reply 20";
    check(
        some,
        asked,
        &["the gist", "complete"],
        &expect![[r#"
        summarise 1029 bytes
        verify
        commit 306 -> 172
          foreword: prompt-0, prompt-2 / "the gist"
          prompt-4
          msg-5 0 calls
    "#]],
    );
    check(
        "prompt 20 | reply 10",
        asked,
        &[],
        &expect![[r#"
        reject: there is nothing to compact yet
    "#]],
    );
    check(
        "",
        asked,
        &[],
        &expect![[r#"
        reject: there is nothing to compact yet
    "#]],
    );
}

#[test]
fn newest_prompts_stay_verbatim_within_budget() {
    check(
        "prompt 30 | prompt 50 | prompt 80 | prompt 20 | reply 900 | prompt 300 | reply 5",
        FULL,
        &["the gist", "complete"],
        &expect![[r#"
            summarise 2260 bytes
            verify
            commit 1415 -> 163
              foreword: prompt-1, prompt-3 / "the gist"
              msg-6 0 calls
        "#]],
    );
}

#[test]
fn provider_count_replaces_estimate() {
    let transcript = conversation("prompt 2000 | counted 5000 | prompt 10");
    assert_eq!(transcript.context_tokens().tokens, 5001 + 14);
    check(
        "prompt 2000 | counted 5000 | prompt 10",
        FULL,
        &["gist", "complete"],
        &expect![[r#"
            summarise 1048 bytes
            verify
            commit 5015 -> 198
              foreword:  / "gist"
              msg-1 0 calls
              prompt-2
        "#]],
    );
}

#[test]
fn summary_message_contains_prompts_and_summary() {
    let mut transcript = conversation("");
    prompt(&mut transcript, "use port 7");
    let parts = vec![
        ContentPart::Text("look".to_owned()),
        ContentPart::Image { mime: "image/png".to_owned(), data: "AA==".to_owned() },
        ContentPart::Resource { uri: "file:///a.rs".to_owned(), text: "a".repeat(600), mime: None },
    ];
    transcript.push(TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(1), parts })).unwrap();
    say(&mut transcript, "reply", 10);
    let by = Compaction {
        at_seq: 3,
        keep_from: 3,
        verbatim_prompts: vec![0, 1],
        summary: Some("They chose a port.".to_owned()),
        pruned: Vec::new(),
        tokens_before: 10,
        tokens_after: 5,
        began_ms: 0,
    };
    transcript.compact(by).unwrap();
    let steps: Vec<ModelStep<'_>> = transcript.for_model().unwrap().steps().collect();
    let [ModelStep::Prompt(foreword)] = steps[..] else { panic!("{steps:?}") };
    let [ContentPart::Text(text), ContentPart::Image { .. }] = &foreword.parts[..] else {
        panic!("{foreword:?}")
    };
    expect![[r#"
        This conversation was compacted: what came before the messages below is left out. The tool query_session reads it, query_memory finds words in it.

        What the person said in it, word for word, oldest first:

        <said>
        use port 7
        </said>

        <said>
        look
        [an image]
        [attached: file:///a.rs]
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        [… 90 bytes omitted …]
        aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        </said>

        What happened in it, as you noted it down:

        <summary>
        They chose a port.
        </summary>"#]].assert_eq(text);
}

#[test]
fn mismatching_compaction_is_rejected() {
    let by = |at, keep_from, said: &[u64]| Compaction {
        at_seq: at,
        keep_from,
        verbatim_prompts: said.to_vec(),
        summary: None,
        pruned: Vec::new(),
        tokens_before: 0,
        tokens_after: 0,
        began_ms: 0,
    };
    let refusal = |by: Compaction| {
        let mut transcript = conversation("prompt 5 | call 5 | prompt 5 | reply 5");
        transcript.compact(by).unwrap_err().reason
    };
    expect!["it refers to missing entries"].assert_eq(refusal(by(6, 3, &[])));
    expect!["it refers to missing entries"].assert_eq(refusal(by(3, 5, &[])));
    expect!["it separates a call from its result"].assert_eq(refusal(by(5, 2, &[])));
    expect!["it refers to an entry that is not a prompt"].assert_eq(refusal(by(5, 3, &[1])));
    expect!["it refers to an entry that is not a prompt"].assert_eq(refusal(by(5, 3, &[3])));
    let mut transcript = conversation("prompt 5 | reply 5 | prompt 5 | reply 5");
    transcript.compact(by(4, 2, &[])).unwrap();
    expect!["it keeps entries that were removed"]
        .assert_eq(transcript.compact(by(4, 0, &[])).unwrap_err().reason);
    expect!["it refers to an entry that is not a prompt"]
        .assert_eq(transcript.compact(by(4, 4, &[0])).unwrap_err().reason);
}

#[test]
fn clear_removes_everything_from_view() {
    let mut transcript = conversation("prompt 500 | reply 500");
    transcript.compact(Compaction::for_clear(&transcript).unwrap()).unwrap();
    assert_eq!((transcript.next_seq(), seen(&transcript)), (2, Vec::new()));
    assert_eq!(Compaction::for_clear(&transcript), None);
    say(&mut transcript, "prompt", 5);
    expect!["  prompt-2"].assert_eq(&seen(&transcript).join("\n"));
}

#[test]
fn context_limit_leaves_room_for_reply() {
    let limits = crate::TurnLimits { requests_max: 1, compact_tokens_max: 180_000 };
    assert_eq!(context_limit(limits, 200_000, None), 175_000);
    assert_eq!(context_limit(limits, 200_000, Some(8_000)), 180_000);
    assert_eq!(context_limit(limits, 128_000, Some(38_192)), 89_808);
    assert_eq!(context_limit(limits, 8_000, Some(100_000)), 4_000);
    assert_eq!(context_limit(limits, 0, Some(8_000)), 180_000);
}
