//! The decoder's output as text, for the tests of every API.

use std::fmt::Write as _;

use crow_core::{ModelEvent, ReplyBuilder, ReplyEnd};
use expect_test::Expect;

use crate::{FinishReason, ModelApi, ReplyDecoder};

/// Decodes these pieces, and formats the events.
pub(crate) fn decode_to_text(api: ModelApi, chunks: &[&[u8]]) -> String {
    let mut decoder = ReplyDecoder::new(api);
    let mut reply = ReplyBuilder::new(0);
    let mut on_event = |event: ModelEvent<'_>| {
        reply.on_event(event);
    };
    let fed_result = chunks.iter().try_for_each(|chunk| decoder.feed(chunk, &mut on_event));
    let finish_reason = fed_result.and_then(|()| decoder.finish(&mut on_event));
    let reply = reply.into_reply(match finish_reason {
        Ok(FinishReason::OutputLimit) => ReplyEnd::OutputLimit,
        _ => ReplyEnd::Complete,
    });
    let mut output = String::new();
    for (name, text) in [("thought", &reply.thought), ("text", &reply.text)] {
        if !text.is_empty() {
            _ = writeln!(output, "{name} {text}");
        }
    }
    for call in &reply.calls {
        let arguments = serde_json::Value::Object(call.arguments.to_object());
        _ = writeln!(output, "call {} {} {arguments}", call.provider_id, call.name);
    }
    for item in reply.provider_state.iter().flat_map(|state| &state.items) {
        _ = writeln!(output, "sealed {item}");
    }
    if let Some(usage) = reply.usage {
        _ = write!(output, "usage {} {}", usage.input, usage.output);
        if usage.cached + usage.cache_written > 0 {
            _ = write!(output, " cached {} written {}", usage.cached, usage.cache_written);
        }
        output.extend(usage.cost.map(|cost| format!(" cost {cost}")));
        output.push('\n');
    }
    match finish_reason {
        Ok(finish_reason) => _ = writeln!(output, "{finish_reason:?}"),
        Err(error) => _ = writeln!(output, "{error}"),
    }
    output
}

/// Several records, so that a chunk ends one and begins another.
const CHUNK_LEN: usize = 500;

/// Checks the result of a response, complete and split at every byte: a long one at several bytes at once.
#[track_caller]
pub(crate) fn check_decoding(api: ModelApi, stream: &str, expected: &Expect) {
    let stream = stream.as_bytes();
    let decoded = decode_to_text(api, &[stream]);
    expected.assert_eq(&decoded);
    for first in 0..CHUNK_LEN.min(stream.len()) {
        let (head, tail) = stream.split_at(first);
        let chunks: Vec<&[u8]> = std::iter::once(head).chain(tail.chunks(CHUNK_LEN)).collect();
        assert_eq!(decode_to_text(api, &chunks), decoded, "cut at {first} and after each {CHUNK_LEN} bytes");
    }
    assert_eq!(decode_to_text(api, &stream.chunks(1).collect::<Vec<_>>()), decoded, "byte by byte");
}
