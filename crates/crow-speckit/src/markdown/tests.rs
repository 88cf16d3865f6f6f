use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(prose(text), expected);
}

#[test]
fn what_is_hidden_is_blank_and_the_rest_stays() {
    check("a `b` c", "a     c");
    check("a ``b ` c`` d `e", "a           d `e");
    check("é <!-- é --> b", &format!("é{}b", " ".repeat(13)));
    check("a\n```\nb\n```\nc", "a\n   \n \n   \nc");
    check("a\n- ```\n  b\n  ```\nc", "a\n     \n   \n     \nc");
    check("---\na: b\n---\nc", "   \n    \n   \nc");
    check("---\nc", "---\nc");
    check("<!-- a\r\nb --> c\nd", "      \r\n      c\nd");
}

#[test]
fn headings() {
    assert_eq!(heading("## A b ##"), Some(Heading { level: 2, title: "A b" }));
    assert_eq!(heading("### C#"), Some(Heading { level: 3, title: "C#" }));
    assert_eq!(heading("#A"), None);
    assert_eq!(heading("####### A"), None);
}
