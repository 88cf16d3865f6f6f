//! Turns over the other model APIs.

use expect_test::expect;

use crate::check;

#[test]
fn turn_with_reasoning_and_calls_and_the_next() {
    check(
        r#"
        api: messages
        file a.txt "apples\n"
        model: thought "I must look." | text "I look." | call read {"file_path":"a.txt"} | usage 300 9 | cache 0 280
        model: call read {"file_path":"b.txt"} | usage 320 6 | cache 280 30
        model: thought "Apples." | text "It says apples." | usage 350 5 | cache 280 60
        model: text "You are welcome." | usage 370 4 | cache 340 20
        > set thought_level low
        > prompt what does a.txt say?
        > end
        > prompt thanks
        > end
        "#,
        &expect![[r#"
            > set thought_level low
            = mode=ask model=scripted thought_level=low
            > prompt what does a.txt say?
            < config_option_update
            < thought[msg-1-thought] I must look.
            < text[msg-1] I look.
            < usage 309/32000
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < usage 326/32000
            < call call-3-0 read "Read b.txt" pending {"file_path":"b.txt"}
            < call call-3-0 in_progress
            < call call-3-0 failed "could not read b.txt: it does not exist; similar names in that directory: a.txt"
            < thought[msg-5-thought] Apples.
            < text[msg-5] It says apples.
            < usage 355/32000
            < title what does a.txt say?
            = end_turn
            > prompt thanks
            < text[msg-7] You are welcome.
            < usage 374/32000
            = end_turn
            model saw user: "what does a.txt say?"
            model saw assistant: thinking "I must look." "I look." read({"file_path":"a.txt"})
            model saw user: result "     1\tapples\n"
            model saw assistant: read({"file_path":"b.txt"})
            model saw user: failure "could not read b.txt: it does not exist; similar names in that directory: a.txt"
            model saw assistant: thinking "Apples." "It says apples."
            model saw user: "thanks"
        "#]],
    );
}

#[test]
fn truncated_call_and_refusing_model() {
    check(
        r#"
        api: messages
        model: text "I write." | call read {"file_path":"a.t"} | finish max_tokens
        model: text "No." | finish refusal
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < text[msg-1] I write.
            < call call-1-0 read "read" pending {}
            < call call-1-0 in_progress
            < call call-1-0 failed "`read` was not run: the output limit truncated the reply inside this call; send the call again in smaller parts"
            < text[msg-3] No.
            < title go
            = refusal
            model saw user: "go"
            model saw assistant: "I write." read({})
            model saw user: failure "`read` was not run: the output limit truncated the reply inside this call; send the call again in smaller parts"
        "#]],
    );
}

#[test]
fn failures_are_reported_by_their_kind() {
    check(
        r#"
        api: messages
        model: status 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
        model: text "half" | chunk {"type":"error","error":{"type":"api_error","message":"Internal server error"}}
        model: text " and half"
        model: status 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}
        > prompt one
        > end
        > prompt two
        > end
        > prompt three
        > end
        "#,
        &expect![[r#"
            > prompt one
            < title one
            ! -32603 provider_overloaded: `fake` is overloaded or failing for `scripted` (529): Overloaded; try again later
            > prompt two
            < text[msg-2] half
            < thought[] The provider is overloaded; the model is asked to continue its reply (1 of 3).⏎
            < text[msg-4]  and half
            = end_turn
            > prompt three
            ! -32603 provider_auth: `fake` needs a key (401): invalid x-api-key; configure its `api_key`
            model saw user: "one" "two"
            model saw assistant: "half"
            model saw user: "<resource uri=\"crow:turn/broke_off\">\nYour reply broke off on its way: what stands above is all that arrived of it, and n"
            model saw assistant: " and half"
            model saw user: "three"
        "#]],
    );
}

#[test]
fn responses_api_stop_reasons() {
    check(
        r#"
        api: responses
        model: text "I begin" | finish length
        model: text "I go on."
        model: chunk {"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"It was flagged."}}}
        > prompt go
        > end
        > prompt and on
        > end
        > prompt and more
        > end
        "#,
        &expect![[r#"
            > prompt go
            < text[msg-1] I begin
            < title go
            = max_tokens
            > prompt and on
            < text[msg-3] I go on.
            = end_turn
            > prompt and more
            ! -32603 provider_rejected: `fake` rejected the content of the conversation for `scripted` (400): It was flagged; rephrase it or use another model
            model saw user "go"
            model saw assistant msg_crow_1 "I begin"
            model saw user "and on"
            model saw assistant msg_crow_3 "I go on."
            model saw user "and more"
        "#]],
    );
}
