//! Streams of real servers, split at every byte.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::{ModelApi, ReplyDecoder, test_decoding};

fn read(pieces: &[&[u8]]) -> String {
    test_decoding::decode_to_text(ModelApi::new(&crate::messages::DEFINITION), pieces)
}

#[track_caller]
fn check(stream: &str, expected: &Expect) {
    test_decoding::check_decoding(ModelApi::new(&crate::messages::DEFINITION), stream, expected);
}

/// A stream of these events, named as the provider names them.
fn events(events: &[&str]) -> String {
    let named = events.iter().map(|event| {
        let value: serde_json::Value = serde_json::from_str(event).unwrap_or_default();
        format!("event: {}\ndata: {event}\n\n", value["type"].as_str().unwrap_or_default())
    });
    named.collect()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}"#;

const STOP: &str = r#"{"type":"message_stop"}"#;

/// The end of a message for a reason.
fn ended(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":89}}}}"#
    )
}

/// A stream of these events with a regular start and an end for a reason.
fn message(middle: &[&str], reason: &str) -> String {
    let end = ended(reason);
    let all: Vec<&str> = [START].iter().chain(middle).copied().chain([end.as_str(), STOP]).collect();
    events(&all)
}

/// Thinking, text, more thinking and two calls, as a model with interleaved thinking sends them.
const INTERLEAVED: [&str; 22] = [
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type": "ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"They want "}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Gr\u00fc\u00dfe \ud83e\udd80."}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqoBCkgIARABGAI="}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3p"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look "}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"für dich."}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"read","input":{}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"file_pa"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"th\": \"ä\"}"}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"signature_delta","signature":"second"}}"#,
    r#"{"type":"content_block_stop","index":4}"#,
    r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_2","name":"todo","input":{}}}"#,
    r#"{"type":"content_block_stop","index":5}"#,
];

