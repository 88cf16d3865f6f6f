use expect_test::{Expect, expect};

use super::*;
use crate::{
    MessageId, PlanEntry, Prompt, ReplyBuilder, ReplyDelta, ReplyEnd, ToolAccess, ToolArguments, ToolKind,
};

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

/// Replays a transcript with the unfinished reply `thought/text`, of which the client had `seen`, and renders what
/// it gets of the updates that waited.
#[track_caller]
fn check_held(
    words: &str,
    unfinished: Option<&str>,
    seen: &str,
    held: Vec<SessionUpdate>,
    expected: &Expect,
) {
    let transcript = read_transcript(words);
    let (seq, split) = (transcript.next_seq(), |text: &str| {
        let (thought, text) = text.split_once('/').unwrap();
        (thought.to_owned(), text.to_owned())
    });
    let unfinished = unfinished.map(|unfinished| {
        let (thought, text) = split(unfinished);
        Reply { thought, ..reply(seq, &text, 0) }
    });
    let (thought, text) = split(seen);
    let mut position = StreamPosition::default();
    position.count_delta(&MessageId::from_seq(seq), ReplyDelta::Thought(&thought));
    position.count_delta(&MessageId::from_seq(seq), ReplyDelta::Text(&text));
    let mut filter = HeldUpdateFilter::new(&transcript, unfinished.as_ref(), &position);
    let unseen: Vec<SessionUpdate> =
        held.into_iter().filter_map(|update| filter.unseen_part(update)).collect();
    expected.assert_eq(&show(&unseen));
}

fn text_of(seq: u64, text: &str) -> SessionUpdate {
    SessionUpdate::Text { message: MessageId::from_seq(seq), text: text.to_owned() }
}

#[test]
fn held_text_continues_the_replayed_part() {
    let held = || vec![text_of(1, "three "), text_of(1, "four "), text_of(1, "fünf")];
    check_held(
        "prompt",
        Some("/one two three fo"),
        "/one two ",
        held(),
        &expect![[r#"
        - text "ur ", text "fünf"
    "#]],
    );
    // The draft has all of it.
    check_held(
        "prompt",
        Some("/one two three four fünf"),
        "/one two ",
        held(),
        &expect![[r#"
        - 
    "#]],
    );
    // The draft could not be written.
    check_held(
        "prompt",
        Some("/one"),
        "/one two ",
        held(),
        &expect![[r#"
        - text "three ", text "four ", text "fünf"
    "#]],
    );
    check_held(
        "prompt",
        None,
        "/one two ",
        held(),
        &expect![[r#"
        - text "three ", text "four ", text "fünf"
    "#]],
    );
    // All of the reply was sent after the replay began.
    check_held(
        "prompt reply0 prompt",
        Some("/two"),
        "/",
        vec![text_of(1, "one"), text_of(3, "two three")],
        &expect![[r#"
        - text " three"
    "#]],
    );
    let thought =
        |text: &str| SessionUpdate::Thought { message: MessageId::from_seq(1), text: text.to_owned() };
    check_held(
        "prompt",
        Some("abc/x"),
        "a/",
        vec![thought("bcd"), text_of(1, "xy")],
        &expect![[r#"
        - Thought, text "y"
    "#]],
    );
}

#[test]
fn held_updates_of_replayed_entries_are_dropped() {
    let call = |seq, index| SessionUpdate::Call {
        call: CallId::from_position(seq, index),
        name: format!("call {seq} {index}"),
        info: call_info(&reply(seq, "", 1).calls[0]),
        arguments: serde_json::Map::new(),
        status: ToolCallStatus::InProgress,
        content: Vec::new(),
        streaming: OutputStreaming::Off,
    };
    let ended = SessionUpdate::CallChanged {
        call: CallId::from_position(1, 0),
        status: ToolCallStatus::Completed,
        content: None,
    };
    let note = SessionUpdate::Text { message: MessageId::new("note-1"), text: "Stopped.".to_owned() };
    let prompt =
        SessionUpdate::Prompt { message: MessageId::from_seq(0), part: ContentPart::Text("go".to_owned()) };
    check_held(
        "prompt reply1",
        None,
        "/",
        vec![prompt, text_of(1, "words"), call(1, 0), call(1, 100_000), ended, note],
        &expect![[r#"
            - call 1 100000 InProgress, CallChanged, text "Stopped."
        "#]],
    );
}
