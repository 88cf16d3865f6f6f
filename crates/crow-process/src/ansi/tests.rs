use super::*;

/// Shows the readable text, with the input sent whole and byte by byte.
#[track_caller]
fn check(sent: &str, left: &str) {
    let shown = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut plain, mut out) = (AnsiStripper::default(), Vec::new());
        pieces.for_each(|piece| plain.push(piece, &mut out));
        plain.flush(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    assert_eq!(shown(&mut std::iter::once(sent.as_bytes())), left, "whole");
    assert_eq!(shown(&mut sent.as_bytes().chunks(1)), left, "byte by byte");
}

#[test]
fn plain_text_is_unchanged() {
    check("one\n\ttwo\nthree", "one\n\ttwo\nthree");
    check("été ␀ 鴉\n", "été ␀ 鴉\n");
    check("", "");
}

#[test]
fn redrawn_line_keeps_its_last_state() {
    check("10 %\r50 %\r100 %\ndone\n", "100 %\ndone\n");
    check("10 %\r\x1b[K100 %\n", "100 %\n");
    check("10 %\x1b[2K\r", "");
    check("10 %\x1b[1G20 %", "20 %");
    check("over\rwritten", "written");
}

#[test]
fn line_ends_of_every_kind() {
    check("one\r\ntwo\r\r\nthree\r", "one\ntwo\nthree");
}

#[test]
fn backspace_removes_a_letter() {
    check("abé\x08 \x08c", "abc");
    check("\x08\x08a", "a");
}

#[test]
fn colours_titles_and_links_are_dropped() {
    check("\x1b[1;31mred\x1b[0m \x1b(Bx\x1b[?25l", "red x");
    check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq1\x1b\\c\x1b7\x1b=", "abc");
    check("bell\x07 feed\x0c delete\x7f", "bell feed delete");
    check("a\0b", "a␀b");
}

/// Shows the working directory that a text reports to the terminal, sent byte by byte.
#[track_caller]
fn check_directory(sent: &str, directory: Option<&str>) {
    let (mut plain, mut out) = (AnsiStripper::default(), Vec::new());
    sent.as_bytes().chunks(1).for_each(|piece| plain.push(piece, &mut out));
    assert_eq!(plain.cwd(), directory);
}

#[test]
fn directory_reported_last_counts() {
    check_directory("text", None);
    check_directory("\x1b]7;/tmp\x07", Some("/tmp"));
    check_directory("\x1b]7;/tmp\x07a\x1b]0;/title\x07\x1b]7;/été x\x07b", Some("/été x"));
    check_directory("\x1b]7;relative\x07\x1bP7;/tmp", None);
    check_directory("\x1b]7;/never ended", None);
    check("a\x1b]7;/tmp\x07", "a");
}

#[test]
fn cursor_movement_ends_a_line() {
    check("top\x1b[2;1Hmiddle\x1b[Aagain\x1b[H\x1b[2J", "top\nmiddle\nagain\n");
    check("a\x1b[3Cb\x1b[Cc", "a   b c");
}

#[test]
fn unterminated_sequence_hides_little() {
    let title = format!("\x1b]0;{}", "t".repeat(STRING_BYTES_MAX * 2));
    check(&title, &"t".repeat(STRING_BYTES_MAX + 1));
    let sequence = format!("\x1b[{}text", "9;".repeat(100));
    check(&sequence, &format!("{}text", &"9;".repeat(100)[SEQUENCE_BYTES_MAX..]));
    check("\x1b[12\nnext", "\nnext");
    check("\x1b[999999999999999999999999Cx", &format!("{}x", " ".repeat(COLUMNS_MAX)));
    check("\x1b\x1b\x1b[mx\x1b", "x");
}

#[test]
fn endless_line_is_not_buffered() {
    let mut plain = AnsiStripper::default();
    let mut n_bytes = 0;
    for _ in 0..1000 {
        let mut out = Vec::new();
        plain.push(&[b'x'; 1000], &mut out);
        n_bytes += out.len();
        assert!(plain.line().len() <= LINE_BYTES_MAX);
    }
    assert_eq!(n_bytes + plain.line().len(), 1_000_000);
}
