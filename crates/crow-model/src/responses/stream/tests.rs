//! Streams of real servers, split at every byte.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::{ModelApi, test_decoding};

fn read(pieces: &[&[u8]]) -> String {
    test_decoding::decode_to_text(ModelApi::new(&crate::responses::DEFINITION), pieces)
}

#[track_caller]
fn check(stream: &str, expected: &Expect) {
    test_decoding::check_decoding(ModelApi::new(&crate::responses::DEFINITION), stream, expected);
}

/// A stream of these events, in the specified form.
fn events(events: &[&str]) -> String {
    let kind = |event: &str| {
        let event: serde_json::Value = serde_json::from_str(event).unwrap_or_default();
        event["type"].as_str().unwrap_or_default().to_owned()
    };
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", kind(event))).collect()
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

#[test]
fn surrogate_halves_are_joined() {
    check(
        &events(&[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs","type":"reasoning","summary":[]}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,"summary_index":0,"delta":"hm \ud83d"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,"summary_index":0,"delta":"\ude00!\ude00"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"hm \ud83d\ude00!\ude00?"}],"encrypted_content":"x"}}"#,
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":1,"content_index":0,"delta":"a\ud83e"}"#,
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":1,"content_index":0,"delta":"\udd80b\ud83d"}"#,
            r#"{"type":"response.output_text.done","item_id":"m","output_index":1,"content_index":0,"text":"a\ud83e\udd80b\ud83dc"}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"f","type":"function_call","call_id":"c","name":"read","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":2,"delta":"{\"p\":\"\ud83d"}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":2,"delta":"\ude00\\ud83d"}"#,
            r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":2,"delta":"\\ude00"}"#,
            r#"{"type":"response.function_call_arguments.done","item_id":"f","output_index":2,"arguments":"{\"p\":\"\ud83d\ude00\\ud83d\\ude00\"}"}"#,
            r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"g","type":"function_call","call_id":"d","name":"read","arguments":{"p":"\ud83d"}}}"#,
            r#"{"type":"response.output_text.delta","item_id":"n","output_index":4,"content_index":0,"delta":"z\ud83d"}"#,
            COMPLETED,
        ]),
        &expect![[r#"
            thought hm 😀!�?
            text a🦀b�c

            z�
            call c read {"p":"😀😀"}
            call d read {"p":"�"}
            Complete
        "#]],
    );
}

#[test]
fn data_after_the_end_of_a_reply_is_ignored() {
    let text = r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"a"}"#;
    for odd in ["what?", r#"{"type":"error","message":"no"}"#, text] {
        check(
            &format!("{}data: {odd}\n\n", events(&[text, COMPLETED])),
            &expect![[r#"
                text a
                Complete
            "#]],
        );
    }
}

#[test]
fn reply_as_specified() {
    check(
        &events(&[
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"instructions":"be good","output":[],"store":false,"tools":[],"usage":null}}"#,
            r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","error":null,"output":[]}}"#,
            r#"{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"half","summary":[]}}"#,
            r#"{"type":"response.reasoning_summary_part.added","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Loo","obfuscation":"x"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","sequence_number":5,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"king**"}"#,
            r#"{"type":"response.reasoning_summary_text.done","sequence_number":6,"item_id":"rs_1","output_index":0,"summary_index":0,"text":"**Looking**"}"#,
            r#"{"type":"response.reasoning_summary_part.done","sequence_number":7,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"**Looking**"}}"#,
            r#"{"type":"response.reasoning_summary_part.added","sequence_number":8,"item_id":"rs_1","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","sequence_number":9,"item_id":"rs_1","output_index":0,"summary_index":1,"delta":"**Reading**"}"#,
            r#"{"type":"response.output_item.done","sequence_number":10,"output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA==","summary":[{"type":"summary_text","text":"**Looking**"},{"type":"summary_text","text":"**Reading**"}]}}"#,
            r#"{"type":"response.output_item.added","sequence_number":11,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"phase":"commentary","role":"assistant"}}"#,
            r#"{"type":"response.content_part.added","sequence_number":12,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#,
            r#"{"type":"response.output_text.delta","sequence_number":13,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Gr\u00fc","logprobs":[]}"#,
            r#"{"type":"response.output_text.delta","sequence_number":14,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"ße \ud83e\udd80","logprobs":[]}"#,
            r#"{"type":"response.output_text.done","sequence_number":15,"item_id":"msg_1","output_index":1,"content_index":0,"text":"Grüße 🦀","logprobs":[]}"#,
            r#"{"type":"response.content_part.done","sequence_number":16,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Grüße 🦀"}}"#,
            r#"{"type":"response.output_item.done","sequence_number":17,"output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Grüße 🦀"}],"phase":"commentary","role":"assistant"}}"#,
            r#"{"type":"response.output_item.added","sequence_number":18,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_a","name":"read"}}"#,
            r#"{"type":"response.function_call_arguments.delta","sequence_number":19,"item_id":"fc_1","output_index":2,"delta":"{\"p\":"}"#,
            r#"{"type":"response.function_call_arguments.delta","sequence_number":20,"item_id":"fc_1","output_index":2,"delta":"1}"}"#,
            r#"{"type":"response.function_call_arguments.done","sequence_number":21,"item_id":"fc_1","output_index":2,"arguments":"{\"p\":1}"}"#,
            r#"{"type":"response.output_item.done","sequence_number":22,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"p\":1}","call_id":"call_a","name":"read"}}"#,
            r#"{"type":"response.output_item.added","sequence_number":23,"output_index":3,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_b","name":"edit"}}"#,
            r#"{"type":"response.function_call_arguments.delta","sequence_number":24,"item_id":"fc_2","output_index":3,"delta":"{}"}"#,
            r#"{"type":"response.output_item.done","sequence_number":25,"output_index":3,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_b","name":"edit"}}"#,
            r#"{"type":"response.completed","sequence_number":26,"response":{"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"output":[{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA==","summary":[{"type":"summary_text","text":"**Looking**"},{"type":"summary_text","text":"**Reading**"}]},{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Grüße 🦀"}],"role":"assistant"},{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"p\":1}","call_id":"call_a","name":"read"},{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_b","name":"edit"}],"usage":{"input_tokens":75,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":8},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":95}}}"#,
        ]),
        &expect![[r#"
            thought **Looking**

            **Reading**
            text Grüße 🦀
            call call_a read {"p":1}
            call call_b edit {}
            sealed {"id":"rs_1","type":"reasoning","encrypted_content":"gAAA==","summary":[{"type":"summary_text","text":"**Looking**"},{"type":"summary_text","text":"**Reading**"}]}
            sealed {"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Grüße 🦀"}],"phase":"commentary","role":"assistant"}
            sealed {"id":"fc_1","type":"function_call","call_id":"call_a"}
            sealed {"id":"fc_2","type":"function_call","call_id":"call_b"}
            usage 75 20 cached 64 written 8
            Complete
        "#]],
    );
}

