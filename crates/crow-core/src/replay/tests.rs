use expect_test::{Expect, expect};

use super::*;
use crate::{MessageId, PlanEntry, Prompt, ReplyBuilder, ReplyEnd, ToolAccess, ToolArguments, ToolKind};

fn reply(seq: u64, text: &str, n_calls: usize) -> Reply {
    let mut reply = ReplyBuilder::new(seq).into_reply(ReplyEnd::Complete);
    text.clone_into(&mut reply.text);
    reply.calls = (0..n_calls)
        .map(|index| ToolCall {
            id: CallId::from_position(seq, index),
            provider_id: index.to_string(),
            name: format!("tool{index}"),
            arguments: ToolArguments::Valid(serde_json::Map::new()),
        })
        .collect();
    reply
}

fn call_info(call: &ToolCall) -> ToolCallInfo {
    let (kind, access) = (ToolKind::Other, ToolAccess::Nothing);
    ToolCallInfo { title: call.name.clone(), kind, locations: Vec::new(), access }
}

/// Reads a transcript, one entry for each word: `prompt`, `reply` with its calls, such as `reply2`, or `result` of a call
/// of the latest reply, with a plan, such as `result0:plan`.
fn read_transcript(words: &str) -> Transcript {
    let mut transcript = Transcript::new("system");
    let mut latest = reply(0, "", 0);
    for word in words.split(' ') {
        let seq = transcript.next_seq();
        let entry = if word == "prompt" {
            let parts = vec![ContentPart::Text("go".to_owned())];
            TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(seq), parts })
        } else if let Some(n_calls) = word.strip_prefix("reply") {
            latest = reply(seq, "words", n_calls.parse().unwrap());
            TranscriptEntry::Reply(latest.clone())
        } else {
            let (index, plan) =
                word.strip_prefix("result").unwrap().split_once(':').unwrap_or((&word[6..], ""));
            let call = &latest.calls[index.parse::<usize>().unwrap()];
            let plan = (plan == "plan").then(Vec::<PlanEntry>::new);
            let result = crate::ToolResult { plan, ..crate::ToolResult::success("done") };
            TranscriptEntry::Result { call: call.id, info: call_info(call), result }
        };
        transcript.push(entry).unwrap();
    }
    transcript
}

/// Renders the updates of a transcript, one line for each entry and one for what follows.
#[track_caller]
fn check(words: &str, unfinished: Option<&str>, expected: &Expect) {
    let transcript = read_transcript(words);
    let compaction =
        Compaction { at_seq: 1, ..Compaction::for_clear(&read_transcript("prompt reply0")).unwrap() };
    let compactions = [compaction];
    let mut replay = TranscriptReplay::new(&transcript, UsageReplay::new(1000, &compactions, &[]));
    let mut lines = String::new();
    while let Some(updates) = replay.next_entry() {
        lines += &show(&updates);
    }
    let unfinished = unfinished.map(|text| reply(transcript.next_seq(), text, 0));
    lines += &show(&replay.last_updates(unfinished, SessionOwner::ThisProcess, call_info));
    lines += if replay.has_counted_usage() { "counted\n" } else { "to be estimated\n" };
    expected.assert_eq(&lines);
}

fn show(updates: &[SessionUpdate]) -> String {
    let names = updates.iter().map(|update| {
        if let SessionUpdate::Text { text, .. } = update {
            return format!("text {text:?}");
        }
        if let SessionUpdate::Call { name, status, .. } = update {
            return format!("{name} {status:?}");
        }
        format!("{update:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
    });
    format!("- {}\n", names.collect::<Vec<_>>().join(", "))
}

#[test]
fn replay_shows_a_plan_after_all_results_of_its_reply() {
    check(
        "prompt reply2 result0:plan result1 prompt reply0",
        None,
        &expect![[r#"
        - Prompt
        - Compaction, Compaction, Usage, text "words"
        - tool0 Completed
        - tool1 Completed
        - Plan, Prompt
        - text "words"
        - 
        to be estimated
    "#]],
    );
}

#[test]
fn replay_ends_with_running_calls_in_their_order_and_an_unfinished_reply() {
    check(
        "prompt reply3 result1:plan result0",
        None,
        &expect![[r#"
        - Prompt
        - Compaction, Compaction, Usage, text "words"
        - 
        - 
        - tool0 Completed, tool1 Completed, Plan, tool2 InProgress
        to be estimated
    "#]],
    );
    check(
        "prompt reply0 prompt",
        Some("half"),
        &expect![[r#"
        - Prompt
        - Compaction, Compaction, Usage, text "words"
        - Prompt
        - text "half"
        to be estimated
    "#]],
    );
}
