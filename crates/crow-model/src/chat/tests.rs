//! Streams of real servers, split at every byte. `docs/dev/model-quirks.md` lists these tests.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::{ModelApi, test_decoding};

pub(super) fn read(pieces: &[&[u8]]) -> String {
    test_decoding::decode_to_text(ModelApi::CHAT, pieces)
}

#[track_caller]
pub(super) fn check(stream: &str, expected: &Expect) {
    test_decoding::check_decoding(ModelApi::CHAT, stream, expected);
}

/// A stream of these deltas with a regular end.
pub(super) fn deltas(deltas: &[&str]) -> String {
    let chunks =
        deltas.iter().map(|delta| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"));
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    chunks.chain([end.to_owned()]).collect()
}

/// A stream of these data, and nothing after them.
fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

#[test]
fn llama_cpp_begins_with_null_and_counts_time() {
    check(
        &events(&[
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"chatcmpl-a","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}"#,
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"Hm"}}],"id":"chatcmpl-a"}"#,
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"Yx1","type":"function","function":{"name":"read","arguments":"{"}}]}}]}"#,
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"p\":1}"}}]}}]}"#,
            r#"{"choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}]}"#,
            r#"{"choices":[],"usage":{"completion_tokens":9,"prompt_tokens":20,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":12}},"timings":{"cache_n":12,"prompt_n":8,"prompt_ms":1.5}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            thought Hm
            call Yx1 read {"p":1}
            usage 20 9 cached 12 written 0
            Complete
        "#]],
    );
}

#[test]
fn llama_cpp_sends_comments_while_it_reads() {
    check(
        &format!(":\n\n: still reading\n\n:\r\n\r\n{}", deltas(&[r#"{"content":"a"}"#])),
        &expect![[r#"
            text a
            Complete
        "#]],
    );
}

#[test]
fn llama_cpp_fails_in_the_middle() {
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\nerror: {\"code\":500}\n\ndata: {\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\",\"type\":\"server_error\"}}\n\n",
        &expect![[r#"
            text a
            the provider sent an error: {"code":500,"message":"Context size has been exceeded.","type":"server_error"}
        "#]],
    );
}

#[test]
fn ollama_sends_calls_whole_and_stops() {
    check(
        &events(&[
            r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_a","index":0,"type":"function","function":{"name":"read","arguments":"{\"p\":1}"}}]},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_b","index":0,"type":"function","function":{"name":"read","arguments":"{\"p\":2}"}}]},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            thought hm
            call call_a read {"p":1}
            call call_b read {"p":2}
            usage 5 3
            Complete
        "#]],
    );
}

#[test]
fn lm_studio_names_its_errors() {
    check(
        "event: error\ndata: {\"error\":{\"message\":\"The model has crashed without additional information.\"}}\n\n",
        &expect![[r#"
            the provider sent an error: {"message":"The model has crashed without additional information."}
        "#]],
    );
    check(
        "event: error\ndata: {\"message\":\"Model unloaded.\"}\n\n",
        &expect![[r#"
        the provider sent an error: {"message":"Model unloaded."}
    "#]],
    );
}

#[test]
fn vllm_has_empty_reasons_and_empty_lists_of_calls() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a","tool_calls":[]},"logprobs":null,"finish_reason":"","stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":4,"total_tokens":5,"completion_tokens":1}}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls":[]},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            text a
            usage 4 2
            Complete
        "#]],
    );
}

#[test]
fn vllm_aborts() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"abort"}]}"#,
        ]),
        &expect![[r#"
            text a
            the provider sent an error: {"message":"the reply ended with `abort`"}
        "#]],
    );
}

