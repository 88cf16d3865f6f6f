//! A provider's answer means the same however its bytes are cut.
//!
//! The first line of the input says how: its first byte picks the dialect, the others are the lengths of the pieces,
//! again and again.
#![no_main]

use crow_core::{ReplyEnd, ModelEvent, Reply, ReplyBuilder};
use crow_model::{ModelApi, ReplyDecoder};
use libfuzzer_sys::fuzz_target;

/// What was heard of an answer, and how it ended.
fn heard<'a>(api: ModelApi, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Reply, String) {
    let mut decoder = ReplyDecoder::new(api);
    let mut events = Vec::new();
    let mut reply = ReplyBuilder::new(0);
    let mut hear = |event: ModelEvent<'_>| {
        events.push(format!("{event:?}"));
        reply.on_event(event);
    };
    let fed = pieces.into_iter().try_for_each(|piece| decoder.feed(piece, &mut hear));
    let end = fed.and_then(|()| decoder.finish(&mut hear));
    (events, reply.into_reply(ReplyEnd::Normally), format!("{end:?}"))
}

fn pieces<'a>(mut bytes: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        // An empty piece is none of a reason to end.
        let (piece, rest) = bytes.split_at(usize::from(*length % 32).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
        if pieces.len() > 4096 {
            pieces.push(bytes);
            break;
        }
    }
    pieces
}

/// Calls that are taken of one reply.
const CALLS_MAX: usize = 128;

/// What no text is left with: the marks of halves.
fn is_mark(char: char) -> bool {
    char == '\u{10FFFE}'
}

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (head, bytes) = (&data[..end], &data[end + 1..]);
    let Some((dialect, lengths)) = head.split_first() else { return };
    let api = ModelApi::ALL[usize::from(*dialect) % ModelApi::ALL.len()];
    let whole = heard(api, [bytes]);
    let (_, reply, _) = &whole;
    assert!(reply.calls.len() <= CALLS_MAX);
    // A noncharacter that was sent stays one; where none was, none may come out.
    if !bytes.contains(&0xF4) && !bytes.to_ascii_lowercase().windows(4).any(|escape| escape == b"udbf") {
        let texts = [&reply.thought, &reply.text].into_iter().chain(reply.calls.iter().map(|call| &call.name));
        assert!(!texts.into_iter().any(|text| text.contains(is_mark)), "{reply:?}");
    }
    assert_eq!(heard(api, bytes.chunks(1)), whole);
    if !lengths.is_empty() {
        assert_eq!(heard(api, pieces(bytes, lengths)), whole);
    }
});
