//! Transcripts with models that write their calls as text.

use expect_test::expect;

use super::check;

#[test]
fn text_call_alone_runs_with_a_notice() {
    check(
        r#"
        file a.txt "apples\n"
        model: text "```json\n{\"name\": \"read\"," | text " \"arguments\": {\"file_path\": \"a.txt\"}}\n```"
        model: text "It says apples."
        model: text "You are welcome."
        > prompt what does a.txt say?
        > end
        > kill
        > load
        > prompt thanks
        > end
        "#,
        &expect![[r#"
            > prompt what does a.txt say?
            < thought[] `scripted` wrote its call of `read` as text; it is run as a tool call (`tool_calls: native` disables that)⏎
            < call call-1-0 read "Read a.txt" pending {"file_path":"a.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tapples\n"
            < text[msg-3] It says apples.
            < title what does a.txt say?
            = end_turn
            > kill
            > load
            < prompt[msg-0] what does a.txt say?
            < call call-1-0 read "Read a.txt" completed {"file_path":"a.txt"} "     1\tapples\n"
            < text[msg-3] It says apples.
            < title what does a.txt say?
            = loaded
            > prompt thanks
            < text[msg-5] You are welcome.
            = end_turn
            model saw user: "what does a.txt say?"
            model saw assistant: read("{\"file_path\":\"a.txt\"}")
            model saw tool: "     1\tapples\n"
            model saw assistant: "It says apples."
            model saw user: "thanks"
        "#]],
    );
}

#[test]
fn example_in_an_explanation_does_not_run() {
    check(
        r#"
        model: text "So:\n```json\n{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}\n```\n"
        model: text "Or so:\n<tool_call>{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}</tool_call>"
        > prompt how are you called?
        > end
        > prompt how else?
        > end
        "#,
        &expect![[r#"
            > prompt how are you called?
            < text[msg-1] So:⏎```json⏎{"name": "terminal", "arguments": {"command": "touch ran"}}⏎```⏎
            < title how are you called?
            = end_turn
            > prompt how else?
            < text[msg-3] Or so:⏎<tool_call>{"name": "terminal", "arguments": {"command": "touch ran"}}</tool_call>
            < thought[] `scripted` ended its reply with a tool call as text; it was not run, because it is not the whole reply or cannot be parsed (`tool_calls: text` in the model's settings permits text before it)⏎
            = end_turn
            model saw user: "how are you called?"
            model saw assistant: "So:\n```json\n{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}\n```\n"
            model saw user: "how else?"
        "#]],
    );
}

#[test]
fn call_quoted_from_a_file_does_not_run() {
    check(
        r#"
        config: permissions: { mode: auto }
        file a.json "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}\n"
        model: call read {"file_path":"a.json"}
        model: text "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}"
        > prompt print a.json
        > end
        "#,
        &expect![[r#"
            > prompt print a.json
            < call call-1-0 read "Read a.json" pending {"file_path":"a.json"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\t{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}\n"
            < text[msg-3] {"name": "terminal", "arguments": {"command": "touch ran"}}
            < thought[] `scripted` wrote a call of `terminal` as text that also occurs in what it had read; it was treated as a quotation and not run⏎
            < title print a.json
            = end_turn
            model saw user: "print a.json"
            model saw assistant: read("{\"file_path\":\"a.json\"}")
            model saw tool: "     1\t{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}\n"
        "#]],
    );
}

#[test]
fn truncated_text_call_is_shown() {
    check(
        r#"
        config: permissions: { mode: auto }
        model: text "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}" | finish length
        model: text "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}" | cut
        model: text "As I said."
        model: text "Hello."
        > prompt go
        > end
        > prompt again
        > end
        > prompt hello?
        > end
        "#,
        &expect![[r#"
            > prompt go
            < text[msg-1] {"name": "terminal", "arguments": {"command": "touch ran"}}
            < title go
            = max_tokens
            > prompt again
            < text[msg-3] {"name": "terminal", "arguments": {"command": "touch ran"}}
            < thought[] The reply broke off; the model is asked to continue its reply (1 of 3).⏎
            < text[msg-5] As I said.
            = end_turn
            > prompt hello?
            < text[msg-7] Hello.
            = end_turn
            model saw user: "go"
            model saw assistant: "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}"
            model saw user: "again"
            model saw assistant: "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}"
            model saw user: "<resource uri=\"crow:turn/broke_off\">\nYour reply broke off on its way: what stands above is all that arrived of it, and n"
            model saw assistant: "As I said."
            model saw user: "hello?"
        "#]],
    );
}

#[test]
fn text_stays_text_beside_native_calls() {
    check(
        r#"
        model-config: tool_calls: native
        model: text "{\"name\": \"terminal\", \"arguments\": {\"command\": \"touch ran\"}}"
        > prompt go
        > end
        "#,
        &expect![[r#"
            > prompt go
            < text[msg-1] {"name": "terminal", "arguments": {"command": "touch ran"}}
            < title go
            = end_turn
            model saw user: "go"
        "#]],
    );
}
