//! Calls that a model writes as text are the same however the text is cut, and only what was meant as a call is one.
//!
//! The first line of the input says how: its first byte says where calls are taken, the others are the lengths of the
//! pieces, again and again.
#![no_main]

use crow_core::leaked::{TextToolCallOutcome, TextToolCallParser, TextToolCallMode};
use crow_core::repair::check_against_schema;
use crow_core::{ReplyEnd, ModelEvent, Reply, ReplyBuilder, ToolSpec, Transcript};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fn tools() -> Vec<ToolSpec> {
    let text = json!({"type": "string"});
    let read = json!({"properties": {"file_path": text, "limit": {"type": "integer"}}, "required": ["file_path"]});
    let terminal = json!({"properties": {"command": text}, "required": ["command"]});
    [("read", read), ("terminal", terminal)]
        .map(|(name, parameters)| ToolSpec { name: name.to_owned(), description: String::new(), parameters })
        .to_vec()
}

/// What came of a reply that was said in pieces.
fn heard(tools: &[ToolSpec], takes: TextToolCallMode, pieces: &[&str]) -> (TextToolCallOutcome, Reply) {
    let mut sieve = TextToolCallParser::new(tools, takes);
    let mut reply = ReplyBuilder::new(1);
    let mut say = |event: ModelEvent<'_>| {
        reply.on_event(event);
    };
    for piece in pieces {
        sieve.on_event(ModelEvent::Text(piece), &mut say);
    }
    let transcript = Transcript::new("");
    let Ok(shown) = transcript.for_model() else { panic!("nothing is open") };
    let leaked = sieve.finish(&ReplyEnd::Normally, shown, &mut say);
    (leaked, reply.into_reply(ReplyEnd::Normally))
}

fn pieces<'t>(mut text: &'t str, lengths: &[u8]) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if text.is_empty() {
            break;
        }
        let length = text.ceil_char_boundary(usize::from(*length % 16 + 1).min(text.len()));
        let (piece, rest) = text.split_at(length);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (head, text) = (&data[..end], &data[end + 1..]);
    let (Some((takes, lengths)), Ok(text)) = (head.split_first(), std::str::from_utf8(text)) else { return };
    let takes = [TextToolCallMode::Nothing, TextToolCallMode::WholeReplies, TextToolCallMode::Endings][usize::from(*takes) % 3];
    let tools = tools();
    let (leaked, reply) = heard(&tools, takes, &[text]);
    if !lengths.is_empty() {
        assert_eq!(heard(&tools, takes, &pieces(text, lengths)), (leaked.clone(), reply.clone()));
    }
    let TextToolCallOutcome::Taken(names) = &leaked else {
        assert!(reply.calls.is_empty());
        assert!(reply.text.len() + reply.thought.len() <= text.len());
        assert!(!reply.thought.is_empty() || text.contains("<think>") || reply.text == text);
        return;
    };
    assert_ne!(takes, TextToolCallMode::Nothing);
    assert_eq!(names.len(), reply.calls.len());
    for (name, call) in names.iter().zip(&reply.calls) {
        assert_eq!(&call.name, name);
        assert_eq!(call.arguments.doubt(), None);
        let Some(tool) = tools.iter().find(|tool| tool.name == *name) else { panic!("{name} is no tool") };
        let fits = check_against_schema(&tool.parameters, &call.arguments.to_object());
        assert!(takes == TextToolCallMode::Endings || fits.is_ok(), "{call:?}");
    }
    assert!(takes == TextToolCallMode::Endings || reply.text.trim().is_empty(), "{reply:?}");
});
