use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::{CrowPart, MessageId, Prompt, Reply, ReplyEnd, ToolArguments, ToolKind};

/// Calls of a conversation with their results: `a=1` reads `a`, `a=1,b=2` are two calls of one reply, `w` and `v`
/// write and `r` runs something, `!` is a prompt of the user and `?` one of Crow. Shows what the model gets of each call.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let mut entries = Vec::new();
    let mut shown = Vec::new();
    for (place, step) in script.split_whitespace().enumerate() {
        if matches!(step, "!" | "?") {
            entries.push(prompt(step == "!"));
            continue;
        }
        let calls: Vec<(ToolCall, ToolCallInfo, ToolResult)> =
            step.split(',').enumerate().map(|(index, step)| ended_call(place, index, step)).collect();
        entries.push(TranscriptEntry::Reply(reply(
            place,
            calls.iter().map(|(call, ..)| call.clone()).collect(),
        )));
        for (call, info, mut result) in calls {
            let ended = AnsweredCall { call: &call, info: &info, result: &result };
            let n_equal = count_equal_calls(&entries, ended);
            note_equal_calls(&mut result, n_equal);
            let texts = result.for_model.iter().map(|part| match part {
                ContentPart::Text(text) => text.as_str(),
                ContentPart::Image { .. }
                | ContentPart::Link { .. }
                | ContentPart::Resource { .. }
                | ContentPart::FromCrow { .. } => panic!("{part:?}"),
            });
            let starts = texts.map(|text| text.split_inclusive(['.', ':']).next().unwrap_or_default());
            shown.push(format!("{n_equal}: {}", starts.collect::<Vec<_>>().join(" ")));
            entries.push(TranscriptEntry::Result { call: call.id, info, result });
        }
    }
    expected.assert_eq(&shown.join("\n"));
}

fn prompt(is_user: bool) -> TranscriptEntry {
    let text = "go on".to_owned();
    let part = match is_user {
        true => ContentPart::Text(text),
        false => ContentPart::FromCrow { kind: CrowPart::InterruptedReply, text },
    };
    TranscriptEntry::Prompt(Prompt { id: MessageId::from_seq(0), parts: vec![part] })
}

fn reply(place: usize, calls: Vec<ToolCall>) -> Reply {
    Reply {
        id: MessageId::from_seq(place as u64),
        thought: String::new(),
        text: String::new(),
        calls,
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    }
}

fn ended_call(place: usize, index: usize, step: &str) -> (ToolCall, ToolCallInfo, ToolResult) {
    let (path, text) = step.split_once('=').unwrap_or((step, "done"));
    let access = match path {
        "v" | "w" => ToolAccess::Writes(vec![]),
        "r" => ToolAccess::Runs("make".to_owned()),
        "n" => ToolAccess::Nothing,
        path => ToolAccess::Reads(vec![path.to_owned()]),
    };
    let call = ToolCall {
        id: CallId::from_position(place as u64, index),
        provider_id: String::new(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid([("file_path".to_owned(), json!(path))].into_iter().collect()),
    };
    let info = ToolCallInfo { title: String::new(), kind: ToolKind::Read, locations: Vec::new(), access };
    let mut result = ToolResult::success(text);
    if text == "changed" {
        result.for_client =
            vec![ToolCallContent::Diff { path: path.to_owned(), old: None, new: String::new() }];
    }
    (call, info, result)
}

#[test]
fn equal_calls_are_told_more_and_more_firmly() {
    check(
        "a=1 a=1 a=1 a=1 a=1",
        &expect![[r#"
        1: 1
        2: 1 (This is the same call with the same result as before, and nothing has changed since.
        3: (Not shown again:
        4: (Not shown again:
        5: (Not shown again:"#]],
    );
    check(
        "a=1 b=2 a=1 b=2 a=1",
        &expect![[r#"
        1: 1
        1: 2
        2: 1 (This is the same call with the same result as before, and nothing has changed since.
        2: 2 (This is the same call with the same result as before, and nothing has changed since.
        3: (Not shown again:"#]],
    );
    check(
        "a=1,a=1 a=1",
        &expect![[r#"
            1: 1
            1: 1
            2: 1 (This is the same call with the same result as before, and nothing has changed since."#]],
    );
    check(
        "a=1 ? a=1",
        &expect![[r#"
        1: 1
        2: 1 (This is the same call with the same result as before, and nothing has changed since."#]],
    );
}

#[test]
fn changes_and_prompts_start_anew() {
    check(
        "a=1 w a=1 r a=1 ! a=1 n a=1",
        &expect![[r#"
        1: 1
        1: done
        1: 1
        1: done
        1: 1
        1: 1
        1: done
        2: 1 (This is the same call with the same result as before, and nothing has changed since."#]],
    );
    // Another process changed the file.
    check(
        "a=1 a=2 a=2",
        &expect![[r#"
            1: 1
            1: 2
            2: 2 (This is the same call with the same result as before, and nothing has changed since."#]],
    );
    check(
        "r r n n",
        &expect![[r#"
            1: done
            1: done
            1: done
            1: done"#]],
    );
}

#[test]
fn writing_the_same_again_changes_nothing() {
    check(
        "w=changed w=same w=same w=same w=same w=same",
        &expect![[r#"
        1: changed
        1: same
        2: same (This is the same call with the same result as before, and nothing has changed since.
        3: (Not shown again:
        4: (Not shown again:
        5: (Not shown again:"#]],
    );
    check(
        "w=missing w=missing w=missing a=1 a=1",
        &expect![[r#"
        1: missing
        2: missing (This is the same call with the same result as before, and nothing has changed since.
        3: (Not shown again:
        1: 1
        2: 1 (This is the same call with the same result as before, and nothing has changed since."#]],
    );
    // Each of these inserts a line once more.
    check(
        "w=changed w=changed w=changed",
        &expect![[r#"
        1: changed
        1: changed
        1: changed"#]],
    );
    check(
        "w=changed w=same v=changed w=same",
        &expect![[r#"
        1: changed
        1: same
        1: changed
        1: same"#]],
    );
}
