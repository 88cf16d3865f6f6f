//! The looser matchers: accepted differences, the resulting text, and refusals.

use expect_test::expect;

use super::{check, check_all};
use crate::edit::refusal::PLACES_MAX;
use crate::edit::{EditOccurrences, EditRefusal, apply_edit};

#[test]
fn amount_of_white_space_is_ignored() {
    check(
        "a   = 1\t# one\nbcd = 2\t# two\n",
        "a = 1 # one\nbcd = 2 # two\n",
        "a = 1 # one\nbcd = 3 # three\n",
        &expect![[r#"
            ignoring the amount of white space, 1 at line 2
            |a   = 1\t# one\n
            |bcd = 3 # three\n
        "#]],
    );
    check(
        "\tcall(a,  b)\n",
        "    call(a, b)",
        "    call(a, b)\n    call(b, a)",
        &expect![[r#"
        ignoring the amount of white space, 1 at line 1
        |\tcall(a, b)\n
        |\tcall(b, a)\n
    "#]],
    );
    // Between letters, white space is significant.
    check(
        "ab = 1\n",
        "a b = 1\n",
        "c\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (92 % similar, the first difference is in line 1):
        ab = 1
    "#]],
    );
}

#[test]
fn white_space_beside_symbols_is_ignored_in_one_line() {
    check(
        "a = 1\nkey = old  # why\n",
        "key=old",
        "key=new",
        &expect![[r#"
        ignoring white space beside symbols, 1 at line 2
        |a = 1\n
        |key = new  # why\n
    "#]],
    );
    check(
        "return x=f(a,b) ;\n",
        "return x = f(a, b);",
        "return y = f(a, c);",
        &expect![[r#"
        ignoring white space beside symbols, 1 at line 1
        |return y=f(a,c) ;\n
    "#]],
    );
    check(
        "    {\"a\": [1, 2]}\n",
        "  {\"a\":[1,2]}  ",
        "  {\"a\":[1,2,3]}  ",
        &expect![[r#"
        ignoring white space beside symbols, 1 at line 1
        |    {\"a\": [1, 2,3]}\n
    "#]],
    );
}

#[test]
fn white_space_beside_symbols_is_compared_in_words_and_lines() {
    // Not inside a word, not between words, not in two places, and not in several lines.
    check(
        "max = 10\n",
        "x=1",
        "x=2",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
    check(
        "ab = 1\n",
        "a b=1",
        "c=1",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (72 % similar, the first difference is in line 1):
        ab = 1
    "#]],
    );
    check(
        "a = 1\nb\na =1\n",
        "a=1",
        "a=2",
        &expect![[r#"
        the old text is in more than one place (lines 1, 3); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "a = 1\nb = 2\n",
        "a=1\nb=2",
        "a=3\nb=2",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (77 % similar, the first difference is in line 1):
        a = 1
        b = 2
    "#]],
    );
    check_all(
        "a = 1\n",
        "a=1",
        "a=2",
        EditOccurrences::All,
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (75 % similar, the first difference is in line 1):
        a = 1
    "#]],
    );
    // An inexact match counts the place that only this one finds.
    check(
        "it’s = 1\nit's=1\n",
        "it's = 1",
        "it's = 2",
        &expect![[r#"
        the old text is in more than one place (lines 1, 2); add lines around it until it is unique, or replace all of them
    "#]],
    );
}

#[test]
fn typographic_punctuation_combines_with_indentation() {
    check(
        "class A:\n    # “what”\u{a0}– it’s\n    pass\n",
        "# \"what\" - it's\npass\n",
        "# what it is\nif x:\n    pass\n",
        &expect![[r#"
            ignoring typographic quotes and dashes, 1 at line 2
            |class A:\n
            |    # what it is\n
            |    if x:\n
            |        pass\n
        "#]],
    );
    // No-break spaces count as indentation.
    check(
        "if x:\n    a()\n    b()\n",
        "\u{a0}\u{a0}\u{a0}\u{a0}a()\n\u{a0}\u{a0}\u{a0}\u{a0}b()\n",
        "\u{a0}\u{a0}\u{a0}\u{a0}a()\n\u{a0}\u{a0}\u{a0}\u{a0}c()\n",
        &expect![[r#"
            ignoring typographic quotes and dashes, 1 at line 3
            |if x:\n
            |    a()\n
            |\u{a0}\u{a0}\u{a0}\u{a0}c()\n
        "#]],
    );
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn blank_lines_are_ignored() {
    let file = "fn a() {}\n\n\nfn b() {\n    one();\n\n    two();\n}\n";
    check(
        file,
        "fn a() {}\n\nfn b() {\n    one();\n    two();\n}\n",
        "fn a() {}\n\nfn b() {\n    1;\n    two();\n}\n",
        &expect![[r#"
            ignoring blank lines, 1 at line 5
            |fn a() {}\n
            |\n
            |\n
            |fn b() {\n
            |    1;\n
            |\n
            |    two();\n
            |}\n
        "#]],
    );
    check(
        file,
        "\n\n\n    one();\n\n\n    two();\n\n\n",
        "\n\n\n    1;\n\n\n    2;\n\n\n",
        &expect![[r#"
        ignoring blank lines, 1 at line 5
        |fn a() {}\n
        |\n
        |\n
        |fn b() {\n
        |    1;\n
        |\n
        |\n
        |    2;\n
        |}\n
    "#]],
    );
    check(
        file,
        "one();\ntwo();\n",
        "",
        &expect![[r#"
        ignoring blank lines, 1 at line 5
        |fn a() {}\n
        |\n
        |\n
        |fn b() {\n
        |}\n
    "#]],
    );
    // The model's blank lines are inserted, and those only in the file stay.
    check(
        file,
        "    one();\n    two();\n}",
        "    one();\n    two();\n\n    three();\n}",
        &expect![[r#"
        ignoring blank lines, 1 at line 8
        |fn a() {}\n
        |\n
        |\n
        |fn b() {\n
        |    one();\n
        |\n
        |    two();\n
        |\n
        |    three();\n
        |}\n
    "#]],
    );
    check(
        "a\n\nb\nc",
        "a\nb\n\nc\n\n",
        "a\nb\n\nd\n\n",
        &expect![[r#"
        ignoring blank lines, 1 at line 4
        |a\n
        |\n
        |b\n
        |d
    "#]],
    );
}

#[test]
fn escapes_are_decoded() {
    let file = "fn a() {\n\tsay(\"hi\");\n\tsay(\"\\n\");\n}\n";
    check(
        file,
        r#"\tsay(\"hi\");\n\tsay(\"\\n\");\n"#,
        r#"\tsay(\"bye\");\n\tsay(\"\\t\");\n"#,
        &expect![[r#"
            decoding escapes, 1 at line 2
            |fn a() {\n
            |\tsay(\"bye\");\n
            |\tsay(\"\\t\");\n
            |}\n
        "#]],
    );
    check(
        file,
        "  say(\\\"hi\\\");\n",
        "  say(\\\"bye\\\", '\\t');\n",
        &expect![[r#"
            decoding escapes, 1 at line 2
            |fn a() {\n
            |\tsay(\"bye\", \'\\t\');\n
            |\tsay(\"\\n\");\n
            |}\n
        "#]],
    );
    check(
        file,
        r#"fn a() {\n\tsay(\"hi\");"#,
        "",
        &expect![[r#"
            decoding escapes, 1 at line 1
            |\n
            |\tsay(\"\\n\");\n
            |}\n
        "#]],
    );
    // A new text that is not escaped throughout may contain genuine escapes.
    check(
        file,
        r#"\tsay(\"hi\");\n"#,
        "\tsay(\"\\n\");\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 2 (74 % similar, the first difference is in line 2):
        	say("hi");
    "#]],
    );
    check(
        "let tab = '\t';\n",
        r"let tab = '\t';",
        r"let tab = '\n';",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (89 % similar, the first difference is in line 1):
        let tab = '	';
    "#]],
    );
}

#[test]
fn indentation_steps_may_differ() {
    check(
        "if x:\n  if y:\n    a()\n  b()\n",
        "if x:\n    if y:\n        a()\n    b()\n",
        "if x:\n    if y:\n        c()\n    d()\n",
        &expect![[r#"
            ignoring indentation, 1 at line 3
            |if x:\n
            |  if y:\n
            |    c()\n
            |  d()\n
        "#]],
    );
    check(
        "if x:\n  if y:\n    a()\n",
        "if x:\n    if y:\n        a()\n",
        "if x:\n    if y:\n        if z:\n            a()\n",
        &expect![[r#"
            the old text is at line 1, but with an indentation that the new text cannot follow; copy the lines with their indentation:
            if x:
              if y:
                a()
        "#]],
    );
}

/// For every matcher, another place that a looser one accepts makes the edit ambiguous.
#[test]
fn place_must_be_unique_for_loosest_matcher() {
    check(
        "a  \nb\n\n  a\n  b\n",
        "a\nb\n",
        "c\n",
        &expect![[r#"
        the old text is in more than one place (lines 1, 4); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "say “a”\nsay  \"a\"\n",
        "say ”a”\n",
        "c\n",
        &expect![[r#"
        the old text is in more than one place (lines 1, 2); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "a\nb\n\na\n\nb\n",
        "a\nb \n",
        "c\n",
        &expect![[r#"
        the old text is in more than one place (lines 1, 4); add lines around it until it is unique, or replace all of them
    "#]],
    );
    // An exact match is not ambiguous.
    check(
        "a\nb\n\n  a\n\n  b\n",
        "a\nb\n",
        "c\n",
        &expect![[r#"
        exact, 1 at line 1
        |c\n
        |\n
        |  a\n
        |\n
        |  b\n
    "#]],
    );
}

#[test]
fn all_occurrences_use_strictest_match() {
    check_all(
        "a \nb\n  a\n  b\na\t\nb\n",
        "a\nb\n",
        "c\n",
        EditOccurrences::All,
        &expect![[r#"
        ignoring trailing spaces, 2 at line 1
        |c\n
        |  a\n
        |  b\n
        |c\n
    "#]],
    );
    // The second one begins within the first.
    check_all(
        "a \na \na \n",
        "a\na\n",
        "b\n",
        EditOccurrences::All,
        &expect![[r#"
        ignoring trailing spaces, 1 at line 1
        |b\n
        |a \n
    "#]],
    );
    check_all(
        "  if x:\n      a()\n if x:\n  b()\n",
        "if x:\n",
        "if y:\n",
        EditOccurrences::All,
        &expect![[r#"
        exact, 2 at line 1
        |  if y:\n
        |      a()\n
        | if y:\n
        |  b()\n
    "#]],
    );
}

#[test]
fn edit_size_is_limited() {
    let many = "ab".repeat(PLACES_MAX + 1);
    assert_eq!(apply_edit(&many, "a", "b", EditOccurrences::All), Err(EditRefusal::TooLarge));
    let lines = "a \n".repeat(PLACES_MAX + 1);
    assert_eq!(apply_edit(&lines, "a\n", "b\n", EditOccurrences::All), Err(EditRefusal::TooLarge));
    let long = "b".repeat(1024 * 1024);
    assert_eq!(apply_edit(&"a".repeat(17), "a", &long, EditOccurrences::All), Err(EditRefusal::TooLarge));
    let deep = format!("{}a\n", " ".repeat(1024 * 1024));
    let lines = format!("b\n{}", "c\n".repeat(20));
    let refusal = apply_edit(&deep, "a\t\n", &lines, EditOccurrences::One).unwrap_err();
    assert!(matches!(refusal, EditRefusal::IndentMismatch { line: 1, .. }), "{refusal}");
    check_all(
        "aaa",
        "a",
        "bb",
        EditOccurrences::All,
        &expect![[r#"
        exact, 3 at line 1
        |bbbbbb
    "#]],
    );
}

#[test]
fn difference_is_shown() {
    let file: String = (1..60).map(|n| format!("let value_{n} = compute({n}, {n});\n")).collect();
    check(
        &file,
        &file.replace("value_40 =", "worth_40 ="),
        "x",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (99 % similar, the first difference is in line 40):
        …
        let value_37 = compute(37, 37);
        let value_38 = compute(38, 38);
        let value_39 = compute(39, 39);
        let value_40 = compute(40, 40);
        let value_41 = compute(41, 41);
        let value_42 = compute(42, 42);
        let value_43 = compute(43, 43);
        let value_44 = compute(44, 44);
        let value_45 = compute(45, 45);
        let value_46 = compute(46, 46);
        let value_47 = compute(47, 47);
        let value_48 = compute(48, 48);
        let value_49 = compute(49, 49);
        let value_50 = compute(50, 50);
        let value_51 = compute(51, 51);
        let value_52 = compute(52, 52);
        let value_53 = compute(53, 53);
        let value_54 = compute(54, 54);
        let value_55 = compute(55, 55);
        let value_56 = compute(56, 56);…
    "#]],
    );
}

/// The old text has another indentation than the line that contains it, and than another line.
#[test]
fn place_between_two_indentations_is_refused() {
    let ambiguous = |first: u32, second: u32| Err(EditRefusal::Ambiguous { lines: vec![first, second] });
    let file = "if a:\n  go()\nif b:\n        go()\n";
    assert_eq!(apply_edit(file, "    go()", "    stop()", EditOccurrences::One), ambiguous(2, 4));
    assert_eq!(apply_edit(file, "    go()\n", "    stop()\n", EditOccurrences::One), ambiguous(2, 4));
    // With tabs, in several lines, and before the rest of a line.
    assert_eq!(
        apply_edit("\t\tgo()\n    go()\n", "\tgo()", "\tstop()", EditOccurrences::One),
        ambiguous(1, 2)
    );
    let blocks = "{\n      a\n    b\n}\n{\n  a\nb\n}\n";
    assert_eq!(apply_edit(blocks, "    a\n    b", "    a\n    c", EditOccurrences::One), ambiguous(2, 6));
    assert_eq!(
        apply_edit("        go() # 1\n  go()\n", "    go()", "    stop()", EditOccurrences::One),
        ambiguous(1, 2)
    );
    // It is a whole line in one of them, or in no other.
    let landed =
        |file: &str, old: &str| apply_edit(file, old, "x", EditOccurrences::One).map(|edited| edited.text);
    assert_eq!(landed(file, "  go()\nif b:"), Ok("if a:\nx\n        go()\n".to_owned()));
    assert_eq!(landed("  go()\n", " go()"), Ok(" x\n".to_owned()));
    assert_eq!(landed("    go(1)\n  go(2)\n", "  go(1"), Ok("  x)\n  go(2)\n".to_owned()));
}

/// The text after the last line of the old text follows that of the new one, for whole lines as for exact matches.
#[test]
fn trailing_blank_lines_of_new_text_stay() {
    let file = "{\n    a(\"x\", 1);\n}\nb\n";
    for (new, end) in [
        ("    c();", ""),
        ("    c();\n\n", "\n\n"),
        ("    c();\n    d();\n\n", "\n    d();\n\n"),
        ("    c();\n\n\n", "\n\n\n"),
        ("    c();\r\n\r\n", "\n\n"),
    ] {
        for (old, is_ended) in [
            ("    a(\"x\", 1);", false),
            ("    a(\"x\", 1); ", false),
            ("    a(\"x\",  1);", false),
            ("    a(“x”, 1);", false),
            ("    a(\"x\", 1);\n", true),
            ("    a(\"x\", 1); \n", true),
            ("    a(\"x\",  1);\n", true),
            ("    a(“x”, 1);\n", true),
        ] {
            // One line ending equals the one in the old text.
            let (new, end) = if is_ended { (format!("{new}\n"), end) } else { (new.to_owned(), end) };
            let edited = apply_edit(file, old, &new, EditOccurrences::One).map(|edited| edited.text);
            assert_eq!(edited, Ok(format!("{{\n    c();{end}\n}}\nb\n")), "{old:?} {new:?}");
        }
    }
    let at_end =
        |old: &str, new: &str| apply_edit("a", old, new, EditOccurrences::One).map(|edited| edited.text);
    assert_eq!(at_end(" a", "b\n\n"), Ok("b\n\n".to_owned()));
}
