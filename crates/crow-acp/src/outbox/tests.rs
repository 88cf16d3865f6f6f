use crow_core::{Content, MessageId, Part};
use expect_test::{Expect, expect};

use super::*;

/// Tells a client that reads nothing, and shows what waits: a line per update, `SESSION: UPDATE`.
#[track_caller]
fn check(told: &[(&str, Update)], expected: &Expect) {
    let outbox = Outbox::new(Said::default());
    for (session, update) in told {
        outbox.push(&SessionId::new(*session), update.clone());
    }
    let waiting = outbox.lock();
    let mut lines = String::new();
    for session in &waiting.ready {
        for (_, update) in &waiting.sessions[session] {
            lines.push_str(&format!("{session}: {}\n", shown(update)));
        }
    }
    lines.push_str(&format!("{} bytes\n", waiting.n_bytes));
    let weights: usize = waiting.sessions.values().flatten().map(|(_, update)| weight(update)).sum();
    assert_eq!(weights, waiting.n_bytes, "what waits is counted right");
    expected.assert_eq(&lines);
}

fn shown(update: &Update) -> String {
    match update {
        Update::Text { message, text } if text.len() > 40 => {
            format!("text {message} of {} bytes", text.len())
        }
        Update::Text { message, text } => format!("text {message} {text:?}"),
        Update::Thought { message, text } => format!("thought {message} {text:?}"),
        Update::Output { call, text } if text.len() > 40 => format!("{call} printed {} bytes", text.len()),
        Update::Output { call, text } => format!("{call} printed {text:?}"),
        Update::CallChanged { call, status, content } => format!("{call} {status:?} {content:?}"),
        Update::Prompt { .. }
        | Update::CallAgain { .. }
        | Update::Report { .. }
        | Update::Call { .. }
        | Update::Child { .. }
        | Update::Passed(_)
        | Update::Plan(_)
        | Update::Title(_)
        | Update::Changed(_)
        | Update::Terminal { .. }
        | Update::Exited { .. }
        | Update::Usage { .. }
        | Update::Mode(_)
        | Update::Options(_)
        | Update::Commands(_)
        | Update::Notice(_)
        | Update::Compaction { .. } => format!("{update:?}"),
    }
}

fn text(seq: u64, text: &str) -> Update {
    Update::Text { message: MessageId::at(seq), text: text.into() }
}

fn thought(seq: u64, text: &str) -> Update {
    Update::Thought { message: MessageId::at(seq), text: text.into() }
}

fn running(index: usize, output: &str) -> Update {
    let content = Some(vec![Content::Text(output.into())]);
    Update::CallChanged { call: CallId::at(1, index), status: Status::Running, content }
}

