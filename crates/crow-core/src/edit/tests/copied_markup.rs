//! Copied line numbers and fences, and placeholders.

use expect_test::expect;

use super::check;
use crate::edit::{AppliedEdit, EditOccurrences, EditRefusal, apply_edit};

const FILE: &str = "fn a() {\n    one();\n\n    two();\n}\n";

#[test]
fn line_numbers_are_removed() {
    check(
        FILE,
        "     2\t    one();\n     3\t\n     4\t    two();\n",
        "     2\t    1();\n     3\t    2();\n",
        &expect![[r#"
            without copied line numbers, 1 at line 2
            |fn a() {\n
            |    1();\n
            |    2();\n
            |}\n
        "#]],
    );
    check(
        FILE,
        "2:     one();\n3:\n4:     two();",
        "    1();",
        &expect![[r#"
            without copied line numbers, 1 at line 2
            |fn a() {\n
            |    1();\n
            |}\n
        "#]],
    );
    check(
        FILE,
        "L2:     one();",
        "L2:     1();",
        &expect![[r#"
        without copied line numbers, 1 at line 2
        |fn a() {\n
        |    1();\n
        |\n
        |    two();\n
        |}\n
    "#]],
    );
    check(
        FILE,
        "12|    one();\n13|\n14|    two();",
        "12|    1();\n13|    2();\n14|    3();",
        &expect![[r#"
        without copied line numbers, 1 at line 2
        |fn a() {\n
        |    1();\n
        |    2();\n
        |    3();\n
        |}\n
    "#]],
    );
}

#[test]
fn line_that_is_a_number_is_no_line_number() {
    check(
        "fn a() -> u32 {\n    0\n}\n",
        "     1→fn a() -> u32 {\n     2→    0\n     3→}\n",
        "fn b() -> u32 {\n    7\n}\n",
        &expect![[r#"
            without copied line numbers, 1 at line 1
            |fn b() -> u32 {\n
            |    7\n
            |}\n
        "#]],
    );
    // The empty line 2 of the listing.
    check(
        "a\n\nb\n",
        "1\ta\n2\t\n3\tb\n",
        "c\n2\nd\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
}

#[test]
fn numbers_without_listing_stay() {
    // The numbers are not consecutive, the new text is partly a listing, or the line is another one.
    check(
        FILE,
        "2\t    one();\n4\t    two();\n",
        "x",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 2 (61 % similar, the first difference is in line 2):
            one();
    "#]],
    );
    check(
        FILE,
        "2\t    one();\n",
        "2\t    1();\n    2();\n",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 2 (90 % similar, the first difference is in line 2):
            one();
    "#]],
    );
    check(
        FILE,
        "7:     one();",
        "7:     1();",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 2 (86 % similar, the first difference is in line 2):
            one();
    "#]],
    );
    check(
        "2 apples\n",
        "3 apples",
        "3 pears",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (87 % similar, the first difference is in line 1):
        2 apples
    "#]],
    );
    check(
        "1\tone\n",
        "1\tone",
        "1\ttwo",
        &expect![[r#"
        exact, 1 at line 1
        |1\ttwo\n
    "#]],
    );
}

#[test]
fn indentation_copied_from_file_stays() {
    let file = "mod m {\n    fn a() {\n        one();\n    }\n}\n";
    check(
        file,
        "fn a() {\n    one();\n}\n",
        "    fn b() {\n        two();\n    }\n",
        &expect![[r#"
        ignoring indentation, 1 at line 2
        |mod m {\n
        |    fn b() {\n
        |        two();\n
        |    }\n
        |}\n
    "#]],
    );
    check(
        file,
        "fn a() {\n    one();\n}\n",
        "    fn a() {\n        two();\n    }\n",
        &expect![[r#"
        ignoring indentation, 1 at line 3
        |mod m {\n
        |    fn a() {\n
        |        two();\n
        |    }\n
        |}\n
    "#]],
    );
    check(
        file,
        "fn a() {\n    one();\n}\n",
        "fn a() {\n    two();\n}\n",
        &expect![[r#"
        ignoring indentation, 1 at line 3
        |mod m {\n
        |    fn a() {\n
        |        two();\n
        |    }\n
        |}\n
    "#]],
    );
    // Both are possible.
    check(
        file,
        "fn a() {\n    one();\n}\n",
        "    one();\n",
        &expect![[r#"
        the old text is at line 2, but with an indentation that the new text cannot follow; copy the lines with their indentation:
            fn a() {
                one();
            }
    "#]],
    );
}

#[test]
fn typographic_punctuation_matches_part_of_line() {
    let file = "He said “hello” and left – it’s late… Then he said “bye”.\n";
    check(
        file,
        "said \"hello\" and left",
        "said \"hello\" and went",
        &expect![[r#"
        ignoring typographic quotes and dashes, 1 at line 1
        |He said “hello” and went – it’s late… Then he said “bye”.\n
    "#]],
    );
    check(
        file,
        "it's late...",
        "it's early",
        &expect![[r#"
        ignoring typographic quotes and dashes, 1 at line 1
        |He said “hello” and left – it\'s early Then he said “bye”.\n
    "#]],
    );
    check(
        file,
        "said \"",
        "x",
        &expect![[r#"
        the old text is in more than one place (line 1); add lines around it until it is unique, or replace all of them
    "#]],
    );
    check(
        "a = “x”\nb = f(\"x\",   y)\n",
        "f(“x”, y)",
        "g(“x”, y)",
        &expect![[r#"
        ignoring the amount of white space, 1 at line 2
        |a = “x”\n
        |b = g(\"x\",   y)\n
    "#]],
    );
}

#[test]
fn byte_order_marks_are_ignored() {
    check(
        "\u{feff}a\nb\n",
        "\u{feff}a\n",
        "\u{feff}c\n",
        &expect![[r#"
        exact, 1 at line 1
        |\u{feff}c\n
        |b\n
    "#]],
    );
    check(
        "\u{feff}a\nb\n",
        "\u{feff}a\n",
        "c\n",
        &expect![[r#"
        exact, 1 at line 1
        |\u{feff}c\n
        |b\n
    "#]],
    );
    check(
        "a\nb\n",
        "\u{feff}a\n",
        "\u{feff}c\n",
        &expect![[r#"
        exact, 1 at line 1
        |c\n
        |b\n
    "#]],
    );
    check(
        "a\u{feff}b\n",
        "\u{feff}b",
        "c",
        &expect![[r#"
        exact, 1 at line 1
        |ac\n
    "#]],
    );
}

#[test]
fn empty_file_is_filled() {
    check(
        "",
        "",
        "a\n",
        &expect![[r#"
        exact, 1 at line 1
        |a\n
    "#]],
    );
    check(
        "\u{feff}",
        "\u{feff}",
        "\u{feff}a\n",
        &expect![[r#"
        exact, 1 at line 1
        |\u{feff}a\n
    "#]],
    );
    check(
        "\n",
        "",
        "a\n",
        &expect![[r#"
            the old text is empty, which creates a file, but this file has content; give the lines to replace, or write the whole file
        "#]],
    );
}

#[test]
fn fences_and_entities_are_decoded() {
    check(
        "<b>a</b> & c\n",
        "&lt;b&gt;a&lt;/b&gt; &amp; c",
        "&lt;i&gt;a&lt;/i&gt; &amp; c",
        &expect![[r#"
        decoding escapes, 1 at line 1
        |<i>a</i> & c\n
    "#]],
    );
    check(
        "<b>a</b>\n",
        "&lt;b&gt;a",
        "<i>a",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly
    "#]],
    );
    check(
        FILE,
        "```rust\n    one();\n```",
        "```rust\n    1();\n```",
        &expect![[r#"
        without the code fence around it, 1 at line 2
        |fn a() {\n
        |    1();\n
        |\n
        |    two();\n
        |}\n
    "#]],
    );
    check(
        "x = r\"\\d+\"\n",
        "r\"\\\\d+\"",
        "r\"\\\\w+\"",
        &expect![[r#"
        decoding escapes, 1 at line 1
        |x = r\"\\w+\"\n
    "#]],
    );
}

#[test]
fn placeholder_lines_are_refused() {
    check(
        FILE,
        "    one();\n",
        "    1();\n    // ... existing code ...\n",
        &expect![[r#"
            line 2 of the new text is a placeholder for omitted lines (`// ... existing code ...`); write them out, or replace less
        "#]],
    );
    check(
        FILE,
        "fn a() {\n    ...\n}\n",
        "x",
        &expect![[r#"
        the old text is not in the file; read the file again and copy the lines exactly; the most similar place is line 1 (73 % similar, the first difference is in line 2):
        fn a() {
            one();
    "#]],
    );
    check(
        "def f(): ...\n",
        "def f(): ...",
        "def f():\n    ...",
        &expect![[r#"
        exact, 1 at line 1
        |def f():\n
        |    ...\n
    "#]],
    );
}

/// The edit that writes this line.
fn write_line(line: &str) -> Result<AppliedEdit, EditRefusal> {
    apply_edit(FILE, "    one();\n", &format!("    1();\n    {line}\n"), EditOccurrences::One)
}

#[test]
fn usual_placeholders_are_refused() {
    let placeholders = [
        "// ...existing code...",
        "// ... rest of the user handling",
        "// … rest of file",
        "# ... (remaining code unchanged) ...",
        "... existing code ...",
        "... (rest of the function)",
        "...(rest of file)",
        "{/* ... existing code ... */}",
        "<!-- ... rest of the page ... -->",
        "[... other methods ...]",
        "/* existing code */",
        "// Rest of the function remains unchanged.",
        "# remaining code here",
        "-- rest of file (unchanged)",
        "// (existing code)",
        "(existing code unchanged)",
        "…existing code…",
        "* Keep existing code as before",
    ];
    for line in placeholders {
        assert!(write_line(line).is_err(), "{line}");
    }
}

#[test]
fn lines_that_resemble_placeholders_are_written() {
    let lines = [
        "...existing,",
        "...existing",
        "...remaining,",
        "...previousState,",
        "...otherProps",
        "...(existing ?? [])",
        "...(previous.items)",
        "[...existing, item],",
        "(...remaining)",
        "...rest",
        "...",
        "# ...",
        "// Existing code relies on the order.",
        "# Rest of the arguments …",
        "# Rest of the arguments are passed on.",
        "* Existing code keeps working",
        "// ...existing,",
        "... existing,",
    ];
    for line in lines {
        let written = write_line(line);
        assert!(written.is_ok(), "{line}: {written:?}");
    }
}

#[test]
fn piece_without_boundaries_in_file_is_replaced() {
    check(
        "  , 4\t    one();\n     3\t\n     4\t    two();\n",
        "     3\t  \r\n   ",
        "     3\t    1();\n\n",
        &expect![[r#"
            ignoring typographic quotes and dashes, 1 at line 2
            |  , 4\t    one();\n
            |     3\t    1();\n
            |\n
            |  4\t    two();\n
        "#]],
    );
}
