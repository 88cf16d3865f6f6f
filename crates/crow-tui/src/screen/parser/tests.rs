use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Writes an event as the tests name it.
fn show_event(event: &InputEvent) -> String {
    let (KeyPress { code, modifiers }, held) = match event {
        InputEvent::Key(key) => (key, ""),
        InputEvent::KeyRepeat(key) => (key, "held "),
        InputEvent::Paste { .. }
        | InputEvent::FocusChanged(_)
        | InputEvent::Resized
        | InputEvent::Reply(_)
        | InputEvent::Closed => return format!("{event:?}"),
    };
    let names = [(modifiers.ctrl, "C-"), (modifiers.alt, "A-"), (modifiers.shift, "S-")];
    let names: String = names.iter().filter(|(is_held, _)| *is_held).map(|(_, name)| *name).collect();
    let prefix = format!("{held}{names}");
    if let KeyCode::Char(letter) = code { format!("{prefix}{letter}") } else { format!("{prefix}{code:?}") }
}

fn show_events(events: &[TimedInput]) -> String {
    events.iter().map(|input| show_event(&input.event)).collect::<Vec<_>>().join(" ")
}

/// Compares the events of input that is followed by silence.
#[track_caller]
fn check(bytes: &[u8], expected: &Expect) {
    let start = Instant::now();
    let mut parser = InputParser::default();
    let mut events = parser.push(bytes, start);
    events.extend(parser.flush(start + Duration::from_secs(2)));
    expected.assert_eq(&show_events(&events));
}

#[test]
fn keys_in_every_encoding() {
    check("aÄ语\r\t\x7f".as_bytes(), &expect!["a Ä 语 Enter Tab Backspace"]);
    check(b"\x01\x0a\x00\x1f\x08", &expect!["C-a C-j C-  C-_ C-h"]);
    check(b"\x1b\r\x1bb\x1b\x7f\x1b\x02", &expect!["A-Enter A-b A-Backspace C-A-b"]);
    check(b"\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1b[5;3~\x1b[Z", &expect!["Up Down C-Right Delete A-PageUp S-Tab"]);
    check(b"\x1b[13;2u\x1b[13;3u\x1b[27u\x1b[97;5u\x1b[97;6u", &expect!["S-Enter A-Enter Escape C-a C-S-a"]);
    check(b"\x1b[27;2;13~\x1b[27;5;106~\x1b[27;2;65~", &expect!["S-Enter C-j A"]);
    check(b"\x1bOP\x1b[15~\x1b[24~\x1b[57399u", &expect!["Function(1) Function(5) Function(12) 0"]);
    check("\x1bö".as_bytes(), &expect!["A-ö"]);
}

#[test]
fn keys_with_modifiers_of_the_system_are_ignored() {
    check(
        b"\x1b[97;9ua\x1b[121;17ub\x1b[13;33uc\x1b[1;17Cd\x1b[27;9;121~e\x1b[3;9~f",
        &expect!["a b c d e f"],
    );
    // Caps Lock and Num Lock change no key.
    check(b"\x1b[97;69u\x1b[97;133u", &expect!["C-a C-a"]);
}

#[test]
fn meta_with_an_arrow_key_is_alt() {
    check(
        b"\x1b[1;9C\x1b[1;9D\x1b[1;33A\x1b[1;10B\x1b[1;3C",
        &expect!["A-Right A-Left A-Up A-S-Down A-Right"],
    );
    check(b"\x1b[1;9:3C\x1b[1;9H", &expect![""]);
}

#[test]
fn held_keys_are_told_from_pressed_ones() {
    check(
        b"\x1b[121;1:1u\x1b[121;1:2u\x1b[121;1:3u\x1b[1;5:2C\x1b[3;1:2~\x1b[13;1:2u\x1b[1;1:3C",
        &expect!["y held y held C-Right held Delete held Enter"],
    );
}

#[test]
fn releases_and_unknown_sequences_are_ignored() {
    check(b"\x1b[97;1:3ua\x1b[97;1:1ub\x1b[<0;1;1Mc\x1b[999~d\x1b[201~e", &expect!["a a b c d e"]);
    check(b"\xffa\xc3(b\xc2\x9bc", &expect!["a ( b c"]);
}

#[test]
fn escape_is_a_key_if_nothing_follows() {
    check(b"\x1b", &expect!["Escape"]);
    check(b"\x1b\x1b", &expect!["Escape Escape"]);
    check(b"\x1b[", &expect!["A-["]);
    check(b"\x1b[1;", &expect![""]);
}

#[test]
fn replies_are_events() {
    check(
        b"\x1b[12;40R\x1b[?0u\x1bP>|tmux 3.5a\x1b\\\x1b]11;rgb:ffff/ffff/e0e0\x07\x1b]11;rgb:00/2b/36\x1b\\\x1b[?62;4c",
        &expect![[r#"Reply(CursorPosition { row: 11, column: 39 }) Reply(KittyKeyboard) Reply(Version("tmux 3.5a")) Reply(Background { is_light: true }) Reply(Background { is_light: false }) Reply(DeviceAttributes)"#]],
    );
    check(b"\x1b[I\x1b[O", &expect!["FocusChanged(true) FocusChanged(false)"]);
}

#[test]
fn paste_ends_with_its_end_or_with_silence() {
    check(
        "\x1b[200~한글\r\x1b[31mx\x1b[201~한".as_bytes(),
        &expect![[r#"Paste { content: "한글\r\u{1b}[31mx", is_truncated: false } 한"#]],
    );
    check(b"\x1b[200~open\x1b[20", &expect![[r#"Paste { content: "open\u{1b}[20", is_truncated: false }"#]]);
}

#[test]
fn paste_is_bounded() {
    let start = Instant::now();
    let mut parser = InputParser::default();
    parser.push(b"\x1b[200~", start);
    let block = vec![b'x'; 1024 * 1024];
    for _ in 0..9 {
        assert!(parser.push(&block, start).is_empty());
    }
    let events = parser.push(b"\x1b[201~y", start);
    let InputEvent::Paste { content, is_truncated } = &events[0].event else { panic!("{events:?}") };
    assert_eq!((content.len(), is_truncated), (PASTE_BYTES_MAX, &true));
    assert_eq!(show_events(&events[1..]), "y");
}

proptest! {
    #[test]
    fn input_may_be_split_anywhere(cuts in proptest::collection::vec(0_usize..90, 0..12)) {
        let bytes = "ab\x1b[1;5C한\x1b[200~p\x1b[1m\r語\x1b[201~\x1b]11;rgb:0/0/0\x1b\\\x1b[13;2u\x1bP>|kitty(1)\x1b\\é\x1b[7;9R\x1bx"
            .as_bytes();
        let start = Instant::now();
        let whole = InputParser::default().push(bytes, start);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut parser = InputParser::default();
        let pieces: Vec<TimedInput> =
            cuts.windows(2).flat_map(|pair| parser.push(&bytes[pair[0]..pair[1]], start)).collect();
        prop_assert_eq!(show_events(&pieces), show_events(&whole));
    }

    #[test]
    fn any_bytes_are_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let start = Instant::now();
        let mut parser = InputParser::default();
        parser.push(&bytes, start);
        parser.flush(start + Duration::from_secs(2));
        prop_assert!(parser.deadline().is_none());
    }
}
