use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(text: &str, expected: &Expect) {
    let read = FrontMatter::parse(text);
    let fields = read.fields.iter().map(|(key, value)| format!("{key}={value:?}\n"));
    expected.assert_eq(&format!("{}body={:?}\n", fields.collect::<String>(), read.body));
}

#[test]
fn fields_and_body() {
    check(
        "---\nname: review\ndescription: Use when: somebody asks #now\n# a comment\nmetadata:\n  author: x\n---\n\nDo it.\n",
        &expect![[r##"
            name="review"
            description="Use when: somebody asks #now"
            metadata="author: x"
            body="\nDo it.\n"
        "##]],
    );
}

#[test]
fn values_over_several_lines_and_in_quotes() {
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
fn a_text_without_an_end_of_its_fields_is_all_body() {
    for text in ["", "x", "---", "---\nname: a\n", "\n---\nname: a\n---\n"] {
        assert_eq!(FrontMatter::parse(text), FrontMatter { fields: Vec::new(), body: text });
    }
}

#[test]
fn a_mark_of_the_encoding_is_no_text() {
    assert_eq!(FrontMatter::parse("\u{feff}---\nname: a\n---\nb").get("name"), Some("a"));
}

#[test]
fn a_field_that_says_nothing_is_none() {
    let read = FrontMatter::parse("---\nname:\nx: ''\n---\n");
    assert_eq!((read.get("name"), read.get("x"), read.get("y")), (None, None, None));
}
