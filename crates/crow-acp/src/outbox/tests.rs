use crow_core::{ContentPart, MessageId, ToolCallContent};
use expect_test::{Expect, expect};

use super::*;

/// Tells a client that reads nothing, and shows what waits: a line per update, `SESSION: UPDATE`.
#[track_caller]
fn check(told: &[(&str, SessionUpdate)], expected: &Expect) {
    let outbox = Outbox::new(SharedCapabilities::default());
    for (session, update) in told {
        outbox.push_update(&SessionId::new(*session), update.clone());
    }
    let waiting = outbox.lock();
    let mut lines = String::new();
    for session in &waiting.ready {
        for (_, update) in &waiting.sessions[session] {
            lines.push_str(&format!("{session}: {}\n", shown(update)));
        }
    }
    lines.push_str(&format!("{} bytes\n", waiting.n_bytes));
    let weights: usize = waiting.sessions.values().flatten().map(|(_, update)| update_bytes(update)).sum();
    assert_eq!(weights, waiting.n_bytes, "what waits is counted right");
    expected.assert_eq(&lines);
}

fn shown(update: &SessionUpdate) -> String {
    match update {
        SessionUpdate::Text { message, text } if text.len() > 40 => {
            format!("text {message} of {} bytes", text.len())
        }
        SessionUpdate::Text { message, text } => format!("text {message} {text:?}"),
        SessionUpdate::Thought { message, text } => format!("thought {message} {text:?}"),
        SessionUpdate::Output { call, text } if text.len() > 40 => {
            format!("{call} printed {} bytes", text.len())
        }
        SessionUpdate::Output { call, text } => format!("{call} printed {text:?}"),
        SessionUpdate::CallChanged { call, status, content } => format!("{call} {status:?} {content:?}"),
        SessionUpdate::Prompt { .. }
        | SessionUpdate::CallAgain { .. }
        | SessionUpdate::Report { .. }
        | SessionUpdate::Call { .. }
        | SessionUpdate::Child { .. }
        | SessionUpdate::Passed(_)
        | SessionUpdate::Plan(_)
        | SessionUpdate::Title(_)
        | SessionUpdate::Changed(_)
        | SessionUpdate::Terminal { .. }
        | SessionUpdate::Exited { .. }
        | SessionUpdate::Usage { .. }
        | SessionUpdate::Mode(_)
        | SessionUpdate::Options(_)
        | SessionUpdate::Commands(_)
        | SessionUpdate::Notice(_)
        | SessionUpdate::Compaction { .. } => format!("{update:?}"),
    }
}

fn text(seq: u64, text: &str) -> SessionUpdate {
    SessionUpdate::Text { message: MessageId::from_seq(seq), text: text.into() }
}

fn thought(seq: u64, text: &str) -> SessionUpdate {
    SessionUpdate::Thought { message: MessageId::from_seq(seq), text: text.into() }
}

fn running(index: usize, output: &str) -> SessionUpdate {
    let content = Some(vec![ToolCallContent::Text(output.into())]);
    SessionUpdate::CallChanged {
        call: CallId::from_position(1, index),
        status: ToolCallStatus::Running,
        content,
    }
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
    let ended = SessionUpdate::CallChanged {
        call: CallId::from_position(1, 0),
        status: ToolCallStatus::Done,
        content: Some(vec![ToolCallContent::Text("all of it".into())]),
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
    let printed = |index, text: &str| SessionUpdate::Output {
        call: CallId::from_position(1, index),
        text: text.into(),
    };
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
    let image = ContentPart::Image { mime: "image/png".into(), data: "x".repeat(100) };
    let call = SessionUpdate::Call {
        call: CallId::from_position(1, 0),
        name: "write".into(),
        facets: ToolCallInfo {
            title: "write".into(),
            kind: crow_core::ToolKind::Edit,
            locations: Vec::new(),
            touch: crow_core::ToolAccess::Nothing,
        },
        arguments: Map::from_iter([("text".to_owned(), Value::from(vec!["x".repeat(6), "y".repeat(10)]))]),
        status: ToolCallStatus::Pending,
        content: Vec::new(),
        prints: crow_core::OutputStreaming::Nothing,
    };
    assert_eq!(update_bytes(&SessionUpdate::Prompt { message: MessageId::from_seq(0), part: image }), 100);
    assert_eq!(update_bytes(&call), 20);
}

#[test]
fn a_flush_waits_for_nothing_that_was_told_later() {
    let outbox = Outbox::new(SharedCapabilities::default());
    let session = SessionId::new("a");
    outbox.push_update(&session, text(1, "one"));
    let mut flushed = polled_flush(&outbox, &session);
    assert!(!flushed());
    outbox.push_update(&session, text(2, "two"));
    assert!(outbox.lock().pop_update().is_some());
    outbox.sent.notify_waiters();
    assert!(flushed(), "what was told later still waits");
    assert_eq!(outbox.lock().sessions.len(), 1);
}

/// Polls one flush again and again; tells whether it is over.
fn polled_flush<'a>(outbox: &'a Outbox, session: &'a SessionId) -> impl FnMut() -> bool + 'a {
    let mut flush = Box::pin(outbox.flush_updates(session));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    move || flush.as_mut().poll(&mut cx).is_ready()
}

#[test]
fn nothing_waits_for_a_client_that_is_gone() {
    let outbox = Outbox::new(SharedCapabilities::default());
    outbox.push_update(&SessionId::new("a"), text(1, "one"));
    outbox.close();
    outbox.push_update(&SessionId::new("a"), text(1, "two"));
    assert!(outbox.lock().sessions.is_empty());
}

#[test]
fn sessions_take_turns() {
    let outbox = Outbox::new(SharedCapabilities::default());
    let told = [("a", text(1, "a1")), ("a", text(2, "a2")), ("b", text(1, "b1")), ("a", text(3, "a3"))];
    for (session, update) in told {
        outbox.push_update(&SessionId::new(session), update);
    }
    let mut waiting = outbox.lock();
    let taken: Vec<String> = std::iter::from_fn(|| waiting.pop_update())
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
