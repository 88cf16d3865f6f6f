//! The examples in the documents of the Python version, run through the whole agent.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use crow_testkit::golden::play;
use expect_test::{Expect, expect};

fn check(script: &str, transcript: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let binary = Path::new(env!("CARGO_BIN_EXE_crow-cli"));
    transcript.assert_eq(&runtime.expect("a runtime can be made").block_on(play(&binary, script)));
}

/// The six chunks of its example: text in two, the name of a tool, its arguments in two, and the usage. The parameter
/// has its short name.
#[test]
fn call_arrives_in_pieces() {
    check(
        r#"
        file test.txt "file contents here...\n"
        model: raw "data: {\"choices\": [{\"delta\": {\"content\": \"Let me\"}}]}\n\ndata: {\"choices\": [{\"delta\": {\"content\": \" check that\"}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"id\": \"call_abc123\", \"function\": {\"name\": \"read\"}}]}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"function\": {\"arguments\": \"{\\\"path\\\":\"}}]}}]}\n\ndata: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"function\": {\"arguments\": \" \\\"test.txt\\\"}\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{}}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":9,\"total_tokens\":29}}\n\ndata: [DONE]\n\n"
        model: text "It is read."
        > prompt what is in it?
        > end
        "#,
        &expect![[r#"
            > prompt what is in it?
            < text[msg-1] Let me check that
            < usage 29/32000
            < call call-1-0 read "Read test.txt" pending {"file_path":"test.txt"}
            < call call-1-0 in_progress
            < call call-1-0 completed "     1\tfile contents here...\n"
            < text[msg-3] It is read.
            < title what is in it?
            = end_turn
            model saw user: "what is in it?"
            model saw assistant: "Let me check that" read("{\"file_path\":\"test.txt\"}")
            model saw tool: "     1\tfile contents here...\n"
        "#]],
    );
}
