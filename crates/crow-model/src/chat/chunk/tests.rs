//! The forms that a chunk may have.

use expect_test::expect;

use crate::chat::tests::{check, deltas, read};

#[test]
fn text_and_thinking() {
    check(
        &deltas(&[
            r#"{"role":"assistant","content":null}"#,
            r#"{"reasoning_content":"hm "}"#,
            r#"{"reasoning":"so"}"#,
            r#"{"reasoning_content":"!","reasoning":"!"}"#,
            r#"{"content":"Gr\u00fc\u00dfe \ud83e\udd80","unknown":{"a":[1]}}"#,
            r#"{"content":[{"type":"text","text":" ü"}]}"#,
        ]),
        &expect![[r#"
            thought hm so!
            text Grüße 🦀 ü
            Complete
        "#]],
    );
}

#[test]
fn parallel_calls_in_pieces() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"edit","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}},{"index":1,"function":{"arguments":":2}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":"1}"}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":1}
            call b edit {"x":2}
            Complete
        "#]],
    );
}

#[test]
fn calls_without_an_index() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":"1}"}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"name":"read","arguments":"{\"p\":2}"}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":1}
            call b read {"p":2}
            Complete
        "#]],
    );
    check(
        &deltas(&[
            r#"{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":{}}}]}"#,
        ]),
        &expect![[r#"
            call call-0-0 f {}
            call call-0-1 g {}
            Complete
        "#]],
    );
}

#[test]
fn calls_with_the_same_index() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"read","arguments":"{\"p\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":1}
            call b read {"p":2}
            Complete
        "#]],
    );
}

