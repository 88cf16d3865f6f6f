use proptest::prelude::*;

use super::{EVENT_LEN_MAX, EventTooLong, SseEvent, SseParser};

fn read(pieces: &[&[u8]]) -> Vec<String> {
    let mut events = SseParser::default();
    let mut seen = Vec::new();
    let mut on_event = |event: SseEvent<'_>| {
        let (name, data) = (String::from_utf8_lossy(event.name), String::from_utf8_lossy(event.data));
        seen.push(if name.is_empty() { data.into_owned() } else { format!("{name}={data}") });
    };
    for piece in pieces {
        assert_eq!(events.feed(piece, &mut on_event), Ok(()));
    }
    assert_eq!(events.finish(&mut on_event), Ok(()));
    seen
}

/// The events must be the same wherever the bytes are split.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    let stream = stream.as_bytes();
    assert_eq!(read(&[stream]), expected);
    for cancel in 0..=stream.len() {
        let (head, tail) = stream.split_at(cancel);
        assert_eq!(read(&[head, tail]), expected, "cut at {cancel}");
        assert_eq!(read(&[head, b"", tail]), expected, "cut at {cancel} around nothing");
    }
    assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), expected, "byte by byte");
}

#[test]
fn line_ends_of_three_kinds() {
    check("data: a\n\ndata: b\n\n", &["a", "b"]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check("data: a\r\rdata: b\r\r", &["a", "b"]);
    check("data: a\r\n\ndata: b\r\n\r", &["a", "b"]);
}

#[test]
fn only_data_and_event_fields_count() {
    check(": hello\n\n:\ndata: a\nid: 1\nretry: 5\ndatabase: b\neventually: c\n\n", &["a"]);
    check("\n\n\ndata:a\n\ndata:  b\n\n", &["a", " b"]);
    check("data\n\ndata:\n\n", &["", ""]);
}

#[test]
fn multiple_data_lines_are_one_event() {
    check("data: a\ndata: b\n: c\ndata: d\n\ndata: e\n\n", &["a\nb\nd", "e"]);
}

#[test]
fn name_belongs_to_one_event() {
    check("event: x\ndata: a\n\ndata: b\n\n", &["x=a", "b"]);
    check("data: a\nevent:y\n\nevent: x\nevent: z\ndata: b\ndata: c\n\n", &["y=a", "z=b\nc"]);
    check("event: x\n\ndata: a\n\n", &["a"]);
    check("event: x\ndata: a\n\nevent\ndata: b", &["x=a", "b"]);
}

#[test]
fn last_event_needs_no_blank_line() {
    check("data: a\n\ndata: [DONE]", &["a", "[DONE]"]);
    check("data: a\ndata: b\n", &["a\nb"]);
    check("", &[]);
}

#[test]
fn byte_order_mark_and_long_text_are_accepted() {
    check("\u{FEFF}data: a\n\ndata: \u{FEFF}b\n\n", &["a", "\u{FEFF}b"]);
    let long = "日本語 und Übermut 🦀 ".repeat(8);
    check(&format!("data: {long}\n\n"), &[&long]);
}

#[test]
fn endless_event_is_rejected() {
    let mut events = SseParser::default();
    let piece = vec![b'x'; EVENT_LEN_MAX / 2];
    let mut ignore = |_: SseEvent<'_>| {};
    assert_eq!(events.feed(&piece, &mut ignore), Ok(()));
    assert_eq!(events.feed(&piece, &mut ignore), Ok(()));
    assert_eq!(events.feed(b"x", &mut ignore), Err(EventTooLong));
}

proptest! {
    #[test]
    fn cuts_never_matter(text in "(data: ?[a-c]{0,3}|event: ?[xy]?|:|x|\r|\n|\r\n){0,20}", size in 1_usize..7) {
        let whole = read(&[text.as_bytes()]);
        prop_assert_eq!(read(&text.as_bytes().chunks(size).collect::<Vec<_>>()), whole);
    }
}
