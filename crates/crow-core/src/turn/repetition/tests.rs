use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::{
    CallId, ContentPart, FileLocation, MessageId, Prompt, Reply, ReplyEnd, ToolAccess, ToolCall,
    ToolCallInfo, ToolKind,
};

/// Rounds and prompts of a conversation: `a=1` is a call with its result, `a=1,b=2` a round of two, `!` a prompt.
/// Checks after which steps the user is asked.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let mut entries = Vec::new();
    let mut asked = Vec::new();
    for (place, step) in script.split_whitespace().enumerate() {
        match step {
            "!" => entries.push(prompt()),
            round => entries.extend(entries_of(place, round)),
        }
        if let Some(RepeatedRound { title, n_calls, n_times }) = find_repeated_round(&entries) {
            asked.push(format!("after {}: {title} ({n_calls} calls) {n_times} times", place + 1));
        }
    }
    expected.assert_eq(&asked.join("\n"));
}

fn prompt() -> TranscriptEntry {
    TranscriptEntry::Prompt(Prompt {
        id: MessageId::from_seq(0),
        parts: vec![ContentPart::Text("go on".to_owned())],
    })
}

fn entries_of(place: usize, round: &str) -> Vec<TranscriptEntry> {
    let seq = place as u64;
    let steps: Vec<(&str, &str)> = round.split(',').filter_map(|step| step.split_once('=')).collect();
    let call = |index: usize, path: &str| ToolCall {
        id: CallId::from_position(seq, index),
        provider_id: format!("call_{place}_{index}"),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid([("file_path".to_owned(), json!(path))].into_iter().collect()),
    };
    let calls = steps.iter().enumerate().map(|(index, (path, _))| call(index, path));
    let reply = Reply {
        id: MessageId::from_seq(seq),
        thought: String::new(),
        text: format!("Try {place}."),
        calls: calls.collect(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    };
    // Results arrive in any order.
    let results = steps.iter().enumerate().rev().map(|(index, (path, text))| TranscriptEntry::Result {
        call: CallId::from_position(seq, index),
        info: ToolCallInfo {
            title: format!("Read {path}"),
            kind: ToolKind::Read,
            locations: vec![FileLocation { path: (*path).into(), line: Some(place as u32) }],
            access: ToolAccess::Nothing,
        },
        result: ToolResult::success(*text),
    });
    std::iter::once(TranscriptEntry::Reply(reply)).chain(results).collect()
}

#[test]
fn fifth_and_tenth_repetitions_ask() {
    check("a=1 a=1 a=1 a=1", &expect![""]);
    check("b=1 a=1 a=1 a=1 a=1 a=1", &expect![[r#"after 6: Read a (1 calls) 5 times"#]]);
    check(
        "a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1",
        &expect![[r#"
            after 5: Read a (1 calls) 5 times
            after 10: Read a (1 calls) 10 times"#]],
    );
    check("a=1,b=2 a=1,b=2 a=1,b=2 a=1,b=2 a=1,b=2", &expect![[r#"after 5: Read a (2 calls) 5 times"#]]);
}

#[test]
fn changing_rounds_do_not_ask() {
    check("a=1 a=1 a=1 a=1 a=2 a=1", &expect![""]);
    check("a=1 a=1 a=1 a=1 b=1 a=1", &expect![""]);
    check("a=1,b=2 a=1,b=2 a=1,b=2 a=1,b=2 b=2,a=1", &expect![""]);
    check("a=1 a=1 a=1 a=1 a=1,a=1", &expect![""]);
    check("a=1 a=1 a=1 a=1 ! a=1", &expect![""]);
    check("!", &expect![""]);
}