#[test]
fn parallel_calls_with_one_index_and_no_id() {
    let calls = expect![[r#"
        call call-0-0 read {"p":1}
        call call-0-1 read {"p":2}
        call call-0-2 edit {"p":3}
        call call-0-3 edit {}
        Complete
    "#]];
    for (index, id) in
        [(r#""index":0,"#, r#""id":"","#), (r#""index":0,"#, ""), ("", r#""id":"","#), ("", "")]
    {
        let piece = |function: &str| format!(r#"{{{index}{id}"type":"function","function":{{{function}}}}}"#);
        let whole = [
            piece(r#""name":"read","arguments":"{\"p\":1}""#),
            piece(r#""name":"read","arguments":"{\"p\":2}""#),
            piece(r#""name":"edit","arguments":"{\"p\":3}""#),
            piece(r#""name":"edit","arguments":"{}""#),
        ];
        let lists = whole.each_ref().map(|piece| format!(r#"{{"tool_calls":[{piece}]}}"#));
        check(&deltas(&lists.each_ref().map(String::as_str)), &calls);
        check(&deltas(&[&format!(r#"{{"tool_calls":[{}]}}"#, whole.join(","))]), &calls);
        let pieces = [
            piece(r#""name":"read","arguments":"""#),
            piece(r#""arguments":"{\"p\"""#),
            piece(r#""name":"read","arguments":":1}""#),
            piece(r#""name":"read","arguments":"""#),
            piece(r#""arguments":"{\"p\":2}""#),
            piece(r#""name":"edit","arguments":"""#),
            piece(r#""arguments":"{\"p\":3}""#),
            piece(r#""name":"edit","arguments":"{}""#),
            piece(r#""name":"edit","arguments":"""#),
        ];
        let lists = pieces.map(|piece| format!(r#"{{"tool_calls":[{piece}]}}"#));
        check(&deltas(&lists.each_ref().map(String::as_str)), &calls);
    }
}

#[test]
fn legacy_function_call() {
    let call = expect![[r#"
        call call-0-0 read {"p":1}
        Complete
    "#]];
    check(
        &deltas(&[
            r#"{"role":"assistant","content":null,"function_call":{"name":"read","arguments":""}}"#,
            r#"{"function_call":{"arguments":"{\"p\""}}"#,
            r#"{"function_call":{"name":null,"arguments":":1}"}}"#,
            r#"{"function_call":null}"#,
            r#"{"function_call":{"name":"","arguments":""}}"#,
        ]),
        &call,
    );
    check(
        r#"{"choices":[{"message":{"content":null,"function_call":{"name":"read","arguments":"{\"p\":1}"}},"finish_reason":"function_call"}]}"#,
        &call,
    );
    // A call that is sent in both forms is one.
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"p\":1}"}}],"function_call":{"name":"read","arguments":"{\"p\":1}"}}"#,
            r#"{"function_call":{"name":"read","arguments":"{\"p\":1}"}}"#,
        ]),
        &call,
    );
}

#[test]
fn call_without_a_tool_name_is_a_call() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"","arguments":"{\"p\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":2,"type":"function"}]}"#,
        ]),
        &expect![[r#"
            call a  {"p":1}
            call call-0-1  {}
            Complete
        "#]],
    );
}

#[test]
fn data_after_the_end_of_a_reply_is_ignored() {
    let end = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let whole = expect![[r#"
        text a
        usage 7 2
        Complete
    "#]];
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    for odd in [
        "what?",
        "{\"choices\":",
        r#"{"error":{"message":"boom","code":500}}"#,
        r#"{"object":"error","message":"boom"}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
        r#"{"choices":7}"#,
        r#"{"type":"unknown"}"#,
    ] {
        check(
            &format!("data: {end}\n\nevent: odd\ndata: {odd}\n\ndata: {usage}\n\ndata: [DONE]\n\n"),
            &whole,
        );
        check(&format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\ndata: {odd}\n\n"), &whole);
        check(&format!("data: {end}\n\ndata: {usage}\n\ndata: {odd}"), &whole);
    }
    let more = r#"{"choices":[{"delta":{"content":"b","tool_calls":[{"function":{"name":"read","arguments":"{}"}}]}}]}"#;
    check(&format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\ndata: {more}\n\n"), &whole);
    check(&format!("data: {end}\ndata: {usage}\ndata: [DONE]\ndata: {more}\n\n"), &whole);
}

#[test]
fn finished_reply_is_not_awaited_forever() {
    let end = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    for odd in ["data: what?\n\n".repeat(100_000), format!("data: {}", "x".repeat(17 * 1024 * 1024))] {
        let mut decoder = crate::ReplyDecoder::new(crate::ModelApi::CHAT);
        for piece in [end.as_bytes()].into_iter().chain(odd.as_bytes().chunks(64 * 1024)) {
            assert_eq!(decoder.feed(piece, &mut |_| {}), Ok(()));
        }
        assert!(decoder.is_done());
        assert_eq!(decoder.finish(&mut |_| {}), Ok(crate::FinishReason::Complete));
    }
}

#[test]
fn surrogate_halves_are_joined() {
    check(
        &deltas(&[
            r#"{"content":"a\ud83e","reasoning":"\ud83d"}"#,
            r#"{"content":""}"#,
            r#"{"content":"\udd80b\ud83d","reasoning":"\ude00 hm"}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"p\":\"\ud83d"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\\ud83d"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\\ude00\ude00"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}"#,
            r#"{"content":"c","reasoning":"\ude00"}"#,
            r#"{"content":"\ud83d"}"#,
        ]),
        &expect![[r#"
            thought 😀 hm�
            text a🦀b�c�
            call call-0-0 read {"p":"😀😀�"}
            Complete
        "#]],
    );
}

#[test]
fn ids_and_names_may_be_repeated_or_invented() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"other","function":{"arguments":"1}"}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":1}
            Complete
        "#]],
    );
}

#[test]
fn arguments_may_be_an_object_or_missing() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"p": "ü"}}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":null}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":"ü"}
            Complete
        "#]],
    );
}

#[test]
fn usage_alone_and_comments_between() {
    check(
        concat!(
            ": OPENROUTER PROCESSING\r\n\r\n",
            "event: message\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}\r\n\r\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\r\n\r\n",
            "data: [DONE]",
        ),
        &expect![[r#"
            text a
            usage 7 2
            OutputLimit
        "#]],
    );
}

#[test]
fn finish_reasons_of_all_kinds() {
    let words = r#"data: {"choices":[{"delta":{"content":"a"}}]}"#;
    check(
        &format!("{words}\n\n"),
        &expect![[r#"
        text a
        the stream broke off
    "#]],
    );
    check(
        &format!("{words}\n\ndata: {{\"choi"),
        &expect![[r#"
        text a
        the stream broke off
    "#]],
    );
    check(
        &format!("{words}\n\ndata: [DONE]\n\n"),
        &expect![[r#"
            text a
            Complete
        "#]],
    );
    let refused = r#"data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#;
    check(
        &format!("{words}\n{refused}\n"),
        &expect![[r#"
        text a
        Refused
    "#]],
    );
    check(
        "",
        &expect![[r#"
        the stream broke off
    "#]],
    );
}

#[test]
fn errors_with_a_success_status() {
    check(
        "data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n",
        &expect![[r#"
        the provider sent an error: {"message":"busy","code":503}
    "#]],
    );
    check(
        "event: error\ndata: {\"error\":\"out of luck\"}\n\n",
        &expect![[r#"
        the provider sent an error: "out of luck"
    "#]],
    );
    check(
        "data: {\"object\":\"error\",\"message\":\"no\"}\n\n",
        &expect![[r#"
        the provider sent an error: {"object":"error","message":"no"}
    "#]],
    );
    check(
        "{\"error\":{\"message\":\"no\"}}",
        &expect![[r#"
        the provider sent an error: {"message":"no"}
    "#]],
    );
}

#[test]
fn responses_that_are_not_a_stream() {
    check(
        concat!(
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","#,
            r#""function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
        ),
        &expect![[r#"
            text a
            call x read {}
            usage 3 1
            Complete
        "#]],
    );
    check(
        "<html>welcome</html>",
        &expect![[r#"
        the answer is not a stream of completions: a web page
    "#]],
    );
    check(
        "{\"hello\":1}",
        &expect![[r#"
        the answer is not a stream of completions: {"hello":1}
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
    let mut stream = deltas(&[r#"{"content":"a?b"}"#]).into_bytes();
    if let Some(place) = stream.iter().position(|byte| *byte == b'?') {
        stream[place] = 0xFF;
    }
    assert_eq!(read(&[&stream]), "text a\u{FFFD}b\nComplete\n");
}
