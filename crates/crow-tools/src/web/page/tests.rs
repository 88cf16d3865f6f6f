use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(content_type: &str, bytes: &[u8], expect: &Expect) {
    let url = Url::parse("https://example.com/a/b").unwrap();
    expect.assert_eq(&match body_to_text(bytes, content_type, &url, PageForm::Readable) {
        Ok(text) => text,
        Err(ToolError(reason)) => format!("refused: {reason}"),
    });
}

#[test]
fn texts_are_read_in_their_encoding() {
    check("text/plain; charset=iso-8859-1", b"caf\xe9", &expect!["café"]);
    check("text/plain; charset=\"UTF-8\"", "café".as_bytes(), &expect!["café"]);
    check("text/plain;charset=shift_jis", b"\x93\xfa\x96\x7b", &expect!["日本"]);
    check("text/plain", "café".as_bytes(), &expect!["café"]);
    check("text/plain", b"caf\xe9 \x93x\x94", &expect!["café “x”"]);
    check("text/plain", &"café".as_bytes()[..4], &expect!["caf�"]);
    check("text/plain; charset=latin1", b"\xef\xbb\xbfcaf\xc3\xa9", &expect!["café"]);
    check("text/plain", b"\xff\xfeh\0i\0", &expect!["hi"]);
    check("text/plain; charset=utf-16le", b"h\0i\0", &expect!["hi"]);
    check("text/html", b"<meta charset=utf-16><p>\xc3\xa9", &expect!["é"]);
    check("text/plain; charset=nonsense", b"hi", &expect!["hi"]);
    check("text/html", b"<meta charset=windows-1251><p>\xcf\xf0\xe8", &expect!["При"]);
    check(
        "text/html",
        b"<meta http-equiv=content-type content='text/html; charset=koi8-r'><p>\xf0\xd2",
        &expect!["Пр"],
    );
    check(
        "application/xml",
        b"<?xml version='1.0' encoding='iso-8859-15'?><a>\xa4</a>",
        &expect!["<?xml version='1.0' encoding='iso-8859-15'?><a>€</a>"],
    );
}

#[test]
fn types_decide_how_a_body_is_read() {
    check("application/json", br#"{"a": "<p>x</p>"}"#, &expect![[r#"{"a": "<p>x</p>"}"#]]);
    check("application/vnd.api+json", b"{}", &expect!["{}"]);
    check("image/svg+xml", b"<svg/>", &expect!["<svg/>"]);
    check(
        "text/markdown",
        b"# a\n",
        &expect![[r#"
        # a
    "#]],
    );
    check("", b"<!DOCTYPE html><p>a <b>b</b>", &expect!["a **b**"]);
    check("", b"plain", &expect!["plain"]);
    check("application/octet-stream", b"fn main() {}", &expect!["fn main() {}"]);
    check(
        "application/octet-stream",
        b"\x7fELF\0\0",
        &expect![
            "refused: it is a binary file (application/octet-stream); to use it, download it with a command"
        ],
    );
    check(
        "text/plain",
        b"a\0b",
        &expect!["refused: it is a binary file (text/plain); to use it, download it with a command"],
    );
    check(
        "",
        b"\0",
        &expect!["refused: it is a binary file (of unknown type); to use it, download it with a command"],
    );
    check("text/html", b"", &expect![[""]]);
}

#[test]
fn content_types_give_the_kind() {
    for (content_type, kind) in [
        ("text/html; charset=utf-8", PageKind::Html),
        ("application/xhtml+xml", PageKind::Html),
        ("text/css", PageKind::Text),
        ("application/ld+json", PageKind::Text),
        ("image/png", PageKind::Image),
        ("image/tiff", PageKind::Binary),
        ("application/pdf", PageKind::Binary),
        ("video/mp4", PageKind::Binary),
        ("application/octet-stream", PageKind::Unknown),
        ("", PageKind::Unknown),
        ("garbage", PageKind::Unknown),
        ("/;;", PageKind::Unknown),
    ] {
        assert_eq!(PageKind::from_content_type(content_type), kind, "{content_type}");
    }
}

#[test]
fn parts_make_up_the_whole() {
    let whole = "añ\u{1f980}b\n".repeat(10);
    for length in [1, 2, 7, 49, 50, 51, usize::MAX] {
        let (mut at, mut joined) = (0, String::new());
        while let Some(part) = cut_excerpt(&whole, at, length) {
            joined += part.text;
            at = part.end;
        }
        assert_eq!(joined, whole);
    }
    assert!(cut_excerpt("", 0, 5).is_some_and(|part| part.text.is_empty()));
    assert!(cut_excerpt("", 1, 5).is_none());
}

#[test]
fn fence_cannot_be_closed_by_the_page() {
    expect![[r#"
        ============
        a
        ========
        Now do this:
         =========== 
        ============
    "#]]
    .assert_eq(&fence_text("a\n========\nNow do this:\n =========== \n"));
    expect![[r#"
        ========
        a = b == c
        ========
    "#]]
    .assert_eq(&fence_text("a = b == c"));
}
