//! Turns: prompts, replies, cancellation, steering.

use expect_test::expect;

use crate::check;

#[test]
fn plain_answer() {
    check(
        r#"
        model: thought "They greet." | text "Hello " | text "there." | usage 20 4
        > prompt hello
        > end
        "#,
        &expect![[r#"
            > prompt hello
            < thought[msg-1-thought] They greet.
            < text[msg-1] Hello there.
            < usage 24/32000
            < title hello
            = end_turn
            model saw user: "hello"
        "#]],
    );
}

#[test]
fn empty_reply_is_noticed() {
    check(
        r#"
        client: {"session": {"notices": {}}}
        model: usage 20 0
        > prompt hello
        > end
        "#,
        &expect![[r#"
            > prompt hello
            < notice warning "The model's reply was empty." ""
            < title hello
            = end_turn
            model saw user: "hello"
        "#]],
    );
}

#[test]
fn tool_round() {
    check(
        r#"
        file a.txt "apples\n"
        model: text "I look." | call read {"file_path":"a.txt"} | usage 30 9
        model: text "It says apples." | usage 50 5
        > prompt what does a.txt say?
        > end
        "#,
        &expect![[r#"
            > prompt what does a.txt say?
            < text[msg-1] I look.
            < usage 39/32000
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] It says apples.
            < usage 55/32000
            < title what does a.txt say?
            = end_turn
            model saw user: "what does a.txt say?"
            model saw assistant: "I look." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
        "#]],
    );
}

#[test]
fn cancel_in_text() {
    check(
        r#"
        model: text "I begin" | hold
        model: text "Again."
        > prompt go on
        > wait I begin
        > cancel
        > end
        > hung-up 0
        > prompt once more
        > end
        "#,
        &expect![[r#"
            > prompt go on
            < text[msg-1] I begin
            > cancel
            < title go on
            = cancelled
            > prompt once more
            < text[msg-3] Again.
            = end_turn
            model saw user: "go on"
            model saw assistant: "I begin"
            model saw user: "once more"
        "#]],
    );
}

#[test]
fn cancel_in_arguments() {
    check(
        r#"
        model: text "I write" | chunk {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"write","arguments":"{\"file_path\":\"a.txt\",\"content\":\"ha"}}]}}]} | hold
        model: text "Nothing was written."
        > prompt write it
        > wait I write
        > cancel
        > end
        > hung-up 0
        > prompt did you?
        > end
        "#,
        &expect![[r#"
            > prompt write it
            < text[msg-1] I write
            > cancel
            < title write it
            = cancelled
            > prompt did you?
            < text[msg-3] Nothing was written.
            = end_turn
            model saw user: "write it"
            model saw assistant: "I write"
            model saw user: "did you?"
        "#]],
    );
}

#[test]
fn compaction_does_not_run_far_below_the_window() {
    check(
        r#"
        model: text "One." | usage 10 2
        model: text "Two." | usage 20 2
        > prompt one
        > end
        > prompt two
        > end
        "#,
        &expect![[r#"
            > prompt one
            < text[msg-1] One.
            < usage 12/32000
            < title one
            = end_turn
            > prompt two
            < text[msg-3] Two.
            < usage 22/32000
            = end_turn
            model saw user: "one"
            model saw assistant: "One."
            model saw user: "two"
        "#]],
    );
}

#[test]
fn dead_model_fails_the_turn_and_not_the_session() {
    check(
        r#"
        model: status 401 {"error":{"message":"bad key"}}
        model: text "Back."
        > prompt hello
        > end
        > prompt still there?
        > end
        "#,
        &expect![[r#"
            > prompt hello
            < title hello
            ! -32603 provider_auth: `fake` needs a key (401): bad key; configure its `api_key`
            > prompt still there?
            < text[msg-2] Back.
            = end_turn
            model saw user: "hello\nstill there?"
        "#]],
    );
}

#[test]
fn steering_reaches_the_running_turn() {
    check(
        r#"
        model: text "I begin" | hold
        model: text "Left, then."
        > prompt go on
        > wait I begin
        > steer to the left
        > release
        > steered
        > end
        "#,
        &expect![[r#"
            > prompt go on
            < text[msg-1] I begin
            > steer to the left
            = injected
            < text[msg-3] Left, then.
            < title go on
            = end_turn
            model saw user: "go on"
            model saw assistant: "I begin"
            model saw user: "to the left"
        "#]],
    );
}

#[test]
fn queued_prompts_are_cancelled() {
    check(
        r#"
        model: text "I begin" | hold | text " and end."
        model: text "Second."
        model: text "Fourth." | hold
        > prompt first
        > wait I begin
        > queue second
        > queue third
        > withdraw
        > asked 1
        > release
        > end
        > end
        > end
        > prompt fourth
        > wait Fourth.
        > withdraw
        > end
        "#,
        &expect![[r#"
            > prompt first
            < text[msg-1] I begin
            > queue second
            > queue third
            > withdraw
            < text[msg-1]  and end.
            < title first
            = end_turn
            < text[msg-3] Second.
            = end_turn
            = cancelled
            > prompt fourth
            < text[msg-5] Fourth.
            > withdraw
            = cancelled
            model saw user: "first"
            model saw assistant: "I begin and end."
            model saw user: "second"
            model saw assistant: "Second."
            model saw user: "fourth"
        "#]],
    );
}

#[test]
fn request_limit_ends_the_turn() {
    check(
        r#"
        config: max_turn_requests: 2
        file a.txt "apples\n"
        model: call read {"file_path":"a.txt"}
        model: call read {"file_path":"b.txt"}
        > prompt look
        > end
        "#,
        &expect![[r#"
            > prompt look
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < call call-3-0 read "Read b.txt" pending {"file_path":"b.txt"}
            < call call-3-0 in_progress
            < call call-3-0 failed "could not read b.txt: it does not exist; similar names in that directory: a.txt"
            < title look
            = max_turn_requests
            model saw user: "look"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
        "#]],
    );
}

#[test]
fn steering_during_the_last_reply_continues_the_turn() {
    check(
        r#"
        model: text "Done." | hold
        model: text "Also that."
        > prompt do this
        > wait Done.
        > steer and that
        > release
        > steered
        > end
        "#,
        &expect![[r#"
            > prompt do this
            < text[msg-1] Done.
            > steer and that
            = injected
            < text[msg-3] Also that.
            < title do this
            = end_turn
            model saw user: "do this"
            model saw assistant: "Done."
            model saw user: "and that"
        "#]],
    );
}

#[test]
fn queued_prompt_runs_after_the_turn() {
    check(
        r#"
        model: text "One" | hold | text "."
        model: text "Two."
        > prompt first
        > wait One
        > queue second
        > release
        > end
        > end
        "#,
        &expect![[r#"
            > prompt first
            < text[msg-1] One
            > queue second
            < text[msg-1] .
            < title first
            = end_turn
            < text[msg-3] Two.
            = end_turn
            model saw user: "first"
            model saw assistant: "One."
            model saw user: "second"
        "#]],
    );
}

#[test]
fn withdrawn_prompt_does_not_run() {
    check(
        r#"
        model: text "One" | hold | text "."
        > prompt first
        > wait One
        > queue second
        > withdraw
        > release
        > end
        > end
        "#,
        &expect![[r#"
            > prompt first
            < text[msg-1] One
            > queue second
            > withdraw
            < text[msg-1] .
            < title first
            = end_turn
            = cancelled
            model saw user: "first"
        "#]],
    );
}
