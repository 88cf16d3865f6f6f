use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(prose_text(text), expected);
}

#[test]
fn hidden_text_is_blanked_and_the_rest_stays() {
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
fn byte_order_mark_is_ignored() {
    for text in [
        "---\ndescription: x\n- [ ] T001 hidden\n---\n# Tasks\n- [ ] T002 shown\n",
        "---\r\na: b\r\n---\r\n- [x] a\r\n",
        "# Tasks\n- [ ] a\n",
        "```\n- [ ] a\n```\n- [ ] b\n",
        "<!-- x\n- [ ] a -->\n- [ ] b\n",
        "- [ ] a\n",
        "",
    ] {
        let marked = format!("{BYTE_ORDER_MARK}{text}");
        assert_eq!(visible_text(&marked), format!("   {}", visible_text(text)), "{text:?}");
        let items = |text: &str| {
            split_lines(&visible_text(text)).filter(|line| parse_checkbox(line.text).is_some()).count()
        };
        assert_eq!(items(&marked), items(text), "{text:?}");
    }
    assert_eq!(
        parse_heading(split_lines(&visible_text("\u{feff}# A")).next().unwrap().text).unwrap().title,
        "A"
    );
}

#[test]
fn headings_are_parsed() {
    assert_eq!(parse_heading("## A b ##"), Some(MarkdownHeading { level: 2, title: "A b" }));
    assert_eq!(parse_heading("### C#"), Some(MarkdownHeading { level: 3, title: "C#" }));
    assert_eq!(parse_heading("#A"), None);
    assert_eq!(parse_heading("####### A"), None);
}
