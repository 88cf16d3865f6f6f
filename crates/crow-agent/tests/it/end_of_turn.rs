//! The ends of turns that the model does not end well.

use expect_test::expect;

use crate::check;

/// A model that makes the same call over and over.
const CIRCLE: &str = r#"
        model: text "Let me plan." | call todo {"entries":[]}
        model: text "I plan." | call todo {"entries":[]}
        model: call todo {"entries":[]}
        model: text "Once more." | call todo {"entries":[]}
        model: call todo {"entries":[]}
"#;

/// A model that reads the same over and over.
const READS: &str = r#"
        file a.txt "apples\n"
        model: call read {"file_path":"a.txt"}
        model: text "I look again." | call read {"file_path":"a.txt"}
        model: call todo {"entries":[]} | call read {"file_path":"a.txt"}
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
            < text[msg-1] Let me plan.
            < call call-1-0 todo "Plan" pending {"entries":[]}
            < call call-1-0 in_progress
            < call call-1-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < text[msg-3] I plan.
            < call call-3-0 todo "Plan" pending {"entries":[]}
            < call call-3-0 in_progress
            < call call-3-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-5-0 todo "Plan" pending {"entries":[]}
            < call call-5-0 in_progress
            < call call-5-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < text[msg-7] Once more.
            < call call-7-0 todo "Plan" pending {"entries":[]}
            < call call-7-0 in_progress
            < call call-7-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-9-0 todo "Plan" pending {"entries":[]}
            < call call-9-0 in_progress
            < call call-9-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-11-100001 turn "The model repeats itself: Plan, 5 times in a row with the same result" pending {}
            ? The model repeats itself: Plan, 5 times in a row with the same result [allow_once, reject_once] -> reject_once
            < call call-11-100001 failed
            < thought[] The model repeats itself: Plan, 5 times in a row with the same result. The turn was stopped.⏎
            < title look
            = max_turn_requests
            model saw user: "look"
            model saw assistant: "Let me plan." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: "I plan." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: "Once more." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
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
            < text[msg-1] Let me plan.
            < call call-1-0 todo "Plan" pending {"entries":[]}
            < call call-1-0 in_progress
            < call call-1-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < text[msg-3] I plan.
            < call call-3-0 todo "Plan" pending {"entries":[]}
            < call call-3-0 in_progress
            < call call-3-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-5-0 todo "Plan" pending {"entries":[]}
            < call call-5-0 in_progress
            < call call-5-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < text[msg-7] Once more.
            < call call-7-0 todo "Plan" pending {"entries":[]}
            < call call-7-0 in_progress
            < call call-7-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-9-0 todo "Plan" pending {"entries":[]}
            < call call-9-0 in_progress
            < call call-9-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-11-100001 turn "The model repeats itself: Plan, 5 times in a row with the same result" pending {}
            ? The model repeats itself: Plan, 5 times in a row with the same result [allow_once, reject_once] -> silence
            > cancel
            < takes its question back
            < call call-11-100001 failed
            < title look
            = cancelled
            model saw user: "look"
            model saw assistant: "Let me plan." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: "I plan." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: "Once more." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
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
            < text[msg-1] Let me plan.
            < call call-1-0 todo "Plan" pending {"entries":[]}
            < call call-1-0 in_progress
            < call call-1-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < text[msg-3] I plan.
            < call call-3-0 todo "Plan" pending {"entries":[]}
            < call call-3-0 in_progress
            < call call-3-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-5-0 todo "Plan" pending {"entries":[]}
            < call call-5-0 in_progress
            < call call-5-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < text[msg-7] Once more.
            < call call-7-0 todo "Plan" pending {"entries":[]}
            < call call-7-0 in_progress
            < call call-7-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-9-0 todo "Plan" pending {"entries":[]}
            < call call-9-0 in_progress
            < call call-9-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-11-100001 turn "The model repeats itself: Plan, 5 times in a row with the same result" pending {}
            ? The model repeats itself: Plan, 5 times in a row with the same result [allow_once, reject_once] -> allow_once
            < call call-11-100001 completed
            < text[msg-11] Apples.
            < title look
            = end_turn
            model saw user: "look"
            model saw assistant: "Let me plan." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: "I plan." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: "Once more." todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw assistant: todo("{\"entries\":[]}")
            model saw tool: "the plan has 0 steps, 0 completed"
        "#]],
    );
}

