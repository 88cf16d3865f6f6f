//! Replies that break off, and models that repeat themselves.

use expect_test::expect;

use super::check;

#[test]
fn truncated_reply_is_continued() {
    check(
        r#"
        file a.txt "apples\n"
        model: thought "First" | text "Let me " | cut
        model: text "see." | call read {"file_path":"a.txt"}
        model: text "App" | call read {"file_path":"a.txt"} | chunk {"error": {"message": "out of luck", "code": 502}}
        model: text "les."
        > prompt what is in it?
        > end
        > kill
        > load
        "#,
        &expect![[r#"
            > prompt what is in it?
            < thought[msg-1-thought] First
            < text[msg-1] Let me 
            < thought[] The reply broke off; the model is asked to continue its reply (1 of 3).⏎
            < text[msg-3] see.
            < call call-3-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-3-0 in_progress
            < call call-3-0 completed "     1\tapples\n"
            < text[msg-5] App
            < thought[] The provider is overloaded; the model is asked to continue its reply (1 of 3).⏎
            < text[msg-7] les.
            < title what is in it?
            = end_turn
            > kill
            > load
            < prompt[msg-0] what is in it?
            < thought[msg-1-thought] First
            < text[msg-1] Let me 
            < text[msg-3] see.
            < call call-3-0 read "Read a.txt" completed {"file_path":"a.txt"} "     1\tapples\n"
            < text[msg-5] App
            < text[msg-7] les.
            < title what is in it?
            = loaded
            model saw user: "what is in it?"
            model saw assistant: "Let me "
            model saw user: "<resource uri=\"crow:turn/broke_off\">\nYour reply broke off on its way: what stands above is all that arrived of it, and n"
            model saw assistant: "see." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: "App"
            model saw user: "<resource uri=\"crow:turn/broke_off\">\nYour reply broke off on its way: what stands above is all that arrived of it, and n"
        "#]],
    );
}

#[test]
fn looping_model_without_a_user() {
    let again = "model: call todo {\"entries\":[]} | call query_session {\"session_id\":\"x\"}\n".repeat(5);
    let script = format!("{again}> run run -y look\n");
    check(
        &script,
        &expect![[r#"
            $ ✓ Plan
            $ ✗ Read session x
            $ there is no session x; query_memory finds sessions by what was said in them
            $ ✓ Plan
            $ ✗ Read session x
            $ there is no session x; query_memory finds sessions by what was said in them
            $ ✓ Plan
            $ ✗ Read session x
            $ there is no session x; query_memory finds sessions by what was said in them
            $ ✓ Plan
            $ ✗ Read session x
            $ there is no session x; query_memory finds sessions by what was said in them
            $ ✓ Plan
            $ ✗ Read session x
            $ there is no session x; query_memory finds sessions by what was said in them
            $ ✗ The model repeats itself: Plan and 1 more, 5 times in a row with the same result
            $ The model repeats itself: Plan and 1 more, 5 times in a row with the same result. The turn was stopped.
            $ error: the turn reached a limit before the model was done
            $ hint: continue the session; max_turn_requests is the limit of requests in a turn
            $ session $TASK
            $ continue crow-cli run -s $TASK "…"
            model saw user: "look"
            model saw assistant: todo("{\"entries\":[]}") query_session("{\"session_id\":\"x\"}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw tool: "there is no session x; query_memory finds sessions by what was said in them"
            model saw assistant: todo("{\"entries\":[]}") query_session("{\"session_id\":\"x\"}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw tool: "there is no session x; query_memory finds sessions by what was said in them"
            model saw assistant: todo("{\"entries\":[]}") query_session("{\"session_id\":\"x\"}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw tool: "there is no session x; query_memory finds sessions by what was said in them"
            model saw assistant: todo("{\"entries\":[]}") query_session("{\"session_id\":\"x\"}")
            model saw tool: "the plan has 0 steps, 0 completed"
            model saw tool: "there is no session x; query_memory finds sessions by what was said in them"
        "#]],
    );
}
