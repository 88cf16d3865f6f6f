//! A provider's answer: the result is the same for any chunking.
//!
//! The first byte of the first line selects the model API, the others are the lengths of the pieces, repeatedly.
#![no_main]

use crow_core::{ReplyEnd, ModelEvent, Reply, ReplyBuilder};
use crow_model::{ModelApi, ReplyDecoder};
use libfuzzer_sys::fuzz_target;

/// Decodes an answer in pieces; returns its events, the reply and its end.
fn decode<'a>(api: ModelApi, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Reply, String) {
    let mut decoder = ReplyDecoder::new(api);
    let mut events = Vec::new();
    let mut reply = ReplyBuilder::new(0);
    let mut on_event = |event: ModelEvent<'_>| {
        events.push(format!("{event:?}"));
        reply.on_event(event);
    };
    let fed = pieces.into_iter().try_for_each(|piece| decoder.feed(piece, &mut on_event));
    let end = fed.and_then(|()| decoder.finish(&mut on_event));
    (events, reply.into_reply(ReplyEnd::Complete), format!("{end:?}"))
}

fn pieces<'a>(mut bytes: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        // An empty piece does not end the answer.
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

/// The limit of calls in one reply.
const CALLS_MAX: usize = 128;

/// Whether a character is the internal mark of half a surrogate pair.
fn is_mark(char: char) -> bool {
    char == '\u{10FFFE}'
}

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (head, bytes) = (&data[..end], &data[end + 1..]);
    let Some((api, lengths)) = head.split_first() else { return };
    let api = ModelApi::ALL[usize::from(*api) % ModelApi::ALL.len()];
    let whole = decode(api, [bytes]);
    let (_, reply, _) = &whole;
    assert!(reply.calls.len() <= CALLS_MAX);
    // A noncharacter of the input stays; without one in the input, none may appear.
    if !bytes.contains(&0xF4) && !bytes.to_ascii_lowercase().windows(4).any(|escape| escape == b"udbf") {
        let texts = [&reply.thought, &reply.text].into_iter().chain(reply.calls.iter().map(|call| &call.name));
        assert!(!texts.into_iter().any(|text| text.contains(is_mark)), "{reply:?}");
    }
    assert_eq!(decode(api, bytes.chunks(1)), whole);
    if !lengths.is_empty() {
        assert_eq!(decode(api, pieces(bytes, lengths)), whole);
    }
});
