//! The forms a chunk may have.

use expect_test::expect;

use crate::chat::tests::{check, deltas, read};

#[test]
fn words_and_thoughts() {
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
            Normally
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
            Normally
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
            Normally
        "#]],
    );
    check(
        &deltas(&[
            r#"{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":{}}}]}"#,
        ]),
        &expect![[r#"
            call call-0-0 f {}
            call call-0-1 g {}
            Normally
        "#]],
    );
}

#[test]
fn calls_that_all_have_the_same_index() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"read","arguments":"{\"p\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":1}
            call b read {"p":2}
            Normally
        "#]],
    );
}

#[test]
fn ids_and_names_repeated_or_invented() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"other","function":{"arguments":"1}"}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":1}
            Normally
        "#]],
    );
}

#[test]
fn arguments_as_an_object_or_nothing() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"p": "ü"}}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":null}}]}"#,
        ]),
        &expect![[r#"
            call a read {"p":"ü"}
            Normally
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
fn ends_of_all_kinds() {
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
        Normally
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
fn errors_inside_a_good_status() {
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
fn answers_that_are_no_stream() {
    check(
        concat!(
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","#,
            r#""function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
        ),
        &expect![[r#"
            text a
            call x read {}
            usage 3 1
            Normally
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
fn bad_utf8_costs_a_character_and_not_the_reply() {
    let mut stream = deltas(&[r#"{"content":"a?b"}"#]).into_bytes();
    if let Some(place) = stream.iter().position(|byte| *byte == b'?') {
        stream[place] = 0xFF;
    }
    assert_eq!(read(&[&stream]), "text a\u{FFFD}b\nNormally\n");
}
