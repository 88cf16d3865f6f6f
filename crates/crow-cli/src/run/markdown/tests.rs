use expect_test::{Expect, expect};

use super::*;
use crate::run::fake_terminal::FakeTerminal;

const SIZE: TerminalSize = TerminalSize { columns: 20, rows: 6 };

/// Compares the screen after streaming a text letter by letter, and the style of each line.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    let mut seen = FakeTerminal::default();
    let mut markdown = MarkdownWriter::new(MarkdownStyle::Styled(SIZE));
    for c in text.chars() {
        markdown.push(&c.to_string(), &mut seen).unwrap();
    }
    markdown.finish(&mut seen).unwrap();
    expected.assert_eq(&seen.rendered_lines(SIZE.columns));
}

#[track_caller]
fn check_styles(line: &str, expected: &Expect) {
    expected.assert_eq(&style_line(line).replace('\x1b', "^["));
}

#[test]
fn complete_lines_are_redrawn() {
    check(
        "# Title\n\n- **one** and `two`\n  - *three*\n> said\n\n---\n2. second\n",
        &expect![[r#"
        Title

        • one and two
          • three
        │ said

        ────
        2. second
    "#]],
    );
}

#[test]
fn wrapped_line_is_redrawn_in_its_rows() {
    check(
        "above\nA **long** line that takes `three` rows of it.\nbelow",
        &expect![[r#"
        above
        A long line that tak
        es three rows of it.
        below
    "#]],
    );
}

#[test]
fn wide_letters_wrap_as_on_the_terminal() {
    check(
        "above\na日本語日本語日本語日 **太い**\nbelow",
        &expect![[r#"
        above
        a日本語日本語日本語
        日 太い
        below
    "#]],
    );
}

#[test]
fn line_higher_than_the_screen_is_not_redrawn() {
    check(
        &format!("above\n{}**bold**\nbelow", "0123456789".repeat(12)),
        &expect![[r#"
        above
        01234567890123456789
        01234567890123456789
        01234567890123456789
        01234567890123456789
        01234567890123456789
        01234567890123456789
        **bold**
        below
    "#]],
    );
}

#[test]
fn code_is_not_markdown() {
    check(
        "```sh\n# **not** a title\n```\n~~~~\n~~~\n**x**\n~~~~\n**bold**\n```one``` **line**\n",
        &expect![[r#"
        ```sh
        # **not** a title
        ```
        ~~~~
        ~~~
        **x**
        ~~~~
        bold
        one line
    "#]],
    );
}

#[test]
fn text_is_never_lost() {
    check(
        "[a]: http://b.c\n[d](http://e.f)\n<g>\nVec<T> & &amp;\n\\*h\\*\n\ti\n",
        &expect![[r#"
        [a]: http://b.c
        d (http://e.f)
        <g>
        Vec<T> & &
        *h*
        	i
    "#]],
    );
}

#[test]
fn styles_match_the_markdown() {
    check_styles(
        "**bold** *italic* ***both*** `code` [a](b)",
        &expect!["^[[1mbold^[[0m ^[[3mitalic^[[0m ^[[1m^[[3mboth^[[0m ^[[36mcode^[[0m a^[[2m (b)^[[0m"],
    );
    check_styles("## Title", &expect!["^[[1mTitle^[[0m"]);
}

#[test]
fn plain_style_passes_text_unchanged() {
    let mut seen = FakeTerminal::default();
    let mut markdown = MarkdownWriter::new(MarkdownStyle::Plain);
    markdown.push("# a **b**\n```\nc", &mut seen).unwrap();
    markdown.finish(&mut seen).unwrap();
    expect![[r#"
        # a **b**
        ```
        c
    "#]]
    .assert_eq(&seen.raw_text());
}
