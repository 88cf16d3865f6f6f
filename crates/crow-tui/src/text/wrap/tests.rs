use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, width: usize, indent: (&str, &str), expected: &Expect) {
    let (first, rest) = indent;
    let indent = RowIndent { first: vec![StyledSpan::plain(first)], rest: vec![StyledSpan::plain(rest)] };
    let rows = wrap_spans(&[StyledSpan::plain(text)], width, &indent);
    expected.assert_eq(&rows.iter().map(|row| row.text() + "|\n").collect::<String>());
}

#[test]
fn words_wrap_below_the_first() {
    check(
        "one two three four  five\nsix",
        12,
        ("• ", "  "),
        &expect![[r#"
            • one two|
              three four|
              five|
              six|
        "#]],
    );
}

#[test]
fn long_word_is_broken() {
    check(
        "see https://example.org/a/b now",
        10,
        ("", ""),
        &expect![[r#"
            see|
            https://ex|
            ample.org/|
            a/b now|
        "#]],
    );
}

#[test]
fn wide_letters_break_anywhere_but_before_punctuation() {
    check(
        "日本語の文章、句読点。",
        12,
        ("", ""),
        &expect![[r#"
            日本語の文|
            章、句読点。|
        "#]],
    );
}

#[test]
fn indent_is_dropped_where_no_text_would_fit() {
    check(
        "one two",
        9,
        ("      • ", "        "),
        &expect![[r#"
            one two|
        "#]],
    );
}

#[test]
fn truncated_row_ends_with_an_ellipsis() {
    let row = StyledRow::from_text("语言语言");
    assert_eq!(truncate_row(row.clone(), 8).text(), "语言语言");
    assert_eq!(truncate_row(row.clone(), 6).text(), "语言…");
    assert_eq!(truncate_row(row, 0).text(), "");
}

proptest! {
    #[test]
    fn rows_fit_and_lose_no_letter(
        text in "[a-c 语👩\u{200d}💻é、(-]{0,60}",
        width in 2_usize..30,
        (n_first, n_rest) in (0_usize..6, 0_usize..6),
    ) {
        let spaces = |n: usize| vec![StyledSpan::plain(" ".repeat(n))];
        let indent = RowIndent { first: spaces(n_first), rest: spaces(n_rest) };
        let rows = wrap_spans(&[StyledSpan::plain(text.as_str())], width, &indent);
        prop_assert!(rows.iter().all(|row| row.width() <= width));
        let letters = |text: &str| text.replace(' ', "");
        let wrapped: String = rows.iter().map(StyledRow::text).collect();
        prop_assert_eq!(letters(&wrapped), letters(&text));
    }
}

#[test]
fn row_is_divided_between_any_letters() {
    let shown = |text: &str, width| {
        let rows = split_row(StyledRow::from_text(text), width);
        rows.iter().map(StyledRow::text).collect::<Vec<_>>().join("|")
    };
    assert_eq!(shown("let x = 1;", 4), "let |x = |1;");
    assert_eq!(shown("a语言", 4), "a语|言");
    assert_eq!(shown("", 4), "");
}
