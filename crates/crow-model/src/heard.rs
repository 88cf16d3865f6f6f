//! What a decoder makes of an answer, for the tests of every dialect.

use std::fmt::Write as _;

use crow_core::{ModelEvent, ReplyBuilder, ReplyEnd};
use expect_test::Expect;

use crate::{FinishReason, ModelApi, ReplyDecoder};

/// Decodes what comes in these pieces, and spells it.
pub(crate) fn decode_to_text(api: ModelApi, pieces: &[&[u8]]) -> String {
    let mut decoder = ReplyDecoder::new(api);
    let mut reply = ReplyBuilder::new(0);
    let mut hear = |event: ModelEvent<'_>| {
        reply.on_event(event);
    };
    let fed = pieces.iter().try_for_each(|piece| decoder.feed(piece, &mut hear));
    let finish = fed.and_then(|()| decoder.finish(&mut hear));
    let reply = reply.into_reply(match finish {
        Ok(FinishReason::OutputLimit) => ReplyEnd::OutputLimit,
        _ => ReplyEnd::Normally,
    });
    let mut seen = String::new();
    for (name, text) in [("thought", &reply.thought), ("text", &reply.text)] {
        if !text.is_empty() {
            _ = writeln!(seen, "{name} {text}");
        }
    }
    for call in &reply.calls {
        let arguments = serde_json::Value::Object(call.arguments.to_object());
        _ = writeln!(seen, "call {} {} {arguments}", call.provider_id, call.name);
    }
    for piece in reply.sealed.iter().flat_map(|sealed| &sealed.pieces) {
        _ = writeln!(seen, "sealed {piece}");
    }
    if let Some(usage) = reply.usage {
        _ = write!(seen, "usage {} {}", usage.input, usage.output);
        if usage.cached + usage.cache_written > 0 {
            _ = write!(seen, " cached {} written {}", usage.cached, usage.cache_written);
        }
        seen.extend(usage.cost.map(|cost| format!(" cost {cost}")));
        seen.push('\n');
    }
    match finish {
        Ok(finish) => _ = writeln!(seen, "{finish:?}"),
        Err(error) => _ = writeln!(seen, "{error}"),
    }
    seen
}

/// Checks what an answer comes to, whole and cut at every byte.
#[track_caller]
pub(crate) fn check_decoding(api: ModelApi, stream: &str, expected: &Expect) {
    let stream = stream.as_bytes();
    let whole = decode_to_text(api, &[stream]);
    expected.assert_eq(&whole);
    for cut in 0..=stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(decode_to_text(api, &[head, tail]), whole, "cut at {cut}");
    }
    assert_eq!(decode_to_text(api, &stream.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
}
