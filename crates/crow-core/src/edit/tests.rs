use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Shows the outcome: how and where, then the new text line by line with its invisible characters.
#[track_caller]
fn check_all(file: &str, old: &str, new: &str, occurrences: Occurrences, expected: &Expect) {
    let shown = match apply(file, old, new, occurrences) {
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
    check_all(file, old, new, Occurrences::One, expected);
}

#[test]
fn exact() {
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
fn refusals() {
    check(
        "a\n",
        "",
        "b",
        &expect![[r#"
        the old text is empty; give the lines to replace, or write the whole file
    "#]],
    );
    check(
        "a\n",
        "a",
        "a",
        &expect![[r#"
        the edit changes nothing: the new text is what the file says already
    "#]],
    );
    check(
        "fn a() {  \n    one();\n}\n",
        "fn a() {\n    one();\n",
        "fn a() {  \n    one();\n",
        &expect![[r#"
        the edit changes nothing: the new text is what the file says already
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
fn an_old_text_in_several_places_is_refused() {
    check(
        "x\ny\nx\nx x\n",
        "x",
        "z",
        &expect![[r#"
        the old text is in more than one place (lines 1, 3, 4); add lines around it until it names one place, or replace all of them
    "#]],
    );
    check(
        "aaa",
        "aa",
        "b",
        &expect![[r#"
        the old text is in more than one place (line 1); add lines around it until it names one place, or replace all of them
    "#]],
    );
    check(
        "}\n}\n}\n",
        "}\n}\n",
        "}\n",
        &expect![[r#"
        the old text is in more than one place (lines 1, 2); add lines around it until it names one place, or replace all of them
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
fn every_occurrence() {
    let all = Occurrences::All;
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
fn every_occurrence_is_indented_as_it_stands() {
    let all = Occurrences::All;
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
fn trailing_spaces() {
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
fn final_newlines_stay_as_they_are() {
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
        the old text is in more than one place (lines 1, 3); add lines around it until it names one place, or replace all of them
    "#]],
    );
}

#[test]
fn line_endings() {
    check(
        "a\r\nb\r\nc\r\n",
        "a\nb\n",
        "a\nx\ny\n",
        &expect![[r#"
        exact, 1 at line 2
        |a\r\n
        |x\r\n
        |y\r\n
        |c\r\n
    "#]],
    );
    check(
        "a\r\nb\r\nc\r\n",
        "b",
        "x\ny",
        &expect![[r#"
        exact, 1 at line 2
        |a\r\n
        |x\r\n
        |y\r\n
        |c\r\n
    "#]],
    );
    check(
        "a\r\nfoo(b,\r\n  c)\r\n",
        "(b,\n  c",
        "(d,\n  e,\n  f",
        &expect![[r#"
        exact, 1 at line 2
        |a\r\n
        |foo(d,\r\n
        |  e,\r\n
        |  f)\r\n
    "#]],
    );
}

#[test]
fn line_endings_of_the_edit() {
    check(
        "a\nb\nc\n",
        "a\r\nb\r\n",
        "x\r\ny\r\n",
        &expect![[r#"
        exact, 1 at line 1
        |x\n
        |y\n
        |c\n
    "#]],
    );
    check(
        "a\r\nb\r\n",
        "a\r\n",
        "a\n",
        &expect![[r#"
        exact, 1 at line 1
        |a\n
        |b\r\n
    "#]],
    );
}

#[test]
fn mixed_line_endings() {
    check(
        "a\r\nb \r\nc\n",
        "a\nb\n",
        "a\nx\ny\n",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 2
        |a\r\n
        |x\r\n
        |y\r\n
        |c\n
    "#]],
    );
    check(
        "a\r\nb\r\nc\nd\n",
        "c\nd\n",
        "x\ny\nz\n",
        &expect![[r#"
        exact, 1 at line 3
        |a\r\n
        |b\r\n
        |x\n
        |y\n
        |z\n
    "#]],
    );
    check(
        "a\nb\r\na\r\nb\n",
        "a\nb",
        "x",
        &expect![[r#"
        the old text is in more than one place (lines 1, 3); add lines around it until it names one place, or replace all of them
    "#]],
    );
    check(
        "one line",
        "one",
        "1\r\n2",
        &expect![[r#"
        exact, 1 at line 1
        |1\r\n
        |2 line
    "#]],
    );
}

#[test]
fn byte_order_mark() {
    check(
        "\u{feff}a \nb\n",
        "a\nb\n",
        "x\nb\n",
        &expect![[r#"
        ignoring trailing spaces, 1 at line 1
        |\u{feff}x\n
        |b\n
    "#]],
    );
    check(
        "\u{feff}  a\n  b\n",
        "a\nb\n",
        "x\nb\n",
        &expect![[r#"
        ignoring indentation, 1 at line 1
        |\u{feff}  x\n
        |  b\n
    "#]],
    );
}

#[test]
fn indentation() {
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
fn indentation_that_does_not_fit() {
    // The body is deeper than the head by another amount.
    check(
        "  if x:\n      a()\n      b()\n",
        "if x:\n  a()\n  b()\n",
        "c()\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (77 % alike):
          if x:
              a()
              b()
    "#]],
    );
    // The new text goes further left than the file has room for.
    check(
        "if x:\n    a()\n",
        "    if x:\n        a()\n",
        "else:\n    b()\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (76 % alike):
        if x:
            a()
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
        the old text is in more than one place (lines 1, 2); add lines around it until it names one place, or replace all of them
    "#]],
    );
}

#[test]
fn tabs_and_spaces() {
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
fn punctuation() {
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
        the old text is in more than one place (lines 1, 2, 3); add lines around it until it names one place, or replace all of them
    "#]],
    );
}

/// Inner lines count as much as the first and the last.
#[test]
fn a_frame_is_not_a_match() {
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
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (84 % alike):
        a {
          b
          c
        }
    "#]],
    );
}

#[test]
fn the_nearest_place_is_shown() {
    check(
        "fn one() {}\n\nfn price(item: &Item) -> u32 {\n    item.price * item.count\n}\n",
        "fn price(item: &Item) -> u64 {\n    item.price * item.amount\n}",
        "x",
        &expect![[r#"
            the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 3 (94 % alike):
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
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (89 % alike):
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
fn the_nearest_place_is_not_sought_for_ever() {
    let deep =
        format!("{}let count = 12;\n{}", "filler = 1;\n".repeat(15_000), "filler = 2;\n".repeat(4_000));
    check(
        &deep,
        "let counts = 12;",
        "x",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 15001 (96 % alike):
        let count = 12;
    "#]],
    );
    let huge = format!("{}let count = 12;\n", "filler = 1;\n".repeat(20_000));
    check(
        &huge,
        "let counts = 12;",
        "x",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
}

fn any_line() -> impl Strategy<Value = String> {
    "[ \t]{0,3}[abé“\" ]{0,4}"
}

fn any_file() -> impl Strategy<Value = String> {
    (prop::collection::vec(any_line(), 1..10), any::<bool>())
        .prop_map(|(lines, is_ended)| lines.join("\n") + if is_ended { "\n" } else { "" })
}

/// A file and a piece of it.
fn file_and_piece() -> impl Strategy<Value = (String, String)> {
    (any_file(), any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(file, a, b)| {
        let chars: Vec<char> = file.chars().collect();
        let (a, b) = (a.index(chars.len() + 1), b.index(chars.len() + 1));
        let piece = chars[a.min(b)..a.max(b)].iter().collect();
        (file, piece)
    })
}

fn any_occurrences() -> impl Strategy<Value = Occurrences> {
    prop_oneof![Just(Occurrences::One), Just(Occurrences::All)]
}

fn with_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

proptest! {
    #[test]
    fn a_unique_piece_is_replaced_as_it_is((file, old) in file_and_piece(), new in any_file()) {
        let is_unique = !old.is_empty() && file.find(&old) == file.rfind(&old);
        prop_assume!(is_unique && old != new);
        let edited = apply(&file, &old, &new, Occurrences::One).unwrap();
        prop_assert_eq!(&edited.text, &file.replacen(&old, &new, 1));
        prop_assert_eq!((edited.matcher, edited.n_replaced), (Matcher::Exact, 1));
    }

    #[test]
    fn a_piece_that_is_not_unique_is_refused(old in any_file(), between in any_file(), new in any_file()) {
        prop_assume!(!old.is_empty() && old != new);
        let file = format!("{old}{between}{old}");
        let refusal = apply(&file, &old, &new, Occurrences::One).unwrap_err();
        let is_ambiguous = matches!(refusal, EditRefusal::Ambiguous { .. });
        prop_assert!(is_ambiguous);
        let edited = apply(&file, &old, &new, Occurrences::All).unwrap();
        prop_assert_eq!(edited.text, file.replace(&old, &new));
    }

    /// Whatever the matcher, the text before and after the lines it found stays, to the byte.
    #[test]
    fn text_around_the_place_stays(file in any_file(), old in any_file(), new in any_file()) {
        let Ok(edited) = apply(&file, &old, &new, Occurrences::One) else { return Ok(()) };
        let n_lines = old.strip_suffix('\n').unwrap_or(&old).split('\n').count();
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        let is_kept = (0..lines.len()).any(|first| {
            let after = (first + n_lines).min(lines.len());
            edited.text.starts_with(&lines[..first].concat()) && edited.text.ends_with(&lines[after..].concat())
        });
        prop_assert!(is_kept, "{:?}", edited);
    }

    #[test]
    fn line_endings_make_no_difference(
        file in any_file(), old in any_file(), new in any_file(), occurrences in any_occurrences(),
    ) {
        let of_lf = apply(&file, &old, &new, occurrences);
        let of_crlf = apply(&with_crlf(&file), &old, &new, occurrences);
        match (of_lf, of_crlf) {
            (Ok(of_lf), Ok(of_crlf)) if file.contains('\n') => {
                prop_assert_eq!(with_crlf(&of_lf.text), of_crlf.text);
                prop_assert_eq!(of_lf.line, of_crlf.line);
            }
            (of_lf, of_crlf) => prop_assert_eq!(of_lf, of_crlf),
        }
    }

    #[test]
    fn crlf_pieces_are_found((file, old) in file_and_piece(), new in any_file()) {
        prop_assume!(!old.is_empty() && old != new && file.find(&old) == file.rfind(&old) && file.contains('\n'));
        let edited = apply(&with_crlf(&file), &old, &new, Occurrences::One).unwrap();
        prop_assert_eq!(edited.text, with_crlf(&file.replacen(&old, &new, 1)));
    }

    /// Loose matches never invent: take the looseness away on both sides and the old text is there.
    #[test]
    fn every_line_of_a_match_agrees(file in any_file(), old in any_file()) {
        let Ok(edited) = apply(&file, &old, "NEW", Occurrences::One) else { return Ok(()) };
        let bare = |text: &str| -> String {
            let plain = text.replace(['“', '”'], "\"");
            plain.split('\n').map(|line| line.trim().to_owned() + "\n").collect()
        };
        let old = bare(old.trim_end());
        prop_assert!(bare(&file).contains(old.trim_end()), "{:?}", edited);
    }
}
