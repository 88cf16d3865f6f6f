use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const THEME: ColorTheme = ColorTheme { has_color: true, is_light: false };

/// Shows rows with the styles of their spans: `{bold:text}`.
fn show_styles(rows: &[StyledRow]) -> String {
    let mut shown = String::new();
    for row in rows {
        for span in &row.spans {
            let style = span.style;
            let names = [
                (style.is_bold, "bold"),
                (style.is_dim, "dim"),
                (style.is_italic, "italic"),
                (style.is_underlined, "underlined"),
                (style.is_struck, "struck"),
            ];
            let mut names: Vec<String> =
                names.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| (*name).to_owned()).collect();
            names.extend(style.color.map(|color| color.0.to_string()));
            names.extend(span.link.as_ref().map(|link| link.address().to_owned()));
            match names.as_slice() {
                [] => shown += &span.content,
                names => shown += &format!("{{{}:{}}}", names.join(" "), span.content),
            }
        }
        shown.push('\n');
    }
    shown
}

fn show_rows(rows: &[StyledRow]) -> String {
    rows.iter().map(|row| row.text() + if row.is_code { " ¶" } else { "" } + "\n").collect()
}

#[track_caller]
fn check(text: &str, width: usize, expected: &Expect) {
    let rows = render_markdown(text, width, &THEME);
    assert!(rows.iter().all(|row| row.is_code || row.width() <= width), "{}", show_rows(&rows));
    assert!(!rows.iter().any(|row| row.text().contains(char::is_control)), "{rows:?}");
    expected.assert_eq(&show_rows(&rows));
}

#[track_caller]
fn check_styles(text: &str, theme: ColorTheme, expected: &Expect) {
    expected.assert_eq(&show_styles(&render_markdown(text, 80, &theme)));
}

const SAMPLE: &str = include_str!("sample.md");

