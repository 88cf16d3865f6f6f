use expect_test::{Expect, expect};
use serde_json::Map;

use super::*;
use crate::{ContentPart, CrowPart, ReplyEnd, ToolAccess, ToolArguments, ToolCallInfo, ToolKind};

/// Pushes entries `prompt TEXT`, `reply N_CALLS`, `empty` or `result SEQ INDEX`, and renders the outcome.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let mut transcript = Transcript::new("be brief");
    let mut shown = String::new();
    for step in script.split(" | ") {
        let result = transcript.push(entry(step, transcript.next_seq()));
        if let Err(refusal) = result {
            shown.push_str(&format!("{step}: {refusal}\n"));
        }
    }
    shown.extend(transcript.entries().iter().map(|entry| match entry {
        TranscriptEntry::Prompt(prompt) => format!("{} {}\n", prompt.id, prompt.text()),
        TranscriptEntry::Reply(reply) => format!("{} {} calls\n", reply.id, reply.calls.len()),
        TranscriptEntry::Result { call, .. } => format!("  {call}\n"),
    }));
    shown.push_str(&match transcript.for_model() {
        Ok(view) => format!("{}: {} entries\n", view.system(), view.steps().count()),
        Err(refusal) => format!("{refusal}\n"),
    });
    expected.assert_eq(&shown);
}

fn entry(step: &str, seq: u64) -> TranscriptEntry {
    let id = MessageId::from_seq(seq);
    let words: Vec<&str> = step.split(' ').collect();
    match words[..] {
        ["prompt", text] => {
            TranscriptEntry::Prompt(Prompt { id, parts: vec![ContentPart::Text(text.to_owned())] })
        }
        ["context", text] => {
            let part = ContentPart::FromCrow { kind: CrowPart::Environment, text: text.to_owned() };
            TranscriptEntry::Prompt(Prompt { id, parts: vec![part] })
        }
        ["empty"] => TranscriptEntry::Prompt(Prompt { id, parts: Vec::new() }),
        ["reply", n_calls] => TranscriptEntry::Reply(reply(id, seq, n_calls.parse().unwrap())),
        ["silence"] => TranscriptEntry::Reply(Reply { text: String::new(), ..reply(id, seq, 0) }),
        ["result", seq, index] => TranscriptEntry::Result {
            call: CallId::from_position(seq.parse().unwrap(), index.parse().unwrap()),
            info: ToolCallInfo {
                title: String::new(),
                kind: ToolKind::Other,
                locations: Vec::new(),
                access: ToolAccess::Nothing,
            },
            result: ToolResult::success("ok"),
        },
        _ => panic!("{step}"),
    }
}

fn reply(id: MessageId, seq: u64, n_calls: usize) -> Reply {
    let calls = (0..n_calls).map(|index| ToolCall {
        id: CallId::from_position(seq, index),
        provider_id: "call_0".to_owned(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(Map::new()),
    });
    Reply {
        id,
        thought: String::new(),
        text: "well".to_owned(),
        calls: calls.collect(),
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    }
}

#[test]
fn entries_are_accepted_in_valid_order() {
    check(
        "prompt hi | reply 1 | result 1 0 | reply 0 | prompt on",
        &expect![[r#"
        msg-0 hi
        msg-1 1 calls
          call-1-0
        msg-3 0 calls
        msg-4 on
        be brief: 5 entries
    "#]],
    );
}

#[test]
fn results_are_kept_in_order_of_calls() {
    check(
        "prompt hi | reply 4 | result 1 2 | result 1 0 | result 1 3 | result 1 1",
        &expect![[r#"
        msg-0 hi
        msg-1 4 calls
          call-1-0
          call-1-1
          call-1-2
          call-1-3
        be brief: 6 entries
    "#]],
    );
    check(
        "prompt hi | reply 1 | result 1 0 | reply 2 | result 3 1 | result 3 0",
        &expect![[r#"
        msg-0 hi
        msg-1 1 calls
          call-1-0
        msg-3 2 calls
          call-3-0
          call-3-1
        be brief: 6 entries
    "#]],
    );
}

#[test]
fn open_call_blocks_next_entry() {
    check(
        "prompt hi | reply 2 | result 1 1 | prompt more | reply 0",
        &expect![[r#"
            prompt more: calls without a result are open
            reply 0: calls without a result are open
            msg-0 hi
            msg-1 2 calls
              call-1-1
            1 tool calls have no result yet
        "#]],
    );
}

#[test]
fn invalid_entries_are_rejected() {
    check(
        "empty | silence | result 0 0",
        &expect![[r#"
        empty: the message is empty
        silence: the message is empty
        result 0 0: call call-0-0 is not open
        be brief: 0 entries
    "#]],
    );
    check(
        "prompt hi | reply 1 | result 1 0 | result 1 0 | result 1 7",
        &expect![[r#"
        result 1 0: call call-1-0 is not open
        result 1 7: call call-1-7 is not open
        msg-0 hi
        msg-1 1 calls
          call-1-0
        be brief: 3 entries
    "#]],
    );
}

fn compaction(at_seq: u64, keep_from: u64) -> Compaction {
    Compaction {
        at_seq,
        keep_from,
        verbatim_prompts: Vec::new(),
        summary: Some("so far".to_owned()),
        pruned: Vec::new(),
        tokens_before: 0,
        tokens_after: 0,
        began_ms: 0,
    }
}

#[test]
fn prompts_with_parts_by_crow_are_found_after_a_compaction() {
    let script =
        "context a | reply 0 | prompt b | reply 1 | result 3 0 | context c | reply 0 | context d | reply 0";
    for keep_from in [0, 1, 2, 5, 6, 7] {
        let mut transcript = Transcript::new("be brief");
        for step in script.split(" | ") {
            transcript.push(entry(step, transcript.next_seq())).unwrap();
        }
        let at_seq = transcript.next_seq();
        transcript.compact(compaction(at_seq, keep_from)).unwrap();
        transcript.push(entry("context e", at_seq)).unwrap();
        let has_context = |prompt: &&Prompt| prompt.parts.iter().any(|part| part.crow_part().is_some());
        let expected: Vec<&Prompt> = transcript.prompts().filter(has_context).collect();
        let found = transcript.context_prompts().filter(has_context);
        assert_eq!(found.collect::<Vec<_>>(), expected, "from entry {keep_from} on");
    }
}