#[test]
fn surrogate_halves_are_joined() {
    check(
        &message(
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm \ud83d"}}"#,
                r#"{"type":"ping"}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00\ude00"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a\ud83e"}}"#,
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\udd80b\ud83d"}}"#,
                r#"{"type":"content_block_stop","index":1}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"read","input":{}}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\":\"\ud83d"}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\ude00\\ud83d"}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\\ude00\"}"}}"#,
                r#"{"type":"content_block_stop","index":2}"#,
            ],
            "tool_use",
        ),
        &expect![[r#"
            thought hm 😀�
            text a🦀b�
            call t read {"p":"😀😀"}
            sealed {"type":"thinking","thinking":"hm 😀�","signature":"sig"}
            sealed {"type":"text","n_bytes":9}
            sealed {"type":"tool_use"}
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
}

#[test]
fn data_after_the_end_of_a_reply_is_ignored() {
    let whole = expect![[r#"
        text a
        usage 2312 89 cached 2000 written 300
        Complete
    "#]];
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    let end = ended("end_turn");
    for odd in
        ["what?", r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#, r#"{"type":7}"#]
    {
        let [head, tail] = [events(&[START, text, &end]), events(&[STOP])];
        check(&format!("{head}data: {odd}\n\n{tail}"), &whole);
        check(&format!("{head}{tail}data: {odd}\n\n{}", events(&[text])), &whole);
    }
}

#[test]
fn text_thinking_and_calls_keep_their_order() {
    check(
        &message(&INTERLEAVED, "tool_use"),
        &expect![[r#"
            thought They want Grüße 🦀.
            text I look für dich.
            call toolu_01A09q90qw90lq917835lq9 read {"file_path":"ä"}
            call toolu_2 todo {}
            sealed {"type":"thinking","thinking":"They want Grüße 🦀.","signature":"EqoBCkgIARABGAI="}
            sealed {"type":"redacted_thinking","data":"EmwKAhgBEgy3va3p"}
            sealed {"type":"text","n_bytes":17}
            sealed {"type":"tool_use"}
            sealed {"type":"thinking","thinking":"","signature":"second"}
            sealed {"type":"tool_use"}
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
}

#[test]
fn provider_state_needs_thinking() {
    check(
        &message(
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
            ],
            "end_turn",
        ),
        &expect![[r#"
            text Hello
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
}

#[test]
fn blocks_before_the_first_thinking_keep_their_place() {
    check(
        &message(
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Well."}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"hm","signature":"s"}}"#,
                r#"{"type":"content_block_stop","index":1}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Yes."}}"#,
                r#"{"type":"content_block_stop","index":2}"#,
            ],
            "end_turn",
        ),
        &expect![[r#"
            thought hm
            text Well.Yes.
            sealed {"type":"text","n_bytes":5}
            sealed {"type":"thinking","thinking":"hm","signature":"s"}
            sealed {"type":"text","n_bytes":4}
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
}

#[test]
fn unsigned_thinking_is_not_provider_state() {
    check(
        &message(
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Yes."}}"#,
                r#"{"type":"content_block_stop","index":1}"#,
            ],
            "end_turn",
        ),
        &expect![[r#"
            thought hm
            text Yes.
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
    // The connection died before the signature arrived.
    check(
        &events(&INTERLEAVED[..4]),
        &expect![[r#"
        thought They want Grüße 🦀.
        the stream broke off
    "#]],
    );
}

#[test]
fn unrequested_blocks_and_events_are_ignored() {
    check(
        &message(
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\": 1}"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result"}]}}"#,
                r#"{"type":"content_block_stop","index":1}"#,
                r#"{"type":"a_new_event","of":[1]}"#,
                r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"lost"}}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"url":"u"}}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Found."}}"#,
                r#"{"type":"content_block_stop","index":2}"#,
            ],
            "pause_turn",
        ),
        &expect![[r#"
            text Found.
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
}

#[test]
fn block_ends_may_be_missing_and_input_complete() {
    check(
        concat!(
            "data:{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}\r\n\r\n",
            "data:{\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\r\n\r\n",
            "data:{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"name\":\"read\",\"input\":{\"p\":1}}}\r\n\r\n",
            "data:{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"input_tokens\":7,\"output_tokens\":2,\"cache_read_input_tokens\":null}}\r\n\r\n",
            "data: [DONE]\r\n\r\n",
        ),
        &expect![[r#"
            text a
            call call-0-0 read {"p":1}
            usage 7 2
            Complete
        "#]],
    );
}

#[test]
fn finish_reasons_of_all_kinds() {
    let said = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    let call = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"write","input":{}}}"#;
    let begun = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#;
    check(
        &message(&[said], "stop_sequence"),
        &expect![[r#"
            text a
            usage 2312 89 cached 2000 written 300
            Complete
        "#]],
    );
    check(
        &message(&[said, call, begun], "max_tokens"),
        &expect![[r#"
        text a
        call t write {}
        usage 2312 89 cached 2000 written 300
        OutputLimit
    "#]],
    );
    check(
        &message(&[said], "model_context_window_exceeded"),
        &expect![[r#"
        text a
        usage 2312 89 cached 2000 written 300
        OutputLimit
    "#]],
    );
    check(
        &message(&[said], "refusal"),
        &expect![[r#"
        text a
        usage 2312 89 cached 2000 written 300
        Refused
    "#]],
    );
    check(
        &events(&[said, &ended("end_turn")]),
        &expect![[r#"
            text a
            usage 0 89
            Complete
        "#]],
    );
    check(
        &events(&[said]),
        &expect![[r#"
        text a
        the stream broke off
    "#]],
    );
    check(
        &format!("{}data: {{\"type\":\"mess", events(&[said])),
        &expect![[r#"
        text a
        the stream broke off
    "#]],
    );
}

#[test]
fn errors_with_a_success_status() {
    check(
        &events(&[START, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#]),
        &expect![[r#"
            usage 2312 1 cached 2000 written 300
            the provider sent an error: {"type":"overloaded_error","message":"Overloaded"}
        "#]],
    );
    check(
        &events(&[r#"{"type":"error","message":"no"}"#]),
        &expect![[r#"
        the provider sent an error: {"type":"error","message":"no"}
    "#]],
    );
    check(
        r#"{"type":"error","error":{"type":"api_error","message":"boom"}}"#,
        &expect![[r#"
        the provider sent an error: {"type":"api_error","message":"boom"}
    "#]],
    );
}

#[test]
fn responses_that_are_not_a_stream() {
    check(
        concat!(
            r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},"#,
            r#"{"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"read","input":{"p":[1]}}],"#,
            r#""stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":1}}"#,
        ),
        &expect![[r#"
            thought hm
            text a
            call x read {"p":[1]}
            sealed {"type":"thinking","thinking":"hm","signature":"s"}
            sealed {"type":"text","n_bytes":1}
            sealed {"type":"tool_use"}
            usage 3 1
            Complete
        "#]],
    );
    check(
        "{\"hello\":1}",
        &expect![[r#"
        the answer is not a stream of completions: {"hello":1}
    "#]],
    );
    check(
        "<html>welcome</html>",
        &expect![[r#"
        the answer is not a stream of completions: a web page
    "#]],
    );
    check(
        "data: hello\n\n",
        &expect![[r#"
        the answer is not a stream of completions: hello
    "#]],
    );
}

#[test]
fn invalid_utf8_loses_a_character_only() {
    let begun = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a?b"}}"#;
    let mut stream = events(&[begun, &ended("end_turn"), STOP]).into_bytes();
    if let Some(place) = stream.iter().position(|byte| *byte == b'?') {
        stream[place] = 0xFF;
    }
    assert_eq!(read(&[&stream]), "text a\u{FFFD}b\nusage 0 89\nComplete\n");
}

#[test]
fn endless_thinking_is_an_error() {
    let mut decoder = ReplyDecoder::new(ModelApi::new(&crate::messages::DEFINITION));
    let begun = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}"#;
    let signature = "s".repeat(1024 * 1024);
    let more = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta","signature":"{signature}"}}}}"#
    );
    assert_eq!(decoder.feed(events(&[begun]).as_bytes(), &mut |_| {}), Ok(()));
    let more = events(&[&more]);
    let fed = (0..100).find_map(|_| decoder.feed(more.as_bytes(), &mut |_| {}).err());
    assert_eq!(fed, Some(crate::StreamError::TooLong));
}

proptest! {
    #[test]
    fn no_order_of_events_is_a_panic(picked in proptest::collection::vec(0..INTERLEAVED.len() + 3, 0..40), cut in any::<prop::sample::Index>()) {
        let end = ended("tool_use");
        let all: Vec<&str> = INTERLEAVED.iter().copied().chain([START, STOP, &end]).collect();
        let stream = events(&picked.iter().map(|place| all[*place]).collect::<Vec<_>>());
        let (head, tail) = stream.as_bytes().split_at(cut.index(stream.len() + 1));
        prop_assert_eq!(read(&[head, tail]), read(&[stream.as_bytes()]));
    }
}
