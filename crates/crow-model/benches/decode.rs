//! Benchmarks the decoder's cost per chunk of a stream.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::hint::black_box;
use std::time::Instant;

use crow_core::text_tool_calls::{TextToolCallMode, TextToolCallParser};
use crow_core::{ModelEvent, ToolSpec};
use crow_model::{ModelApi, ReplyDecoder};

const N_CHUNKS: u32 = 200_000;
const N_ROUNDS: u32 = 5;

fn main() {
    let chunk = concat!(
        r#"data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"#,
        r#""model":"some-model-name","system_fingerprint":"fp_0123456789","choices":[{"index":0,"#,
        r#""delta":{"content":" words"},"logprobs":null,"finish_reason":null}]}"#,
        "\n\n"
    );
    let parameters = serde_json::json!({"type": "object"});
    let tools = [ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }];
    for (name, takes) in [
        ("text is text", TextToolCallMode::Disabled),
        ("calls are looked for", TextToolCallMode::WholeReplies),
    ] {
        let best = (0..N_ROUNDS).map(|_| words(&tools, takes)).fold(f64::INFINITY, f64::min);
        println!("{name}: {best:.1} ns for a piece of text behind the first");
    }
    for (name, cancel) in [("whole", chunk.len()), ("cut in two", chunk.len() / 2)] {
        let best = (0..N_ROUNDS).map(|_| round(chunk.as_bytes(), cancel)).fold(f64::INFINITY, f64::min);
        println!("{name}: {best:.0} ns for a chunk of {} bytes", chunk.len());
    }
}

/// The cost of searching text for tool calls.
fn words(tools: &[ToolSpec], takes: TextToolCallMode) -> f64 {
    let mut sieve = TextToolCallParser::new(tools, takes);
    let mut n_bytes = 0;
    let start = Instant::now();
    for _ in 0..N_CHUNKS {
        sieve.on_event(black_box(ModelEvent::Text(" words")), &mut |event| {
            if let ModelEvent::Text(text) = event {
                n_bytes += text.len();
            }
        });
    }
    assert_eq!(n_bytes, N_CHUNKS as usize * " words".len());
    start.elapsed().as_secs_f64() * 1e9 / f64::from(N_CHUNKS)
}

fn round(chunk: &[u8], cancel: usize) -> f64 {
    let mut decoder = ReplyDecoder::new(ModelApi::CHAT);
    let mut n_bytes = 0;
    let start = Instant::now();
    for _ in 0..N_CHUNKS {
        let (head, tail) = chunk.split_at(cancel);
        for bytes in [head, tail] {
            let fed = decoder.feed(black_box(bytes), &mut |event| {
                if let ModelEvent::Text(text) = event {
                    n_bytes += text.len();
                }
            });
            assert!(fed.is_ok(), "{fed:?}");
        }
    }
    assert_eq!(n_bytes, N_CHUNKS as usize * " words".len());
    start.elapsed().as_secs_f64() * 1e9 / f64::from(N_CHUNKS)
}
