use crow_core::{CallId, ContentPart, MessageId, ToolCallContent, ToolCallInfo};
use expect_test::{Expect, expect};
use serde_json::{Map, Value};

use super::*;

/// Sends updates to a client that reads nothing, and shows the queue: a line per update, `SESSION: UPDATE`.
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
        | SessionUpdate::CallRestored { .. }
        | SessionUpdate::Report { .. }
        | SessionUpdate::Call { .. }
        | SessionUpdate::Child { .. }
        | SessionUpdate::Forwarded(_)
        | SessionUpdate::Plan(_)
        | SessionUpdate::Title(_)
        | SessionUpdate::LastChanged(_)
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
        status: ToolCallStatus::InProgress,
        content,
    }
}

#[test]
fn text_of_one_message_is_merged() {
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
fn sessions_are_not_merged() {
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
fn call_output_keeps_the_latest() {
    let ended = SessionUpdate::CallChanged {
        call: CallId::from_position(1, 0),
        status: ToolCallStatus::Completed,
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
            a: call-1-0 InProgress Some([Text("three")])
            a: call-1-1 InProgress Some([Text("others")])
            a: call-1-0 Completed Some([Text("all of it")])
            20 bytes
        "#]],
    );
}

#[test]
fn chunk_size_is_bounded() {
    let long = "x".repeat(CHUNK_BYTES_MAX - 1);
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
fn printed_output_is_merged_and_keeps_its_end() {
    let printed = |index, text: &str| SessionUpdate::Output {
        call: CallId::from_position(1, index),
        text: text.into(),
    };
    check(
        &[
            ("a", printed(0, "one ")),
            ("a", printed(1, "other")),
            ("a", printed(0, "two")),
            ("b", printed(0, &"é".repeat(OUTPUT_BYTES_MAX / 2))),
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
fn prompts_and_arguments_count_as_bytes() {
    let image = ContentPart::Image { mime: "image/png".into(), data: "x".repeat(100) };
    let call = SessionUpdate::Call {
        call: CallId::from_position(1, 0),
        name: "write".into(),
        info: ToolCallInfo {
            title: "write".into(),
            kind: crow_core::ToolKind::Edit,
            locations: Vec::new(),
            access: crow_core::ToolAccess::Nothing,
        },
        arguments: Map::from_iter([("text".to_owned(), Value::from(vec!["x".repeat(6), "y".repeat(10)]))]),
        status: ToolCallStatus::Pending,
        content: Vec::new(),
        streaming: crow_core::OutputStreaming::Off,
    };
    assert_eq!(update_bytes(&SessionUpdate::Prompt { message: MessageId::from_seq(0), part: image }), 100);
    assert_eq!(update_bytes(&call), 20);
}

#[test]
fn flush_ignores_later_updates() {
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

/// Polls one flush repeatedly; returns whether it has ended.
fn polled_flush<'a>(outbox: &'a Outbox, session: &'a SessionId) -> impl FnMut() -> bool + 'a {
    let mut flush = Box::pin(outbox.flush_updates(session));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    move || flush.as_mut().poll(&mut cx).is_ready()
}

#[test]
fn replay_precedes_what_is_sent_meanwhile() {
    let outbox = Outbox::new(SharedCapabilities::default());
    let (session, other) = (SessionId::new("a"), SessionId::new("b"));
    let hold = ReplayHold::begin(outbox.clone(), session.clone());
    outbox.lock().push_live_update(&session, text(2, "live, "));
    outbox.lock().push_live_update(&session, text(2, "more"));
    outbox.lock().push_live_update(&other, text(1, "other"));
    hold.send_update(text(1, "replayed"));
    let mut flushed = polled_flush(&outbox, &session);
    let mut waiting: Vec<SessionUpdate> = Vec::new();
    let mut take_all =
        || waiting.extend(std::iter::from_fn(|| outbox.lock().pop_update()).map(|(_, update)| update));
    take_all();
    assert!(!flushed(), "the end of a turn does not overtake its text");
    hold.end(|update| (shown(&update) != "text msg-2 \"live, \"").then_some(update));
    assert!(!flushed());
    take_all();
    outbox.sent.notify_waiters();
    assert!(flushed());
    let shown: Vec<String> = waiting.iter().map(shown).collect();
    assert_eq!(shown, ["text msg-1 \"other\"", "text msg-1 \"replayed\"", "text msg-2 \"live, more\""]);
    let state = outbox.lock();
    assert_eq!((state.n_bytes, state.n_held_bytes, state.held.len()), (0, 0, 0));
}

#[tokio::test]
async fn replay_does_not_wait_for_what_it_holds_back() {
    let outbox = Outbox::new(SharedCapabilities::default());
    let session = SessionId::new("a");
    let hold = ReplayHold::begin(outbox.clone(), session.clone());
    outbox.push_update(&session, text(1, &"x".repeat(QUEUED_BYTES_MAX)));
    hold.wait_for_capacity().await;
    let mut producer = Box::pin(outbox.wait_for_capacity());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(producer.as_mut().poll(&mut cx).is_pending(), "its turn is held back");
    drop(hold);
    assert_eq!(outbox.lock().n_bytes, QUEUED_BYTES_MAX, "nothing is lost without an end");
}

#[test]
fn disconnected_client_is_not_awaited() {
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
