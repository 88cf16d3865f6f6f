//! The life of a session.

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{Answer, ModelServer, Script};
use expect_test::expect;
use serde_json::json;

use crate::{agent_config, check, spawn_agent};

#[test]
fn session_is_closed_resumed_and_deleted() {
    check(
        r#"
        model: text "One."
        model: text "Two."
        > prompt one
        > end
        > set thought_level high
        > mode plan
        > close
        > prompt two
        > end
        > resume
        > prompt two
        > end
        > list
        > delete
        > list
        > load
        > resume
        "#,
        &expect![[r#"
            > prompt one
            < text[msg-1] One.
            < title one
            = end_turn
            > set thought_level high
            = mode=ask model=scripted thought_level=high
            > mode plan
            < config_option_update
            = set
            > close
            < mode plan
            < config_option_update
            = closed
            > prompt two
            ! -32002 session_not_found: the session $SESSION is not open; load or resume it first
            > resume
            = resumed
            > prompt two
            < text[msg-3] Two.
            = end_turn
            > list
            = $SESSION "one"
            > delete
            = deleted
            > list
            =
            > load
            ! -32002 session_not_found: there is no session $SESSION; `crow-cli inspect` lists the sessions
            > resume
            ! -32002 session_not_found: there is no session $SESSION; `crow-cli inspect` lists the sessions
            model saw user: "one"
            model saw assistant: "One."
            model saw user: "<resource uri=\"crow:environment\">\nPermission mode: plan (reads only)\n</resource>\ntwo"
        "#]],
    );
}

#[test]
fn deleted_session_is_not_found() {
    check(
        r#"
        > delete
        > load
        > prompt hello
        > end
        "#,
        &expect![[r#"
            > delete
            = deleted
            > load
            ! -32002 session_not_found: there is no session $SESSION; `crow-cli inspect` lists the sessions
            > prompt hello
            ! -32002 session_not_found: the session $SESSION is not open; load or resume it first
        "#]],
    );
}

#[test]
fn options_are_set_and_rejected() {
    check(
        r#"
        > set mode accept-edits
        > set thought_level high
        > set mode fast
        > set colour red
        > mode auto
        "#,
        &expect![[r#"
            > set mode accept-edits
            = mode=accept-edits model=scripted thought_level=default
            > set thought_level high
            < mode accept-edits
            < config_option_update
            = mode=accept-edits model=scripted thought_level=high
            > set mode fast
            < config_option_update
            ! -32602 invalid_value: there is no mode fast; the modes are: ask | accept-edits | plan | auto
            > set colour red
            ! -32602 invalid_value: there is no option colour; the options are: mode, model, thought_level
            > mode auto
            = set
        "#]],
    );
}

#[test]
fn session_loads_with_its_history() {
    check(
        r#"
        file a.txt "apples\n"
        model: text "I look." | call read {"file_path":"a.txt"}
        model: text "Apples." | usage 50 5
        > prompt what is in a.txt?
        > end
        > close
        > load
        "#,
        &expect![[r#"
            > prompt what is in a.txt?
            < text[msg-1] I look.
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] Apples.
            < usage 55/32000
            < title what is in a.txt?
            = end_turn
            > close
            = closed
            > load
            < prompt[msg-0] what is in a.txt?
            < text[msg-1] I look.
            < call call-1-0 read "Read a.txt" completed {"file_path":"a.txt"} "     1\tapples\n"
            < text[msg-3] Apples.
            < usage 55/32000
            < title what is in a.txt?
            = loaded
            model saw user: "what is in a.txt?"
            model saw assistant: "I look." read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
        "#]],
    );
}

#[test]
fn commands_answer_without_a_model() {
    check(
        r#"
        > prompt /mode
        > end
        > prompt /mode plan
        > end
        > prompt /model
        > end
        > prompt /sessions
        > end
        > prompt /undo sideways
        > end
        "#,
        &expect![[r#"
            > prompt /mode
            < text[note-1] The mode is ask. The modes are ask | accept-edits | plan | auto.⏎
            = end_turn
            > prompt /mode plan
            < mode plan
            < config_option_update
            < text[note-2] Mode plan, model scripted.⏎
            = end_turn
            > prompt /model
            < text[note-3] The model is scripted. Configured: scripted.⏎
            = end_turn
            > prompt /sessions
            < text[note-4] No sessions in this directory yet.⏎
            = end_turn
            > prompt /undo sideways
            < text[note-5] Nothing was undone. Type /undo, /undo N, /undo --dry-run or /undo skip.⏎
            = end_turn
        "#]],
    );
}

/// Each piece of a long reply has its number in it.
fn numbered_piece(number: usize) -> String {
    format!("{number} {} ", "x".repeat(400))
}

#[tokio::test]
async fn load_during_a_reply_shows_each_word_once() {
    // More than waits for a client, so that the reply goes on during the load.
    let pieces: Vec<String> = (0..8000).map(numbered_piece).collect();
    let events: Vec<String> = pieces.iter().map(|piece| format!("text {piece:?}")).collect();
    let server = ModelServer::start(Script::new([Answer::parse(&events.join(" | "))]));
    let home = TestHome::new(server.base_url());
    let config = agent_config(&home);
    let mut client =
        FakeClient::start_in_process(&home.home(), |stdin, stdout| spawn_agent(config, stdin, stdout));
    client.initialize(json!({})).await.expect("the agent answers");
    let session = client.new_session(&home.project()).await;
    let prompt_id = client.prompt(&session, "go").await;
    while client.next_message().await["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    let params = json!({"sessionId": session, "cwd": home.project(), "mcpServers": []});
    let load_id = client.send("session/load", params).await;
    let (mut text, mut is_replayed) = (String::new(), false);
    let mut open_requests = vec![json!(prompt_id), json!(load_id)];
    while !open_requests.is_empty() {
        let message = client.next_message().await;
        open_requests.retain(|id| message["id"] != *id);
        let update = &message["params"]["update"];
        match update["sessionUpdate"].as_str() {
            // What was under way before the replay begins with the prompt is not part of it.
            Some("user_message_chunk") => (text, is_replayed) = (String::new(), true),
            Some("agent_message_chunk") => text += update["content"]["text"].as_str().expect("it is text"),
            Some(_) | None => {}
        }
    }
    assert!(is_replayed);
    let numbers =
        |text: &str| -> Vec<usize> { text.split(' ').filter_map(|word| word.parse().ok()).collect() };
    let (shown, expected) = (numbers(&text), (0..8000).collect::<Vec<_>>());
    let first_wrong = shown.iter().zip(&expected).position(|(shown, expected)| shown != expected);
    assert_eq!((first_wrong, shown.len()), (None, 8000));
}
