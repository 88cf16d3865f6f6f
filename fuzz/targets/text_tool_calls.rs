//! Text tool calls: the result is the same for any chunking, and only intended calls are recognized.
//!
//! The first byte of the first line selects the mode, the others are the lengths of the pieces, repeatedly.
#![no_main]

use crow_core::text_tool_calls::{TextToolCallOutcome, TextToolCallParser, TextToolCallMode};
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

/// Parses a reply in pieces.
fn parse(tools: &[ToolSpec], mode: TextToolCallMode, pieces: &[&str]) -> (TextToolCallOutcome, Reply) {
    let mut parser = TextToolCallParser::new(tools, mode);
    let mut reply = ReplyBuilder::new(1);
    let mut emit = |event: ModelEvent<'_>| {
        reply.on_event(event);
    };
    for piece in pieces {
        parser.on_event(ModelEvent::Text(piece), &mut emit);
    }
    let transcript = Transcript::new("");
    let Ok(transcript) = transcript.for_model() else { panic!("no call is open") };
    let outcome = parser.finish(&ReplyEnd::Complete, transcript, &mut emit);
    (outcome, reply.into_reply(ReplyEnd::Complete))
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
    let (Some((mode, lengths)), Ok(text)) = (head.split_first(), std::str::from_utf8(text)) else { return };
    let mode = [TextToolCallMode::Disabled, TextToolCallMode::WholeReplies, TextToolCallMode::ReplyEndings]
        [usize::from(*mode) % 3];
    let tools = tools();
    let (outcome, reply) = parse(&tools, mode, &[text]);
    if !lengths.is_empty() {
        assert_eq!(parse(&tools, mode, &pieces(text, lengths)), (outcome.clone(), reply.clone()));
    }
    let TextToolCallOutcome::Calls(names) = &outcome else {
        assert!(reply.calls.is_empty());
        assert!(reply.text.len() + reply.thought.len() <= text.len());
        assert!(!reply.thought.is_empty() || text.contains("<think>") || reply.text == text);
        return;
    };
    assert_ne!(mode, TextToolCallMode::Disabled);
    assert_eq!(names.len(), reply.calls.len());
    for (name, call) in names.iter().zip(&reply.calls) {
        assert_eq!(&call.name, name);
        assert_eq!(call.arguments.doubt(), None);
        let Some(tool) = tools.iter().find(|tool| tool.name == *name) else { panic!("{name} is no tool") };
        let fits = check_against_schema(&tool.parameters, &call.arguments.to_object());
        assert!(mode == TextToolCallMode::ReplyEndings || fits.is_ok(), "{call:?}");
    }
    assert!(mode == TextToolCallMode::ReplyEndings || reply.text.trim().is_empty(), "{reply:?}");
});