#[test]
fn texts_without_deltas() {
    let done = [
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"hm"}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"yes"}"#,
        r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"name":"read","arguments":"{\"p\":1}"}"#,
        COMPLETED,
    ];
    check(
        &events(&done),
        &expect![[r#"
            thought hm
            text yes
            call call-0-0 read {"p":1}
            Complete
        "#]],
    );
    let items = [
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"yes"},{"type":"refusal","refusal":" no"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":{"p": 1}}}"#,
        COMPLETED,
    ];
    check(
        &events(&items),
        &expect![[r#"
            thought hm
            text yes no
            call a read {"p":1}
            sealed {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}
            sealed {"type":"message","id":"msg_1","content":[{"type":"output_text","text":"yes"},{"type":"refusal","refusal":" no"}]}
            sealed {"type":"function_call","id":"fc_1","call_id":"a"}
            Complete
        "#]],
    );
    let list = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"one"}]},{"type":"web_search_call","id":"ws_1"},{"type":"message","id":"msg_2","content":[{"type":"output_text","text":"two"}]},{"type":"function_call","call_id":"a","name":"read","arguments":"{}"}]}}"#;
    check(
        &events(&[list]),
        &expect![[r#"
            text one

            two
            call a read {}
            Complete
        "#]],
    );
}

#[test]
fn items_without_an_index_or_id() {
    // As llama.cpp sends them.
    check(
        &events(&[
            r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}}"#,
            r#"{"type":"response.output_item.added","item":{"id":"rs_1","summary":[],"type":"reasoning","content":[],"encrypted_content":"","status":"in_progress"}}"#,
            r#"{"type":"response.reasoning_text.delta","delta":"hm","item_id":"rs_1"}"#,
            r#"{"type":"response.output_item.added","item":{"content":[],"id":"msg_1","role":"assistant","status":"in_progress","type":"message"}}"#,
            r#"{"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text","text":""}}"#,
            r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"I look."}"#,
            r#"{"type":"response.output_item.added","item":{"arguments":"","call_id":"call_a","name":"read","type":"function_call","status":"in_progress"}}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"{\"p\":","item_id":"fc_a"}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"1}","item_id":"fc_a"}"#,
            r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"text":"hm","type":"reasoning_text"}],"encrypted_content":""}}"#,
            r#"{"type":"response.output_text.done","item_id":"msg_1","text":"I look."}"#,
            r#"{"type":"response.output_item.done","item":{"type":"message","status":"completed","id":"msg_1","content":[{"type":"output_text","text":"I look."}],"role":"assistant"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"function_call","status":"completed","arguments":"{\"p\":1}","call_id":"call_a","name":"read"}}"#,
            r#"{"type":"response.completed","response":{"id":"resp_1","object":"response","output":[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"text":"hm","type":"reasoning_text"}]},{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"I look."}]},{"type":"function_call","arguments":"{\"p\":1}","call_id":"call_a","name":"read"}],"status":"completed","usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}}"#,
        ]),
        &expect![[r#"
            thought hm
            text I look.
            call call_a read {"p":1}
            sealed {"type":"reasoning","id":"rs_1","summary":[],"content":[{"text":"hm","type":"reasoning_text"}],"encrypted_content":""}
            sealed {"type":"message","status":"completed","id":"msg_1","content":[{"type":"output_text","text":"I look."}],"role":"assistant"}
            sealed {"type":"function_call","call_id":"call_a"}
            usage 9 3
            Complete
        "#]],
    );
}

