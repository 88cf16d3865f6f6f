use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(text: &str, expected: &Expect) {
    let read = FrontMatter::parse(text);
    let fields = read.fields.iter().map(|(key, value)| format!("{key}={value:?}\n"));
    expected.assert_eq(&format!("{}body={:?}\n", fields.collect::<String>(), read.body));
}

#[test]
fn fields_and_body_are_split() {
    check(
        "---\nname: review\ndescription: Use when: a user asks #now\n# a comment\nmetadata:\n  author: x\n---\n\nDo it.\n",
        &expect![[r##"
            name="review"
            description="Use when: a user asks #now"
            metadata="author: x"
            body="\nDo it.\n"
        "##]],
    );
}

#[test]
fn values_may_span_lines_or_have_quotes() {
    check(
        "---\r\na: >-\r\n  one\r\n  two\r\nb: |\r\n  one\r\n\r\n  two\r\nc: \"a \\\"b\\\"\\n\"\r\nd: 'it''s'\r\ne: one\r\n  two\r\n---\r\nx",
        &expect![[r#"
            a="one two"
            b="one\n\ntwo"
            c="a \"b\"\n"
            d="it's"
            e="one two"
            body="x"
        "#]],
    );
}

#[test]
fn unclosed_fields_belong_to_body() {
    for text in ["", "x", "---", "---\nname: a\n", "\n---\nname: a\n---\n"] {
        assert_eq!(FrontMatter::parse(text), FrontMatter { fields: Vec::new(), body: text });
    }
}

#[test]
fn byte_order_mark_is_skipped() {
    assert_eq!(FrontMatter::parse("\u{feff}---\nname: a\n---\nb").get("name"), Some("a"));
}

#[test]
fn empty_field_is_none() {
    let read = FrontMatter::parse("---\nname:\nx: ''\n---\n");
    assert_eq!((read.get("name"), read.get("x"), read.get("y")), (None, None, None));
}