#[test]
fn gemini_signs_its_calls() {
    check(
        &events(&[
            r#"{"choices":[{"delta":{"content":null,"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"AY89/a=="}},"function":{"arguments":"{\"p\":1}","name":"read"},"id":"function-call-1","type":"function"}]},"index":0}],"object":"chat.completion.chunk"}"#,
            r#"{"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"p\":2}","name":"read"},"id":"function-call-2","type":"function"}]},"index":0}]}"#,
            r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":"stop","index":0}],"usage":{"completion_tokens":8,"prompt_tokens":30,"total_tokens":90}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            call function-call-1 read {"p":1}
            call function-call-2 read {"p":2}
            sealed {"call":0,"extra_content":{"google":{"thought_signature":"AY89/a=="}}}
            usage 30 60
            Complete
        "#]],
    );
}

#[test]
fn gemini_gives_calls_no_id() {
    check(
        &deltas(&[
            r#"{"tool_calls":[{"extra_content":{"google":{"thought_signature":"b"}},"function":{"arguments":"{}","name":"read"},"id":"","type":"function"}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":"{}","name":"edit"},"id":"","type":"function"}]}"#,
        ]),
        &expect![[r#"
            call call-0-0 read {}
            call call-0-1 edit {}
            sealed {"call":0,"extra_content":{"google":{"thought_signature":"b"}}}
            Complete
        "#]],
    );
}

#[test]
fn gemini_says_why_after_a_colon() {
    check(
        &events(&[
            r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":"content_filter: PROHIBITED_CONTENT","index":0}]}"#,
        ]),
        &expect![[r#"
            Refused
        "#]],
    );
    check(
        &events(&[
            r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL","index":0}]}"#,
        ]),
        &expect![[r#"
            the provider sent an error: {"message":"the reply ended with `function_call_filter: MALFORMED_FUNCTION_CALL`"}
        "#]],
    );
}

#[test]
fn mistral_thinks_in_parts() {
    check(
        &events(&[
            r#"{"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm, "}]}]},"finish_reason":null}]}"#,
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"so"}],"closed":true},{"type":"text","text":"A"}]},"finish_reason":null}]}"#,
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":"B"},"finish_reason":null}]}"#,
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":"","tool_calls":[{"id":"D681PevKs","function":{"name":"read","arguments":"{\"p\": 1}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"total_tokens":19,"completion_tokens":10}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            thought Hm, so
            text AB
            call D681PevKs read {"p":1}
            usage 9 10
            Complete
        "#]],
    );
    check(
        &events(&[r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"model_length"}]}"#]),
        &expect![[r#"
            text a
            OutputLimit
        "#]],
    );
}

#[test]
fn groq_counts_elsewhere() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"x_groq":{"id":"req_1"}}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning":"hm","channel":"analysis"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"queue_time":0.1,"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            thought hm
            text a
            usage 11 2
            Complete
        "#]],
    );
}

#[test]
fn deepseek_counts_its_cache() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a","reasoning_content":null},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":2},"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            thought hm
            text a
            usage 100 5 cached 64 written 0
            Complete
        "#]],
    );
    check(
        ": keep-alive\n\n: keep-alive\n\n",
        &expect![[r#"
        the stream broke off
    "#]],
    );
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"insufficient_system_resource"}]}"#,
        ]),
        &expect![[r#"
            text a
            the provider sent an error: {"message":"the reply ended with `insufficient_system_resource`"}
        "#]],
    );
}

#[test]
fn moonshot_counts_inside_the_choice() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":2,"total_tokens":21,"cached_tokens":10}}]}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            text a
            usage 19 2 cached 10 written 0
            Complete
        "#]],
    );
}

#[test]
fn xai_omits_reasoning_from_the_text() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a","role":"assistant"},"finish_reason":"stop"}],"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":136,"prompt_tokens_details":{"text_tokens":32,"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":95}}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            text a
            usage 32 104 cached 6 written 0
            Complete
        "#]],
    );
}

#[test]
fn openrouter_streams_reasoning_details_in_pieces() {
    check(
        &format!(
            ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n{}",
            events(&[
                r#"{"provider":"Anthropic","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Let","reasoning_details":[{"type":"reasoning.text","text":"Let","format":"anthropic-claude-v1","index":0}]},"finish_reason":null,"native_finish_reason":null}]}"#,
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":" me","reasoning_details":[{"type":"reasoning.text","text":" me","signature":null,"format":"anthropic-claude-v1","index":0}]},"finish_reason":null}]}"#,
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"Et8BCm","format":"anthropic-claude-v1","index":0}]},"finish_reason":null}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"cipher","id":"rs_1","index":1}]},"finish_reason":null}]}"#,
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":"stop","native_finish_reason":"end_turn"}]}"#,
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.00095,"is_byok":false,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":50},"cost_details":{"upstream_inference_cost":null}}}"#,
                "[DONE]",
            ])
        ),
        &expect![[r#"
            thought Let me
            text a
            sealed {"reasoning_details":[{"type":"reasoning.text","text":"Let me","format":"anthropic-claude-v1","index":0,"signature":"Et8BCm"},{"type":"reasoning.encrypted","data":"cipher","id":"rs_1","index":1}]}
            usage 194 2 cached 100 written 50 cost 950000
            Complete
        "#]],
    );
}