#[test]
fn ids_that_change_with_each_event() {
    // A proxy that generates a new ID each time.
    check(
        &events(&[
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"A","call_id":"a","name":"read","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"B","delta":"{}"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"C","call_id":"a","name":"read","arguments":"{}"}}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"D","call_id":"b","name":"read","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"E","delta":"{\"p\":1}"}"#,
            r#"{"type":"response.completed","response":{"output":[{"type":"function_call","id":"F","call_id":"a","name":"read","arguments":"{}"},{"type":"function_call","id":"G","call_id":"b","name":"read","arguments":"{\"p\":1}"}]}}"#,
        ]),
        &expect![[r#"
            call a read {}
            call b read {"p":1}
            Complete
        "#]],
    );
    // A server that sets every index to 0, and sends the arguments with the announcement.
    check(
        &events(&[
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"yes"}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":"{\"p\":1}"}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"p\":1}"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"read","arguments":"{\"p\":1}"}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_2","call_id":"b","name":"read","arguments":"{\"p\":2}"}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_2","call_id":"b","name":"read"}}"#,
            COMPLETED,
        ]),
        &expect![[r#"
            text yes
            call a read {"p":1}
            call b read {"p":2}
            Complete
        "#]],
    );
}

#[test]
fn stream_without_item_announcements() {
    check(
        concat!(
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hel\"}\r\n\r\n",
            ": still here\r\n\r\n",
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"lo\"}\r\n\r\n",
            "data: {\"type\":\"keepalive\"}\r\n\r\ndata: {}\r\n\r\n",
            "data: {\"type\":\"response.completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hello!\"}]}]}\r\n\r\n",
            "data: [DONE]\r\n\r\n",
        ),
        &expect![[r#"
            text Hello!
            Complete
        "#]],
    );
    check(
        "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\ndata: [DONE]\n\n",
        &expect![[r#"
            text Hello
            Complete
        "#]],
    );
}

#[test]
fn messages_and_thinking_are_paragraphs() {
    check(
        &events(&[
            r#"{"type":"response.reasoning_text.delta","output_index":0,"item_id":"rs_1","content_index":0,"delta":"one"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"says one"}],"encrypted_content":"x"}}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"item_id":"msg_1","content_index":0,"delta":"first"}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"first"}]}}"#,
            r#"{"type":"response.reasoning_text.delta","output_index":2,"item_id":"rs_2","content_index":0,"delta":"two"}"#,
            r#"{"type":"response.refusal.delta","output_index":3,"item_id":"msg_2","content_index":0,"delta":"I can"}"#,
            r#"{"type":"response.refusal.done","output_index":3,"item_id":"msg_2","content_index":0,"refusal":"I cannot."}"#,
            COMPLETED,
        ]),
        &expect![[r#"
            thought one

            two
            text first

            I cannot.
            Complete
        "#]],
    );
}

#[test]
fn provider_state_needs_a_complete_reply() {
    let thought = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}}"#;
    let half = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x","status":"incomplete"}}"#;
    let bare = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}}"#;
    let words = r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"yes"}]}}"#;
    let limit = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#;
    check(
        &events(&[thought, words, COMPLETED]),
        &expect![[r#"
            text yes
            sealed {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}
            sealed {"type":"message","id":"msg_1","content":[{"type":"output_text","text":"yes"}]}
            Complete
        "#]],
    );
    check(
        &events(&[thought, words, limit]),
        &expect![[r#"
            text yes
            OutputLimit
        "#]],
    );
    check(
        &events(&[thought, words]),
        &expect![[r#"
            text yes
            the stream broke off
        "#]],
    );
    check(
        &events(&[half, words, COMPLETED]),
        &expect![[r#"
            text yes
            Complete
        "#]],
    );
    check(
        &events(&[bare, words, COMPLETED]),
        &expect![[r#"
            text yes
            Complete
        "#]],
    );
    check(
        &events(&[words, COMPLETED]),
        &expect![[r#"
            text yes
            Complete
        "#]],
    );
}

#[test]
fn finish_reasons_of_all_kinds() {
    let words = r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"a"}"#;
    let filter = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}"#;
    let limit = r#"{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#;
    check(
        &events(&[words, filter]),
        &expect![[r#"
            text a
            Refused
        "#]],
    );
    check(
        &events(&[words, limit]),
        &expect![[r#"
            text a
            OutputLimit
        "#]],
    );
    check(
        &events(&[words, r#"{"type":"response.incomplete","response":{}}"#]),
        &expect![[r#"
            text a
            OutputLimit
        "#]],
    );
    check(
        &events(&[words]),
        &expect![[r#"
            text a
            the stream broke off
        "#]],
    );
    check(
        &format!("{}data: {{\"type\":\"resp", events(&[words])),
        &expect![[r#"
            text a
            the stream broke off
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
fn stream_errors_of_all_kinds() {
    let words = r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"a"}"#;
    let failed = r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"Rate limit reached"},"output":[]}}"#;
    check(
        &events(&[words, failed]),
        &expect![[r#"
            text a
            the provider sent an error: {"code":"rate_limit_exceeded","message":"Rate limit reached"}
        "#]],
    );
    check(
        &events(&[r#"{"type":"response.failed","response":{"error":null}}"#]),
        &expect![[r#"
        the provider sent an error: "it ended as failed"
    "#]],
    );
    check(
        &events(&[
            r#"{"type":"error","code":"server_error","message":"boom","param":null,"sequence_number":1}"#,
        ]),
        &expect![[r#"
            the provider sent an error: {"type":"error","code":"server_error","message":"boom","param":null,"sequence_number":1}
        "#]],
    );
    check(
        &events(&[r#"{"type":"response.error","error":{"message":"boom"}}"#]),
        &expect![[r#"
        the provider sent an error: {"message":"boom"}
    "#]],
    );
    check(
        "data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n",
        &expect![[r#"
        the provider sent an error: {"message":"busy","code":503}
    "#]],
    );
    check(
        "data: {\"detail\":\"no\"}\n\n",
        &expect![[r#"
        the provider sent an error: {"detail":"no"}
    "#]],
    );
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        &expect![[r#"
        the answer is not a stream of completions: {"choices":[{"delta":{"content":"a"}}]}
    "#]],
    );
}

#[test]
fn responses_that_are_not_a_stream() {
    check(
        concat!(
            r#"{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":["#,
            r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"},"#,
            r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]},"#,
            r#"{"type":"function_call","id":"fc_1","call_id":"x","name":"read","arguments":"{\"p\":1}","status":"completed"}],"#,
            r#""usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":2},"output_tokens":1}}"#,
        ),
        &expect![[r#"
            thought hm
            text a
            call x read {"p":1}
            sealed {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}
            sealed {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]}
            sealed {"type":"function_call","id":"fc_1","call_id":"x"}
            usage 3 1 cached 2 written 0
            Complete
        "#]],
    );
    check(
        "{\"error\":{\"message\":\"no\"}}",
        &expect![[r#"
        the provider sent an error: {"message":"no"}
    "#]],
    );
    check(
        "{\"hello\":1}",
        &expect![[r#"
        the answer is not a stream of completions: {"hello":1}
    "#]],
    );
    check(
        "{\"output\":[]",
        &expect![[r#"
        the stream broke off
    "#]],
    );
    check(
        "<html>welcome</html>",
        &expect![[r#"
        the answer is not a stream of completions: a web page
    "#]],
    );
}

#[test]
fn invalid_utf8_loses_a_character_only() {
    let words = r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"a?b"}"#;
    let mut stream = events(&[words, COMPLETED]).into_bytes();
    if let Some(place) = stream.iter().position(|byte| *byte == b'?') {
        stream[place] = 0xFF;
    }
    assert_eq!(read(&[&stream]), "text a\u{FFFD}b\nComplete\n");
}

proptest::proptest! {
    /// The content of the final list is emitted once, whatever a server sends in whatever order.
    #[test]
    fn nothing_is_lost_and_nothing_said_twice(
        texts in proptest::collection::vec("[a-zü]{1,6}", 1..4),
        shapes in proptest::collection::vec(0..16_u8, 4),
        is_numbered: bool,
    ) {
        let mut stream = String::new();
        let mut list = Vec::new();
        for (index, (text, shape)) in texts.iter().zip(&shapes).enumerate() {
            let at = |kind: &str| {
                let mut event = serde_json::json!({"type": kind, "item_id": format!("msg_{index}")});
                if is_numbered {
                    event["output_index"] = index.into();
                }
                event
            };
            let content = serde_json::json!([{"type": "output_text", "text": text}]);
            let item = serde_json::json!({"type": "message", "id": format!("msg_{index}"), "content": content});
            let mut say = |event: serde_json::Value| _ = write!(stream, "data: {event}\n\n");
            if shape & 1 != 0 {
                let mut event = at("response.output_item.added");
                event["item"] = serde_json::json!({"type": "message", "id": format!("msg_{index}"), "content": []});
                say(event);
            }
            if shape & 2 != 0 {
                for letter in text.chars() {
                    let mut event = at("response.output_text.delta");
                    event["delta"] = letter.to_string().into();
                    say(event);
                }
            }
            if shape & 4 != 0 {
                let mut event = at("response.output_text.done");
                event["text"] = text.as_str().into();
                say(event);
            }
            if shape & 8 != 0 {
                let mut event = at("response.output_item.done");
                event["item"] = item.clone();
                say(event);
            }
            list.push(item);
        }
        let completed = serde_json::json!({"type": "response.completed", "response": {"output": list}});
        _ = write!(stream, "data: {completed}\n\n");
        // A message that was empty before the final list is emitted after the others.
        let is_late = |shape: &u8| shape & 14 == 0;
        let (late, early): (Vec<_>, Vec<_>) = texts.iter().zip(&shapes).partition(|(_, shape)| is_late(shape));
        let heard: Vec<&str> = early.iter().chain(&late).map(|(text, _)| text.as_str()).collect();
        proptest::prop_assert_eq!(read(&[stream.as_bytes()]), format!("text {}\nComplete\n", heard.join("\n\n")));
    }

    /// No bytes make it fail in any other way than with an error.
    #[test]
    fn any_bytes(stream in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        read(&[b"data: ", &stream]);
    }
}
