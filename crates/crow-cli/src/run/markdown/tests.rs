use expect_test::{Expect, expect};

use super::*;
use crate::run::fake_terminal::FakeTerminal;

const SIZE: TerminalSize = TerminalSize { columns: 20, rows: 6 };

/// Compares the screen after streaming a text letter by letter.
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

#[test]
fn complete_lines_are_redrawn() {
    check(
        "# Title\n\n- **one** and `two`\n  - *three*\n> said\n\n---\n2. second\n",
        &expect![[r#"
            Title

            • one and two
              • three

            │ said

            ───────────────────

            2. second
        "#]],
    );
}

#[test]
fn wrapped_line_is_redrawn_in_its_rows() {
    check(
        "above\nA **long** line that takes `three` rows of it.\nbelow",
        &expect![[r#"
            above A long line
            that takes three
            rows of it. below
        "#]],
    );
}

#[test]
fn wide_letters_wrap_as_on_the_terminal() {
    check(
        "above\na日本語日本語日本語日 **太い**\nbelow",
        &expect![[r#"
            above a日本語日本語
            日本語日 太い below
        "#]],
    );
}

#[test]
fn line_higher_than_the_screen_is_not_redrawn() {
    check(
        &format!("above\n{}**bold**\nbelow", "0123456789".repeat(12)),
        &expect![[r#"
            above
            0123456789012345678
            9012345678901234567
            8901234567890123456
            7890123456789012345
            6789012345678901234
            5678901234567890123
            456789bold below
        "#]],
    );
}

#[test]
fn code_is_not_markdown() {
    check(
        "```sh\n# **not** a title\n```\n~~~~\n~~~\n**x**\n~~~~\n**bold**\n```one``` **line**\n",
        &expect![[r#"
            # **not** a title

            ~~~
            **x**

            bold one line
        "#]],
    );
}

#[test]
fn text_is_never_lost() {
    check(
        "[a]: http://b.c\n[d](http://e.f)\n<g>\nVec<T> & &amp;\n\\*h\\*\n\ti\n",
        &expect![[r#"
            d (http://e.f) <g>
            Vec<T> & & *h* i

            [a]: http://b.c
        "#]],
    );
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
