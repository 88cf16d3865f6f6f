use expect_test::{Expect, expect};

use super::*;

mod copied_markup;
mod line_endings;
mod loose_matches;
mod properties;

/// Renders the result: matcher and place, then the new text with visible line ends and tabs.
#[track_caller]
fn check_all(file: &str, old: &str, new: &str, occurrences: EditOccurrences, expected: &Expect) {
    let shown = match apply_edit(file, old, new, occurrences) {
        Ok(edited) => {
            let lines = edited.text.split_inclusive('\n').map(|line| format!("|{}\n", line.escape_debug()));
            let text: String = lines.collect();
            format!("{}, {} at line {}\n{text}", edited.matcher, edited.n_replaced, edited.line)
        }
        Err(refusal) => format!("{refusal}\n"),
    };
    expected.assert_eq(&shown);
}

#[track_caller]
fn check(file: &str, old: &str, new: &str, expected: &Expect) {
    check_all(file, old, new, EditOccurrences::One, expected);
}

#[test]
fn exact_match_is_replaced() {
    check(
        "one\ntwo\nthree\n",
        "two",
        "2\n2½",
        &expect![[r#"
        exact, 1 at line 2
        |one\n
        |2\n
        |2½\n
        |three\n
    "#]],
    );
    check(
        "a b c\n",
        " b ",
        "é",
        &expect![[r#"
        exact, 1 at line 1
        |aéc\n
    "#]],
    );
    check(
        "päth = „ü“\n",
        "ü",
        "ö",
        &expect![[r#"
        exact, 1 at line 1
        |päth = „ö“\n
    "#]],
    );
    check(
        "a\nb\nc\n",
        "b\n",
        "",
        &expect![[r#"
        exact, 1 at line 2
        |a\n
        |c\n
    "#]],
    );
    check(
        "a\nb",
        "a\nb",
        "a\nc",
        &expect![[r#"
        exact, 1 at line 2
        |a\n
        |c
    "#]],
    );
}

#[test]
fn invalid_edits_are_refused() {
    check(
        "a\n",
        "",
        "b",
        &expect![[r#"
            the old text is empty, which creates a file, but this file has content; give the lines to replace, or write the whole file
        "#]],
    );
    check(
        "a\n",
        "a",
        "a",
        &expect![[r#"
            the old and the new text are equal; give the text as it shall become
        "#]],
    );
    check(
        "fn a() {  \n    one();\n}\n",
        "fn a() {\n    one();\n",
        "fn a() {  \n    one();\n",
        &expect![[r#"
        the edit changes nothing: the file already contains the new text
    "#]],
    );
    check(
        "",
        "a",
        "b",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
}

#[test]
fn ambiguous_old_text_is_refused() {
    check(
        "x\ny\nx\nx x\n",
        "x",
        "z",
        &expect![[r#"
        the old text is in more than one place (lines 1, 3, 4); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "aaa",
        "aa",
        "b",
        &expect![[r#"
        the old text is in more than one place (line 1); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "}\n}\n}\n",
        "}\n}\n",
        "}\n",
        &expect![[r#"
        the old text is in more than one place (lines 1, 2); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "a\n\n\nb\n",
        "   \n",
        "c\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
}

#[test]
fn all_occurrences_are_replaced() {
    let all = EditOccurrences::All;
    check_all(
        "x\ny\nx x\n",
        "x",
        "z",
        all,
        &expect![[r#"
        exact, 3 at line 1
        |z\n
        |y\n
        |z z\n
    "#]],
    );
    check_all(
        "aaaaa",
        "aa",
        "b",
        all,
        &expect![[r#"
        exact, 2 at line 1
        |bba
    "#]],
    );
    check_all(
        "a \nb\nc\na\t\nb\n",
        "a\nb\n",
        "d\n",
        all,
        &expect![[r#"
        ignoring trailing spaces, 2 at line 1
        |d\n
        |c\n
        |d\n
    "#]],
    );
    check_all(
        "if a:\n  x\nif b:\n    x\n",
        "x\n",
        "y\n",
        all,
        &expect![[r#"
        exact, 2 at line 2
        |if a:\n
        |  y\n
        |if b:\n
        |    y\n
    "#]],
    );
}

#[test]
fn all_occurrences_keep_their_indentation() {
    let all = EditOccurrences::All;
    check_all(
        "  a\n  b\n    a\n    b\n",
        "a\nb\n",
        "c\n  d\n",
        all,
        &expect![[r#"
        ignoring indentation, 2 at line 1
        |  c\n
        |    d\n
        |    c\n
        |      d\n
    "#]],
    );
}

#[test]
fn trailing_spaces_are_ignored() {
    check(
        "one  \ntwo\t\nthree\n",
        "one\ntwo\nthree\n",
        "one\n2\nthree\n",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 2
        |one  \n
        |2\n
        |three\n
    "#]],
    );
    check(
        "one\ntwo\nthree",
        "two  \nthree  ",
        "2\n3",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 2
        |one\n
        |2\n
        |3
    "#]],
    );
}

#[test]
fn final_newlines_stay_unchanged() {
    check(
        "one\ntwo",
        "two\n",
        "2\n",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 2
        |one\n
        |2
    "#]],
    );
    check(
        "one\ntwo",
        "two\n",
        "",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 2
        |one\n
    "#]],
    );
    check(
        "one \ntwo\nthree\n",
        "one\ntwo\n",
        "",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 1
        |three\n
    "#]],
    );
    check(
        "one \ntwo\nthree\n",
        "one\ntwo",
        "1\n2\n",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 1
        |1\n
        |2\n
        |three\n
    "#]],
    );
    check(
        "one \ntwo\none\t\ntwo\n",
        "one\ntwo\n",
        "x\n",
        &expect![[r#"
        the old text is in more than one place (lines 1, 3); add lines around it until it is unique, or replace all of them
    "#]],
    );
}

#[test]
fn indentation_is_adapted_to_file() {
    let file = "class A:\n    def f(self):\n        if x:\n            return 1\n\n        return 2\n";
    check(
        file,
        "def f(self):\n    if x:\n        return 1\n\n    return 2\n",
        "def f(self):\n    y = x\n\n    if y:\n        return 1\n\n    return 3\n",
        &expect![[r#"
            ignoring indentation, 1 at line 3
            |class A:\n
            |    def f(self):\n
            |        y = x\n
            |\n
            |        if y:\n
            |            return 1\n
            |\n
            |        return 3\n
        "#]],
    );
    check(
        "def f():\n    return 1\n",
        "        def f():\n            return 1",
        "        def f():\n            return 2",
        &expect![[r#"
            ignoring indentation, 1 at line 2
            |def f():\n
            |    return 2\n
        "#]],
    );
}

#[test]
fn indentation_that_does_not_fit_is_refused() {
    // The body is indented by another amount than the head.
    check(
        "  if x:\n      a()\n      b()\n",
        "if x:\n  a()\n  b()\n",
        "c()\n",
        &expect![[r#"
            ignoring indentation, 1 at line 1
            |  c()\n
        "#]],
    );
    // The new text would need a negative indentation.
    check(
        "if x:\n    a()\n",
        "    if x:\n        a()\n",
        "else:\n    b()\n",
        &expect![[r#"
            ignoring indentation, 1 at line 1
            |else:\n
            |    b()\n
        "#]],
    );
    check(
        "  one()\n    one()\n",
        "one()\n ",
        "two()\n ",
        &expect![[r#"
        exact, 1 at line 1
        |  two()\n
        |    one()\n
    "#]],
    );
    check(
        "    one()\n        one()\n",
        "\tone()",
        "\ttwo()",
        &expect![[r#"
        the old text is in more than one place (lines 1, 2); add lines around it until it is unique, or replace all of them
    "#]],
    );
}

#[test]
fn tabs_and_spaces_are_converted() {
    check(
        "func f() {\n\tif x {\n\t\ta()\n\t}\n}\n",
        "    if x {\n        a()\n    }\n",
        "    if x {\n        for {\n            a()\n        }\n    }\n",
        &expect![[r#"
            ignoring indentation, 1 at line 3
            |func f() {\n
            |\tif x {\n
            |\t\tfor {\n
            |\t\t\ta()\n
            |\t\t}\n
            |\t}\n
            |}\n
        "#]],
    );
    check(
        "\tif x {\n\t\ta()\n\t}\n",
        "if x {\n  a()\n}\n",
        "if x {\n  a()\n  b()\n}\n",
        &expect![[r#"
        ignoring indentation, 1 at line 3
        |\tif x {\n
        |\t\ta()\n
        |\t\tb()\n
        |\t}\n
    "#]],
    );
    check(
        "  if x:\n    a()\n",
        "\tif x:\n\t\ta()\n",
        "\tif x:\n\t\ta()\n\t\tb()\n",
        &expect![[r#"
        ignoring indentation, 1 at line 3
        |  if x:\n
        |    a()\n
        |    b()\n
    "#]],
    );
    check(
        "\t\ta()\n",
        "a() ",
        "if x {\n    a()\n}",
        &expect![[r#"
        ignoring indentation, 1 at line 1
        |\t\tif x {\n
        |\t\t\ta()\n
        |\t\t}\n
    "#]],
    );
}

#[test]
fn typographic_punctuation_equals_plain() {
    check(
        "say “hi” – it’s\u{a0}late…\n",
        "say \"hi\" - it's late...",
        "say \"bye\"",
        &expect![[r#"
            ignoring typographic quotes and dashes, 1 at line 1
            |say \"bye\"\n
        "#]],
    );
    check(
        "# “A”\nx = 1\n# — B\n",
        "# \"A\"\nx = 1\n# - B\n",
        "# \"A\"\nx = 2\n# - B\n",
        &expect![[r#"
            ignoring typographic quotes and dashes, 1 at line 2
            |# “A”\n
            |x = 2\n
            |# — B\n
        "#]],
    );
    check(
        "“a”\n„b“\n«a»\n",
        "\"a\"\n\"b\"\n",
        "c\n",
        &expect![[r#"
        ignoring typographic quotes and dashes, 1 at line 1
        |c\n
        |«a»\n
    "#]],
    );
    check(
        "“a”\n\"a\"\n„a”\n",
        "‟a‟",
        "b",
        &expect![[r#"
        the old text is in more than one place (lines 1, 2, 3); add lines around it until it is unique, or replace all of them
    "#]],
    );
}

/// Inner lines count as much as the first and the last.
#[test]
fn matching_first_and_last_lines_are_no_match() {
    check(
        "fn total(items: &[Item]) -> u32 {\n    let tax = 7;\n    items.iter().map(Item::price).sum::<u32>() + tax\n}\n",
        "fn total(items: &[Item]) -> u32 {\n    todo!()\n}\n",
        "fn total(items: &[Item]) -> u32 {\n    0\n}\n",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly
        "#]],
    );
    check(
        "a {\n  b\n  c\n}\n",
        "a {\n  x\n  y\n}\n",
        "a {}\n",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (84 % similar, the first difference is in line 2):
            a {
              b
              c
            }
        "#]],
    );
}

#[test]
fn nearest_place_is_shown() {
    check(
        "fn one() {}\n\nfn price(item: &Item) -> u32 {\n    item.price * item.count\n}\n",
        "fn price(item: &Item) -> u64 {\n    item.price * item.amount\n}",
        "x",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 3 (94 % similar, the first difference is in line 3):
            fn price(item: &Item) -> u32 {
                item.price * item.count
            }
        "#]],
    );
    check(
        "alpha\nbeta\n",
        "something else entirely\n",
        "x",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
    let long = "let value = compute(first, second);\n".repeat(60);
    check(
        &long,
        &long.replace("second", "third"),
        "x",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (89 % similar, the first difference is in line 1):
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);
            let value = compute(first, second);…
        "#]],
    );
}

#[test]
fn nearest_place_search_is_bounded() {
    let deep =
        format!("{}let count = 12;\n{}", "filler = 1;\n".repeat(15_000), "filler = 2;\n".repeat(4_000));
    check(
        &deep,
        "let counts = 12;",
        "x",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 15001 (96 % similar, the first difference is in line 15001):
            let count = 12;
        "#]],
    );
    let huge = format!("{}\nlet count = 12;\n", "filler".repeat(1_400_000));
    check(
        &huge,
        "let counts = 12;",
        "x",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly
        "#]],
    );
}
