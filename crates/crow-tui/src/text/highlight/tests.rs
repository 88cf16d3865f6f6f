use expect_test::{Expect, expect};

use super::*;

const DARK: ColorTheme = ColorTheme { has_color: true, is_light: false };

/// Compares lines with the colour of each coloured part: `{1:red text}`.
#[track_caller]
fn check(language: &str, code: &str, expected: &Expect) {
    let mut highlighter = CodeHighlighter::new(language, DARK);
    let mut seen = String::new();
    for line in code.lines() {
        let spans = highlighter.highlight_line(line);
        assert_eq!(spans.iter().map(|span| span.content.as_str()).collect::<String>(), line);
        for span in spans {
            match (span.style.color, span.style.is_dim) {
                (Some(PaletteColor(color)), _) => seen += &format!("{{{color}:{}}}", span.content),
                (None, true) => seen += &format!("{{dim:{}}}", span.content),
                (None, false) => seen += &span.content,
            }
        }
        seen.push('\n');
    }
    expected.assert_eq(&seen);
}

#[test]
fn rust_is_coloured() {
    check(
        "rust",
        "fn main<'a>(x: &'a str) -> Option<char> {\n    // say \"hi\"\n    let c = 'x'; /* a /* b\n*/ */ print(\"a\\\"b\n{c}\", 0x1F, 1..2)\n}",
        &expect![[r#"
            {5:fn} main<'a>(x: &'a str) -> {6:Option}<char> {
                {dim:// say "hi"}
                {5:let} c = {2:'x'}; {dim:/* a /* b}
            {dim:*/ */} {12:print}({2:"a\"b}
            {2:{c}"}, {3:0x1F}, {3:1}..{3:2})
            }
        "#]],
    );
}

#[test]
fn other_languages_are_coloured() {
    check(
        "py",
        "def f(a):\n    \"\"\"long\n    text\"\"\"\n    return len(a)  # it's",
        &expect![[r#"
            {5:def} {12:f}(a):
                {2:"""long}
            {2:    text"""}
                {5:return} {12:len}(a)  {dim:# it's}
        "#]],
    );
    check(
        "sh",
        "for f in a#b; do echo 'it' # x",
        &expect!["{5:for} f {5:in} a#b; {5:do} echo {2:'it'} {dim:# x}\n"],
    );
    check("SQL", "select a FROM t -- x", &expect!["{5:select} a {5:FROM} t {dim:-- x}\n"]);
    check("toml", "two-words = \"x\" # y", &expect!["{6:two-words} = {2:\"x\"} {dim:# y}\n"]);
    check("diff", "@@ -1 +1 @@\n-a\n+b\n c", &expect!["{6:@@ -1 +1 @@}\n{1:-a}\n{2:+b}\n c\n"]);
    check("unheard-of", "let x = 1;", &expect!["let x = 1;\n"]);
}

#[test]
fn long_code_has_no_colours() {
    let mut highlighter = CodeHighlighter::for_path("src/main.rs", DARK);
    assert_eq!(highlighter.highlight_line("fn").len(), 1);
    assert!(highlighter.highlight_line("fn x").len() > 1);
    let long = format!("fn {}", "x".repeat(LINE_BYTES_MAX));
    assert_eq!(highlighter.highlight_line(&long).len(), 1);
    highlighter.n_bytes = HIGHLIGHT_BYTES_MAX;
    assert_eq!(highlighter.highlight_line("fn x").len(), 1);
}
