//! Messages of an MCP server: the SDK gets the same ones for any chunking, and no answer that it would drop while a
//! request waits for it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

#[path = "../../crates/crow-tools/src/mcp/message_filter.rs"]
mod message_filter;

use message_filter::MessageFilter;

fn passed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Option<String>, Option<String>) {
    let (mut filter, mut out) = (MessageFilter::default(), Vec::new());
    pieces.for_each(|piece| filter.feed(piece, &mut out));
    let owned = |text: Option<&str>| text.map(str::to_owned);
    (out, owned(filter.last_fault()), owned(filter.end_reason()))
}

/// Whether a line is the answer to a request, by its start.
fn is_answer(line: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&line[..line.len().min(200)]);
    head.starts_with("{\"id\":1,\"result\":")
}

fuzz_target!(|data: &[u8]| {
    let [n_at_once, n_repeats, bytes @ ..] = data else { return };
    // The repeated end makes the input deep and long.
    let mut input = bytes.to_vec();
    for _ in 0..*n_repeats {
        input.extend_from_slice(&bytes[bytes.len().saturating_sub(16)..]);
    }
    let whole = passed(std::iter::once(&input[..]));
    assert_eq!(whole, passed(input.chunks(usize::from(*n_at_once) + 1)));
    if let Some(refusal) = message_filter::error_response_for(&input, "why") {
        let read: Value = serde_json::from_str(&refusal).expect("an error response is JSON");
        assert!(read["id"].is_number() || read["id"].is_string());
    }
    let (out, ..) = whole;
    for line in out.split(|&byte| byte == b'\n').filter(|line| is_answer(line)) {
        assert!(serde_json::from_slice::<Value>(line).is_ok(), "{}", String::from_utf8_lossy(line));
    }
});