#[test]
fn sample_at_40_columns() {
    check(
        SAMPLE,
        40,
        &expect![[r#"
        Findings in parser.rs

        The parser drops the last line if it has
        no line feed. See the specification
        (https://example.org/spec) and
        https://example.org/issue.

        1. Read the file:
           • in chunks of 4096 bytes, which is
             as much as the kernel returns at
             once
           • without a limit
             │ A quote inside of an item is
             │ wrapped below its own bar as
             │ well.
        2. Append the rest

           fn finish(&mut self) -> Option<String> { ¶
               (!self.rest.is_empty()).then(|| std::mem::take(&mut self.rest)) // a long line of code that is not wrapped ¶
           } ¶
        10. Test it

        case                      │ input │ 結果
        ──────────────────────────┼───────┼─────
        none                      │  ""   │    0
        one line without a line   │  "a"  │    1
        feed at its end           │       │ 
        emoji 👩‍💻                  │  "é"  │   12

        cargo test -p crow-tui   # a comment ¶

        │ 日本語の文章は、単語の間に空白がありま
        │ せん。それでも行は折り返されます。

        Setext title

        ☑ done
        ☐ open

        ────────────────────────

        End.
    "#]],
    );
}

#[test]
fn sample_at_60_columns() {
    check(
        SAMPLE,
        60,
        &expect![[r#"
        Findings in parser.rs

        The parser drops the last line if it has no line feed. See
        the specification (https://example.org/spec) and
        https://example.org/issue.

        1. Read the file:
           • in chunks of 4096 bytes, which is as much as the kernel
             returns at once
           • without a limit
             │ A quote inside of an item is wrapped below its own
             │ bar as well.
        2. Append the rest

           fn finish(&mut self) -> Option<String> { ¶
               (!self.rest.is_empty()).then(|| std::mem::take(&mut self.rest)) // a long line of code that is not wrapped ¶
           } ¶
        10. Test it

        case                                    │ input │ 結果
        ────────────────────────────────────────┼───────┼─────
        none                                    │  ""   │    0
        one line without a line feed at its end │  "a"  │    1
        emoji 👩‍💻                                │  "é"  │   12

        cargo test -p crow-tui   # a comment ¶

        │ 日本語の文章は、単語の間に空白がありません。それでも行は折
        │ り返されます。

        Setext title

        ☑ done
        ☐ open

        ────────────────────────

        End.
    "#]],
    );
}

#[test]
fn sample_at_80_columns() {
    check(
        SAMPLE,
        80,
        &expect![[r#"
        Findings in parser.rs

        The parser drops the last line if it has no line feed. See the specification
        (https://example.org/spec) and https://example.org/issue.

        1. Read the file:
           • in chunks of 4096 bytes, which is as much as the kernel returns at once
           • without a limit
             │ A quote inside of an item is wrapped below its own bar as well.
        2. Append the rest

           fn finish(&mut self) -> Option<String> { ¶
               (!self.rest.is_empty()).then(|| std::mem::take(&mut self.rest)) // a long line of code that is not wrapped ¶
           } ¶
        10. Test it

        case                                    │ input │ 結果
        ────────────────────────────────────────┼───────┼─────
        none                                    │  ""   │    0
        one line without a line feed at its end │  "a"  │    1
        emoji 👩‍💻                                │  "é"  │   12

        cargo test -p crow-tui   # a comment ¶

        │ 日本語の文章は、単語の間に空白がありません。それでも行は折り返されます。

        Setext title

        ☑ done
        ☐ open

        ────────────────────────

        End.
    "#]],
    );
}

#[test]
fn sample_at_120_columns() {
    check(
        SAMPLE,
        120,
        &expect![[r#"
        Findings in parser.rs

        The parser drops the last line if it has no line feed. See the specification (https://example.org/spec) and
        https://example.org/issue.

        1. Read the file:
           • in chunks of 4096 bytes, which is as much as the kernel returns at once
           • without a limit
             │ A quote inside of an item is wrapped below its own bar as well.
        2. Append the rest

           fn finish(&mut self) -> Option<String> { ¶
               (!self.rest.is_empty()).then(|| std::mem::take(&mut self.rest)) // a long line of code that is not wrapped ¶
           } ¶
        10. Test it

        case                                    │ input │ 結果
        ────────────────────────────────────────┼───────┼─────
        none                                    │  ""   │    0
        one line without a line feed at its end │  "a"  │    1
        emoji 👩‍💻                                │  "é"  │   12

        cargo test -p crow-tui   # a comment ¶

        │ 日本語の文章は、単語の間に空白がありません。それでも行は折り返されます。

        Setext title

        ☑ done
        ☐ open

        ────────────────────────

        End.
    "#]],
    );
}

#[test]
fn styles_match_the_markdown() {
    let text = "## Title\n**bold** *italic* ***both*** `code` ~~gone~~ [a](http://b.c) <http://d.e>\n- [x] done\n- [ ] open\n\n```rust\nlet x = 1;\n```\n> said\n";
    check_styles(
        text,
        THEME,
        &expect![[r#"
            {bold:Title}

            {bold:bold} {italic:italic} {bold italic:both} {6:code} {struck:gone} {underlined 4 http://b.c:a}{dim http://b.c: (http://b.c)} {underlined 4 http://d.e:http://d.e}

            {2:☑ }done
            {dim:☐ }open

            {5:let} x = {3:1};

            {dim:│ }said
        "#]],
    );
    check_styles(
        text,
        ColorTheme { has_color: false, is_light: false },
        &expect![[r#"
            {bold:Title}

            {bold:bold} {italic:italic} {bold italic:both} code {struck:gone} {underlined http://b.c:a}{dim http://b.c: (http://b.c)} {underlined http://d.e:http://d.e}

            ☑ done
            {dim:☐ }open

            let x = 1;

            {dim:│ }said
        "#]],
    );
}

#[test]
fn text_is_never_lost() {
    check(
        "[a]: http://b.c\n\n[d](javascript:alert)\n<g>\nVec<T> & &amp;\n\\*h\\*\n![alt](i.png)\n\n\x1b[31mred\u{202e}",
        60,
        &expect![[r#"
            [a]: http://b.c

            d (javascript:alert) <g> Vec<T> & & *h* image: alt (i.png)

            red\u{202e}
        "#]],
    );
    check(
        "- \n-\n\n1. one\n1) other\n\n***\n\na\nb  \nc",
        60,
        &expect![[r#"
            • 
            • 

            1. one
            1. other

            ────────────────────────

            a b
            c
        "#]],
    );
}

#[test]
fn blocks_end_where_markdown_ends_them() {
    check(
        "text\n# title\ntext\n```\ncode\n\n# code\n```\ntext\n- a\nlazy\n\n  more\n  ```\n  x\n\n  y\n  ```\n- b\n\n- c\ntext\n\ntext\n===\n> q\nlazy\n\n> other",
        60,
        &expect![[r#"
            text

            title

            text

            code ¶
             ¶
            # code ¶

            text

            • a lazy

              more

              x ¶
               ¶
              y ¶
            • b

            • c text

            text

            │ q lazy

            │ other
        "#]],
    );
}

#[test]
fn indents_that_leave_too_little_are_dropped() {
    let text =
        ">>>>>> one\n>>>>>>\n>>>>>> two\n>>>>>>\n>>>>>> | a | b |\n>>>>>> |---|---|\n>>>>>> | c | d |\n";
    check(
        text,
        12,
        &expect![[r#"
            one

            two

            a │ b
            ──┼──
            c │ d
        "#]],
    );
}

#[test]
fn references_to_control_characters_do_not_reach_the_terminal() {
    let text = "a&#27;[2Jb&#7;c&#x9b;1md&#9;e&#x202e;f&#13;g [h&#27;](&#27;]52;c;eA==&#7;) `&#27;`\n\n\
                | i&#10;j&#27; |\n|---|\n| [k](/&#27;) |\n";
    check(
        text,
        60,
        &expect![[r#"
            a[2Jbc1md e\u{202e}f
            g h () &#27;

            i
            j
            ─────
            k (/)
        "#]],
    );
}

#[test]
fn carriage_return_inside_a_line_is_a_space() {
    check(
        "10%\r20%\r\n\n```\none\rtwo\n```\n",
        40,
        &expect![[r#"
            10% 20%

            one two ¶
        "#]],
    );
}

#[test]
fn open_segment_is_shown_and_then_replaced() {
    let mut stream = MarkdownStream::new(40, THEME);
    stream.push("# Title\n\nSome **bo");
    assert_eq!(show_rows(&stream.take_settled()), "Title\n");
    assert_eq!(show_rows(&stream.open_rows()), "\nSome **bo\n");
    stream.push("ld** text\n\n```rust\nlet x");
    assert_eq!(show_rows(&stream.take_settled()), "\nSome bold text\n");
    assert_eq!(show_rows(&stream.open_rows()), "\nlet x ¶\n");
    stream.push(" = 1;\nlet y = 2;\n");
    assert_eq!(show_rows(&stream.take_settled()), "\nlet x = 1; ¶\nlet y = 2; ¶\n");
    assert_eq!(show_rows(&stream.finish()), "");
}

#[test]
fn long_paragraph_is_divided() {
    let text = "word word word\n".repeat(4000);
    let mut stream = MarkdownStream::new(80, THEME);
    stream.push(&text);
    assert!(!stream.take_settled().is_empty());
}

/// Streams a text in pieces.
fn stream_pieces(text: &str, cuts: &[usize], width: usize) -> Vec<StyledRow> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let mut stream = MarkdownStream::new(width, THEME);
    let mut rows = Vec::new();
    for pair in cuts.windows(2) {
        stream.push(&text[pair[0]..pair[1]]);
        rows.extend(stream.take_settled());
        stream.open_rows();
    }
    rows.extend(stream.finish());
    rows
}

proptest! {
    #[test]
    fn streamed_rows_are_those_of_the_whole_sample(
        cuts in proptest::collection::vec(any::<usize>(), 0..30),
        width in 10_usize..120,
    ) {
        let streamed = stream_pieces(SAMPLE, &cuts, width);
        prop_assert_eq!(show_styles(&streamed), show_styles(&render_markdown(SAMPLE, width, &THEME)));
    }

    #[test]
    fn streamed_rows_are_those_of_any_text(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("".to_owned()), Just("```".to_owned()), Just("---".to_owned()), Just("| a | b |".to_owned()),
                Just("|---|---|".to_owned()), Just("# h".to_owned()), Just("1. x".to_owned()), Just("- y".to_owned()),
                Just("  z".to_owned()), Just("    code".to_owned()), Just("> q".to_owned()), "[a-c *`_#>|-]{0,12}",
            ],
            0..24,
        ),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let text = lines.join("\n");
        let rows = render_markdown(&text, 30, &THEME);
        prop_assert!(rows.iter().all(|row| row.is_code || row.width() <= 30));
        let streamed = stream_pieces(&text, &cuts, 30);
        prop_assert_eq!(show_styles(&streamed), show_styles(&rows));
    }
}

#[test]
fn definitions_that_no_link_uses_are_shown() {
    let text = "See [one] and [two].\n\n[one]: https://one.example 'A title'\n[two]: <https://two.example>\n";
    check(
        text,
        60,
        &expect![[r#"
            See [one] and [two].

            [one]: https://one.example
            [two]: https://two.example
        "#]],
    );
    // A link in the same paragraph shows the address itself.
    check(
        "[one]: https://one.example\nSee [one].\n",
        60,
        &expect![[r#"
            See one (https://one.example).
        "#]],
    );
    check(
        "- [one]: https://one.example\n",
        60,
        &expect![[r#"
            • 

            [one]: https://one.example
        "#]],
    );
}
