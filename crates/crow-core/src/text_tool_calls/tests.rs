mod grammar;
mod properties;
mod reply_endings;
mod text_tools;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::{
    CallId, ContentPart, MessageId, Prompt, Reply, ReplyBuilder, ReplyDelta, ToolAccess, ToolArguments,
    ToolCall, ToolCallInfo, ToolKind, ToolResult, Transcript, TranscriptEntry,
};

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: format!("Does {name}."), parameters }
}

/// The available tools.
fn tools() -> Vec<ToolSpec> {
    let text = json!({"type": "string"});
    vec![
        tool(
            "read",
            json!({
                "type": "object",
                "properties": {"file_path": text, "limit": {"type": "integer"}, "deep": {"type": ["boolean", "null"]}},
                "required": ["file_path"],
            }),
        ),
        tool("terminal", json!({"properties": {"command": text}, "required": ["command"]})),
        tool("tasks", json!({"properties": {}})),
    ]
}

/// A conversation with a prompt and one result with a text.
fn conversation(result: &str) -> Transcript {
    let mut transcript = Transcript::new("be good");
    let call = ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "x".to_owned(),
        name: "read".to_owned(),
        arguments: ToolArguments::Valid(json!({"file_path": "a \"b\""}).as_object().unwrap().clone()),
    };
    let info = ToolCallInfo {
        title: String::new(),
        kind: ToolKind::Read,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let outcome = ToolResult::success(result);
    for entry in [
        TranscriptEntry::Prompt(Prompt {
            id: MessageId::from_seq(0),
            parts: vec![ContentPart::Text("what is in it?".to_owned())],
        }),
        TranscriptEntry::Reply(Reply {
            text: "I look.\n".to_owned(),
            calls: vec![call],
            ..ReplyBuilder::new(1).into_reply(ReplyEnd::Complete)
        }),
        TranscriptEntry::Result { call: CallId::from_position(1, 0), info, result: outcome },
    ] {
        transcript.push(entry).unwrap();
    }
    transcript
}

/// The result of a reply: everything shown, in order, and the rest at its end.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    shown: String,
    end: String,
    text: String,
}

/// Streams a reply in pieces; records what was shown after each.
fn heard(
    takes: TextToolCallMode,
    pieces: &[ModelEvent<'_>],
    ended: ReplyEnd,
    conversation: &Transcript,
) -> Heard {
    let tools = tools();
    let mut sieve = TextToolCallParser::new(&tools, takes);
    let mut reply = ReplyBuilder::new(7);
    let mut shown = String::new();
    for piece in pieces {
        sieve.on_event(*piece, &mut |event| shown.push_str(&deltas(reply.on_event(event))));
    }
    shown.push_str("| ");
    let leaked = sieve.finish(&ended, conversation.for_model().unwrap(), &mut |event| {
        shown.push_str(&deltas(reply.on_event(event)));
    });
    let reply = reply.into_reply(ended);
    let calls = reply
        .calls
        .iter()
        .map(|call| format!("\n{} {}", call.name, Value::Object(call.arguments.to_object())));
    let end = format!("{leaked:?}{}", calls.collect::<String>());
    Heard { shown, end, text: format!("{:?} ({:?})", reply.text, reply.thought) }
}

fn deltas(delta: Option<ReplyDelta<'_>>) -> String {
    match delta {
        None => String::new(),
        Some(ReplyDelta::Text(text)) => format!("{text:?} "),
        Some(ReplyDelta::Thought(text)) => format!("thought {text:?} "),
    }
}

fn pieces(text: &str, len: usize) -> Vec<ModelEvent<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(len.min(rest.len())));
        pieces.push(ModelEvent::Text(piece));
        rest = after;
    }
    pieces
}

/// Streams a text in pieces of every length: the result must be the same.
#[track_caller]
fn check_in(takes: TextToolCallMode, text: &str, expected: &Expect) {
    let conversation = conversation("nothing");
    let whole = heard(takes, &pieces(text, usize::MAX), ReplyEnd::Complete, &conversation);
    for len in 1..=text.len().min(40) {
        let cut = heard(takes, &pieces(text, len), ReplyEnd::Complete, &conversation);
        assert_eq!((&cut.end, &cut.text), (&whole.end, &whole.text), "in pieces of {len}");
    }
    expected.assert_eq(&format!("{}\n{}", whole.text, whole.end));
}

/// The same for replies that consist of calls.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    check_in(TextToolCallMode::WholeReplies, text, expected);
}