#[test]
fn openrouter_breaks_off_with_an_error() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a","reasoning_details":[{"type":"reasoning.text","text":"half"}]},"finish_reason":null}]}"#,
            r#"{"id":"gen-1","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        ]),
        &expect![[r#"
            text a
            the provider sent an error: {"code":502,"message":"Provider disconnected"}
        "#]],
    );
    check(
        r#"{"choices":[{"error":{"code":502,"message":"Upstream error"},"finish_reason":"error","index":0,"message":{"content":""}}]}"#,
        &expect![[r#"
            the provider sent an error: {"code":502,"message":"Upstream error"}
        "#]],
    );
    check(
        &events(&[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#]),
        &expect![[r#"
        the provider sent an error: {"message":"the reply ended with `error`"}
    "#]],
    );
}

#[test]
fn azure_begins_with_the_filter() {
    check(
        &events(&[
            r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#,
            r#"{"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}]}"#,
            r#"{"choices":[{"content_filter_results":{},"delta":{"content":"a"},"finish_reason":null,"index":0}]}"#,
            r#"{"choices":[{"content_filter_offsets":{"check_offset":1,"start_offset":1,"end_offset":2},"content_filter_results":{},"finish_reason":null,"index":0}]}"#,
            r#"{"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"content_filter","index":0}]}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            text a
            Refused
        "#]],
    );
}

#[test]
fn cerebras_sends_bare_errors() {
    check(
        &events(&[
            r#"{"message":"We're experiencing high traffic right now!","type":"too_many_requests_error","param":"queue","code":"queue_exceeded"}"#,
        ]),
        &expect![[r#"
            the provider sent an error: {"message":"We're experiencing high traffic right now!","type":"too_many_requests_error","param":"queue","code":"queue_exceeded"}
        "#]],
    );
    check(
        &events(&[
            r#"{"id":"c","choices":[{"delta":{"role":"assistant","reasoning":"hm"},"index":0}],"object":"chat.completion.chunk"}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":0}},"time_info":{"queue_time":0.1}}"#,
        ]),
        &expect![[r#"
            thought hm
            usage 3 4
            Complete
        "#]],
    );
}

#[test]
fn together_repeats_roles_and_ends_twice() {
    check(
        &events(&[
            r#"{"id":"o","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null,"seed":null,"delta":{"token_id":42,"role":"assistant","content":"a","tool_calls":null}}],"usage":null}"#,
            r#"{"id":"o","choices":[{"index":0,"text":"","finish_reason":"length","seed":7,"delta":{"role":"assistant","content":""}}],"usage":null}"#,
            r#"{"id":"o","choices":[{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6,"cached_tokens":0}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            text a
            usage 5 1
            OutputLimit
        "#]],
    );
}

#[test]
fn litellm_forwards_other_providers() {
    check(
        &events(&[
            r#"{"choices":[{"index":"0","delta":{"content":"a","tool_calls":null,"function_call":null,"provider_specific_fields":null},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1,"id":"toolu_1","function":{"name":"read","arguments":""},"type":"function"}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1,"id":null,"function":{"name":null,"arguments":"{\"p\":1}"},"type":"function"}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"completion_tokens":5,"prompt_tokens":20,"total_tokens":25,"cache_creation_input_tokens":8,"cache_read_input_tokens":10}}"#,
            "[DONE]",
        ]),
        &expect![[r#"
            text a
            call toolu_1 read {"p":1}
            usage 20 5 cached 10 written 8
            Complete
        "#]],
    );
}

#[test]
fn gateways_send_null_as_a_string() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"null"}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"null"}]}"#,
        ]),
        &expect![[r#"
            text ab
            the stream broke off
        "#]],
    );
}

#[test]
fn cache_counted_separately_is_added() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5.0,"completion_tokens":1,"cache_read_input_tokens":100,"cache_creation_input_tokens":20}}"#,
        ]),
        &expect![[r#"
            usage 125 1 cached 100 written 20
            Complete
        "#]],
    );
}

#[test]
fn own_key_is_paid_elsewhere() {
    check(
        &events(&[
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"cost":0.001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.02}}}"#,
        ]),
        &expect![[r#"
            usage 5 1 cost 21000000
            Complete
        "#]],
    );
}

#[test]
fn endless_record_is_dropped() {
    let piece = format!(
        r#"{{"choices":[{{"delta":{{"content":"a","reasoning_details":[{{"type":"reasoning.text","text":"{}"}}]}}}}]}}"#,
        "x".repeat(1024 * 1024)
    );
    let end = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let stream = events(&[&piece, &piece, &piece, &piece, end]);
    assert_eq!(read(&[stream.as_bytes()]), "text aaaa\nComplete\n");
    let stream = events(&[&piece, end]);
    assert!(read(&[stream.as_bytes()]).starts_with("text a\nsealed {\"reasoning_details\":[{"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_alike_wherever_they_are_cut(
        pieces in prop::collection::vec(prop_oneof![
            Just("data: ".to_owned()), Just("\n\n".to_owned()), Just("\r".to_owned()), Just("[DONE]".to_owned()),
            Just(r#"{"choices":[{"delta":{"#.to_owned()), Just(r#""content":"#.to_owned()), Just("}}]}".to_owned()),
            Just(r#""tool_calls":[{"function":{"name":"f","arguments":"#.to_owned()), Just(r#""finish_reason":"stop""#.to_owned()),
            Just(r#"{"error":"#.to_owned()), "[ -~]{0,12}", "\\PC{0,4}",
        ], 0..24),
        cut in any::<prop::sample::Index>(),
    ) {
        let stream: String = pieces.concat();
        let cut = cut.index(stream.len() + 1);
        let (head, tail) = stream.as_bytes().split_at(cut);
        prop_assert_eq!(read(&[head, tail]), read(&[stream.as_bytes()]));
    }
}