#[test]
fn model_that_only_reads_the_same_ends_its_turn() {
    let script = format!("{READS}model: call read {{\"file_path\":\"a.txt\"}}\n> prompt look\n> end\n");
    check(
        &script,
        &expect![[r#"
            > prompt look
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] I look again.
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-3-0 in_progress
            < call call-3-0 completed "     1\tapples\n"
            < call call-5-0 todo "Plan" pending {"entries":[]}
            < call call-5-1 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-5-0 in_progress
            < call call-5-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-5-1 in_progress
            < call call-5-1 completed "     1\tapples\n"
            < call call-8-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-8-0 in_progress
            < call call-8-0 completed "     1\tapples\n"
            < call call-10-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-10-0 in_progress
            < call call-10-0 completed "     1\tapples\n"
            < thought[] The model makes the same call again and again, and nothing changes. The turn was ended.⏎
            < title look
            = max_turn_requests
            model saw user: "look"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: "I look again." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n\n(This is the same call with the same result as before, and nothing has changed since. Answer now with wha"
            model saw assistant: todo("{\"entries\":[]}") read("{\"file_path\":\"a.txt\"}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw tool: "(Not shown again: this is the third time that you make this call, and its result is the same. Answer the user now, in wo"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "(Not shown again: the result is still the same. Answer the user now, in words and without a call. The same call once mor"
        "#]],
    );
}

#[test]
fn model_that_reads_the_same_can_still_answer() {
    let script = format!("{READS}model: text \"Apples.\"\n> prompt look\n> end\n");
    check(
        &script,
        &expect![[r#"
            > prompt look
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] I look again.
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-3-0 in_progress
            < call call-3-0 completed "     1\tapples\n"
            < call call-5-0 todo "Plan" pending {"entries":[]}
            < call call-5-1 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-5-0 in_progress
            < call call-5-0 completed "the plan has 0 steps, 0 completed"
            < plan 
            < call call-5-1 in_progress
            < call call-5-1 completed "     1\tapples\n"
            < call call-8-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-8-0 in_progress
            < call call-8-0 completed "     1\tapples\n"
            < text[msg-10] Apples.
            < title look
            = end_turn
            model saw user: "look"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: "I look again." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n\n(This is the same call with the same result as before, and nothing has changed since. Answer now with wha"
            model saw assistant: todo("{\"entries\":[]}") read("{\"file_path\":\"a.txt\"}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw tool: "(Not shown again: this is the third time that you make this call, and its result is the same. Answer the user now, in wo"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "(Not shown again: the result is still the same. Answer the user now, in words and without a call. The same call once mor"
        "#]],
    );
}

#[test]
fn model_is_asked_for_the_work_that_it_announced() {
    check(
        r#"
        model: call todo {"entries":[{"content":"fix","status":"completed"},{"content":"test","status":"pending"}]}
        model: text "Fixed. Next, I'll run the tests."
        model: text "Now I will run them."
        model: text "Shall I?"
        > prompt fix it
        > end
        > prompt and now
        > end
        "#,
        &expect![[r#"
            > prompt fix it
            < call call-1-0 todo "Plan" pending {"entries":[{"content":"fix","status":"completed"},{"content":"test","status":"pending"}]}
            < call call-1-0 in_progress
            < call call-1-0 completed "the plan has 2 steps, 1 completed"
            < plan completed fix, pending test
            < text[msg-3] Fixed. Next, I'll run the tests.
            < thought[] The model announced work that it has not begun; it is asked to go on.⏎
            < text[msg-5] Now I will run them.
            < title fix it
            = end_turn
            > prompt and now
            < text[msg-7] Shall I?
            = end_turn
            model saw user: "fix it"
            model saw assistant: todo("{\"entries\":[{\"content\":\"fix\",\"status\":\"completed\"},{\"content\":\"test\",\"status\":\"pending\"}]}")
            model saw tool: "the plan has 2 steps, 1 completed"
            model saw assistant: "Fixed. Next, I'll run the tests."
            model saw user: "<resource uri=\"crow:turn/announced\">\nYou announced what comes next, but your reply has no call, and steps of your plan a"
            model saw assistant: "Now I will run them."
            model saw user: "and now"
        "#]],
    );
}
