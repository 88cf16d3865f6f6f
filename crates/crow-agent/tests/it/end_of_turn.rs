//! The ends of turns that the model does not end well.

use expect_test::expect;

use crate::check;

const CIRCLE: &str = r#"
        file a.txt "apples\n"
        model: text "Let me see." | call read {"file_path":"a.txt"}
        model: text "I look at it." | call read {"file_path":"a.txt"}
        model: call read {"file_path":"a.txt"}
        model: text "Once more." | call read {"file_path":"a.txt"}
        model: call read {"file_path":"a.txt"}
"#;

#[test]
fn model_that_always_truncates_ends_the_turn() {
    check(
        r#"
        model: text "One" | cut
        model: thought "Two" | cut
        model: text "Three" | cut
        model: text "Four" | chunk {"error": {"message": "out of luck", "code": 503}}
        model: text "I am back."
        > prompt count
        > end
        > prompt are you there?
        > end
        "#,
        &expect![[r#"
            > prompt count
            < text[msg-1] One
            < thought[] The reply broke off; the model is asked to continue its reply (1 of 3).⏎
            < thought[msg-3-thought] Two
            < thought[] The reply broke off; the model is asked to continue its reply (2 of 3).⏎
            < text[msg-5] Three
            < thought[] The reply broke off; the model is asked to continue its reply (3 of 3).⏎
            < text[msg-7] Four
            < title count
            ! -32603 provider_overloaded: `fake` is overloaded or failing for `scripted` (503): out of luck; try again later
            > prompt are you there?
            < text[msg-9] I am back.
            = end_turn
            model saw user: "count"
            model saw assistant: "One"
            model saw user: "<resource uri=\"crow:turn/broke_off\">\nYour reply broke off on its way: what stands above is all that arrived of it, and n"
            model saw assistant: "Three"
            model saw user: "<resource uri=\"crow:turn/broke_off\">\nYour reply broke off on its way: what stands above is all that arrived of it, and n"
            model saw assistant: "Four"
            model saw user: "are you there?"
        "#]],
    );
}

#[test]
fn reply_is_not_continued_after_the_limit_or_a_final_error() {
    check(
        r#"
        config: max_turn_requests: 1
        model: text "One" | chunk {"error": {"message": "bad key", "code": 401}}
        model: text "One" | chunk {"error": {"message": "out of luck", "code": 503}}
        > prompt count
        > end
        > prompt and again
        > end
        "#,
        &expect![[r#"
            > prompt count
            < text[msg-1] One
            < title count
            ! -32603 provider_auth: `fake` needs a key (401): bad key; configure its `api_key`
            > prompt and again
            < text[msg-3] One
            ! -32603 provider_overloaded: `fake` is overloaded or failing for `scripted` (503): out of luck; try again later
            model saw user: "count"
            model saw assistant: "One"
            model saw user: "and again"
        "#]],
    );
}

#[test]
fn looping_model_is_stopped() {
    let script = format!("{CIRCLE}> prompt look\n> answer reject_once\n> end\n");
    check(
        &script,
        &expect![[r#"
            > prompt look
            < text[msg-1] Let me see.
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] I look at it.
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-3-0 in_progress
            < call call-3-0 completed "     1\tapples\n"
            < call call-5-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-5-0 in_progress
            < call call-5-0 completed "     1\tapples\n"
            < text[msg-7] Once more.
            < call call-7-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-7-0 in_progress
            < call call-7-0 completed "     1\tapples\n"
            < call call-9-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-9-0 in_progress
            < call call-9-0 completed "     1\tapples\n"
            < call call-11-100001 turn "The model repeats itself: Read a.txt, 5 times in a row with the same result" pending {}
            ? The model repeats itself: Read a.txt, 5 times in a row with the same result [allow_once, reject_once] -> reject_once
            < call call-11-100001 failed
            < thought[] The model repeats itself: Read a.txt, 5 times in a row with the same result. The turn was stopped.⏎
            < title look
            = max_turn_requests
            model saw user: "look"
            model saw assistant: "Let me see." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: "I look at it." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: "Once more." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
        "#]],
    );
}

#[test]
fn looping_model_is_cancelled() {
    let script = format!("{CIRCLE}> prompt look\n> answer silence\n> wait ? The model\n> cancel\n> end\n");
    check(
        &script,
        &expect![[r#"
        > prompt look
        < text[msg-1] Let me see.
        < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-1-0 in_progress
        < call call-1-0 completed "     1\tapples\n"
        < text[msg-3] I look at it.
        < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-3-0 in_progress
        < call call-3-0 completed "     1\tapples\n"
        < call call-5-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-5-0 in_progress
        < call call-5-0 completed "     1\tapples\n"
        < text[msg-7] Once more.
        < call call-7-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-7-0 in_progress
        < call call-7-0 completed "     1\tapples\n"
        < call call-9-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-9-0 in_progress
        < call call-9-0 completed "     1\tapples\n"
        < call call-11-100001 turn "The model repeats itself: Read a.txt, 5 times in a row with the same result" pending {}
        ? The model repeats itself: Read a.txt, 5 times in a row with the same result [allow_once, reject_once] -> silence
        > cancel
        < takes its question back
        < call call-11-100001 failed
        < title look
        = cancelled
        model saw user: "look"
        model saw assistant: "Let me see." read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: "I look at it." read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: "Once more." read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
    "#]],
    );
}

#[test]
fn looping_model_continues_if_the_user_agrees() {
    let script = format!("{CIRCLE}model: text \"Apples.\"\n> prompt look\n> answer allow_once\n> end\n");
    check(
        &script,
        &expect![[r#"
        > prompt look
        < text[msg-1] Let me see.
        < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-1-0 in_progress
        < call call-1-0 completed "     1\tapples\n"
        < text[msg-3] I look at it.
        < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-3-0 in_progress
        < call call-3-0 completed "     1\tapples\n"
        < call call-5-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-5-0 in_progress
        < call call-5-0 completed "     1\tapples\n"
        < text[msg-7] Once more.
        < call call-7-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-7-0 in_progress
        < call call-7-0 completed "     1\tapples\n"
        < call call-9-0 read "Read a.txt" pending {"file_path":"a.txt"}
        < call call-9-0 in_progress
        < call call-9-0 completed "     1\tapples\n"
        < call call-11-100001 turn "The model repeats itself: Read a.txt, 5 times in a row with the same result" pending {}
        ? The model repeats itself: Read a.txt, 5 times in a row with the same result [allow_once, reject_once] -> allow_once
        < call call-11-100001 completed
        < text[msg-11] Apples.
        < title look
        = end_turn
        model saw user: "look"
        model saw assistant: "Let me see." read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: "I look at it." read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: "Once more." read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
        model saw assistant: read("{\"file_path\":\"a.txt\"}")
        model saw tool: "     1\tapples\n"
    "#]],
    );
}
