use expect_test::expect;

use super::check;

#[test]
fn line_endings_of_file_stay() {
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
fn line_endings_of_edit_are_converted() {
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
fn mixed_line_endings_stay_in_place() {
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
        the old text is in more than one place (lines 1, 3); add lines around it until it is unique, or replace all of them
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
fn byte_order_mark_of_file_stays() {
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