#[test]
fn words_of_one_message_gather() {
    check(
        &[
            ("a", text(1, "one ")),
            ("a", text(1, "two")),
            ("a", thought(1, "hm")),
            ("a", text(1, "three")),
            ("a", text(2, "four")),
        ],
        &expect![[r#"
            a: text msg-1 "one two"
            a: thought msg-1 "hm"
            a: text msg-1 "three"
            a: text msg-2 "four"
            18 bytes
        "#]],
    );
}

#[test]
fn sessions_do_not_mix() {
    check(
        &[("a", text(1, "one ")), ("b", text(1, "uno ")), ("a", text(1, "two")), ("b", text(1, "dos"))],
        &expect![[r#"
            a: text msg-1 "one two"
            b: text msg-1 "uno dos"
            14 bytes
        "#]],
    );
}

#[test]
fn output_of_a_running_call_is_latest_wins() {
    let ended = Update::CallChanged {
        call: CallId::at(1, 0),
        status: Status::Done,
        content: Some(vec![Content::Text("all of it".into())]),
    };
    check(
        &[
            ("a", running(0, "one")),
            ("a", running(0, "one two")),
            ("a", running(1, "other")),
            ("a", running(0, "three")),
            ("a", running(1, "others")),
            ("a", ended),
        ],
        &expect![[r#"
            a: call-1-0 Running Some([Text("three")])
            a: call-1-1 Running Some([Text("others")])
            a: call-1-0 Done Some([Text("all of it")])
            20 bytes
        "#]],
    );
}

#[test]
fn a_chunk_does_not_grow_for_ever() {
    let long = "x".repeat(CHUNK_BYTES - 1);
    check(
        &[("a", text(1, &long)), ("a", text(1, "y")), ("a", text(1, "z"))],
        &expect![[r#"
        a: text msg-1 of 32768 bytes
        a: text msg-1 "z"
        32769 bytes
    "#]],
    );
}

#[test]
fn what_calls_print_gathers_and_keeps_its_end() {
    let printed = |index, text: &str| Update::Output { call: CallId::at(1, index), text: text.into() };
    check(
        &[
            ("a", printed(0, "one ")),
            ("a", printed(1, "other")),
            ("a", printed(0, "two")),
            ("b", printed(0, &"é".repeat(OUTPUT_BYTES / 2))),
            ("b", printed(0, "!")),
        ],
        &expect![[r#"
            a: call-1-0 printed "one two"
            a: call-1-1 printed "other"
            b: call-1-0 printed 65535 bytes
            65547 bytes
        "#]],
    );
}

#[test]
fn a_prompt_and_arguments_weigh() {
    let image = Part::Image { mime: "image/png".into(), data: "x".repeat(100) };
    let call = Update::Call {
        call: CallId::at(1, 0),
        name: "write".into(),
        facets: Facets {
            title: "write".into(),
            kind: crow_core::ToolKind::Edit,
            locations: Vec::new(),
            touch: crow_core::Touch::Nothing,
        },
        arguments: Map::from_iter([("text".to_owned(), Value::from(vec!["x".repeat(6), "y".repeat(10)]))]),
        status: Status::Pending,
        content: Vec::new(),
        prints: crow_core::Prints::Nothing,
    };
    assert_eq!(weight(&Update::Prompt { message: MessageId::at(0), part: image }), 100);
    assert_eq!(weight(&call), 20);
}

#[test]
fn a_flush_waits_for_nothing_that_was_told_later() {
    let outbox = Outbox::new(Said::default());
    let session = SessionId::new("a");
    outbox.push(&session, text(1, "one"));
    let mut flushed = polled_flush(&outbox, &session);
    assert!(!flushed());
    outbox.push(&session, text(2, "two"));
    assert!(outbox.lock().pop().is_some());
    outbox.sent.notify_waiters();
    assert!(flushed(), "what was told later still waits");
    assert_eq!(outbox.lock().sessions.len(), 1);
}

/// Polls one flush again and again; tells whether it is over.
fn polled_flush<'a>(outbox: &'a Outbox, session: &'a SessionId) -> impl FnMut() -> bool + 'a {
    let mut flush = Box::pin(outbox.flushed(session));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    move || flush.as_mut().poll(&mut cx).is_ready()
}

#[test]
fn nothing_waits_for_a_client_that_is_gone() {
    let outbox = Outbox::new(Said::default());
    outbox.push(&SessionId::new("a"), text(1, "one"));
    outbox.close();
    outbox.push(&SessionId::new("a"), text(1, "two"));
    assert!(outbox.lock().sessions.is_empty());
}

#[test]
fn sessions_take_turns() {
    let outbox = Outbox::new(Said::default());
    let told = [("a", text(1, "a1")), ("a", text(2, "a2")), ("b", text(1, "b1")), ("a", text(3, "a3"))];
    for (session, update) in told {
        outbox.push(&SessionId::new(session), update);
    }
    let mut waiting = outbox.lock();
    let taken: Vec<String> = std::iter::from_fn(|| waiting.pop())
        .map(|(session, update)| format!("{session}: {}", shown(&update)))
        .collect();
    expect![[r#"
        a: text msg-1 "a1"
        b: text msg-1 "b1"
        a: text msg-2 "a2"
        a: text msg-3 "a3""#]]
    .assert_eq(&taken.join("\n"));
    assert_eq!((waiting.n_bytes, waiting.sessions.len(), waiting.ready.len()), (0, 0, 0));
}
