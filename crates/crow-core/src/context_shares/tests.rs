use expect_test::{Expect, expect};

use super::*;
use crate::{MessageId, Prompt, Reply, ReplyBuilder, ReplyEnd, TokenUsage, TranscriptEntry};

fn crow_part(kind: CrowPart, n_bytes: usize) -> ContentPart {
    ContentPart::FromCrow { kind, text: "x".repeat(n_bytes) }
}

fn conversation(parts: Vec<ContentPart>) -> Transcript {
    let mut transcript = Transcript::new("s".repeat(2000));
    transcript.set_tool_tokens(3000);
    if !parts.is_empty() {
        let prompt = Prompt { id: MessageId::from_seq(0), parts };
        transcript.push(TranscriptEntry::Prompt(prompt)).unwrap();
    }
    transcript
}

#[track_caller]
fn check(shares: &ContextShares, window: u64, expected: &Expect) {
    let text = render_context_shares(shares, window, 96_000);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    expected.assert_eq(&text);
}

#[test]
fn parts_of_a_conversation_have_bars() {
    let transcript = conversation(vec![
        crow_part(CrowPart::Instructions, 4000),
        crow_part(CrowPart::Environment, 600),
        ContentPart::Text("word ".repeat(20_000)),
    ]);
    check(
        &ContextShares::new(&transcript, &[]),
        128_000,
        &expect![[r#"
        ```text
        about 29k of 128k tokens in the context (23 %)

        system prompt    500   0 %  ▏
        tools           3.0k   2 %  ▌
        instructions    1.0k   0 %  ▏
        environment      154   0 %  ▏
        conversation     25k  19 %  ████▋
        free             98k  76 %  ██████████████████▍

        it is compacted beyond 96k tokens
        ```
    "#]],
    );
}

#[test]
fn parts_that_the_next_prompt_begins_with_are_counted() {
    let unsent = [crow_part(CrowPart::Skills, 400), crow_part(CrowPart::Environment, 600)];
    check(
        &ContextShares::new(&conversation(Vec::new()), &unsent),
        8192,
        &expect![[r#"
        ```text
        about 3.7k of 8.1k tokens in the context (45 %)

        system prompt    500   6 %  █▍
        tools           3.0k  36 %  ████████▊
        instructions     103   1 %  ▎
        environment      154   1 %  ▍
        conversation       0   0 %
        free            4.4k  54 %  ████████████▉

        it is compacted beyond 96k tokens
        ```
    "#]],
    );
}

#[test]
fn sum_is_the_count_of_the_provider() {
    let mut transcript = conversation(vec![ContentPart::Text("go".to_owned())]);
    let usage = TokenUsage { input: 5000, output: 10, ..TokenUsage::default() };
    let reply = ReplyBuilder::new(1).into_reply(ReplyEnd::Complete);
    let reply = Reply { text: "Yes.".to_owned(), usage: Some(usage), ..reply };
    transcript.push(TranscriptEntry::Reply(reply)).unwrap();
    check(
        &ContextShares::new(&transcript, &[]),
        0,
        &expect![[r#"
        ```text
        5.0k tokens in the context

        system prompt    500   9 %  ██▍
        tools           3.0k  59 %  ██████████████▎
        instructions       0   0 %
        environment        0   0 %
        conversation    1.5k  30 %  ███████▏

        it is compacted beyond 96k tokens
        ```
    "#]],
    );
}

#[test]
fn context_beyond_the_window_has_nothing_free() {
    let transcript = conversation(vec![ContentPart::Text("word ".repeat(20_000))]);
    check(
        &ContextShares::new(&transcript, &[]),
        16_384,
        &expect![[r#"
        ```text
        about 28k of 16k tokens in the context (173 %)

        system prompt    500   1 %  ▍
        tools           3.0k  10 %  ██▌
        instructions       0   0 %
        environment        0   0 %
        conversation     25k  87 %  █████████████████████
        free               0   0 %

        it is compacted beyond 96k tokens
        ```
    "#]],
    );
}
