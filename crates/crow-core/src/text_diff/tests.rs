use expect_test::{Expect, expect};

use super::{ChangeCounts, TextDiff};

#[track_caller]
fn check_hunks(old: &str, new: &str, expected: &Expect) {
    expected.assert_eq(&TextDiff::compare_lines(old, new).render_hunks(1));
}

#[test]
fn hunks_have_context_and_line_numbers() {
    check_hunks(
        "a\nb\nc\nd\ne\nf\ng\n",
        "a\nB\nc\nd\ne\nf\ng\nh\n",
        &expect![[r#"
            @@ -1,3 +1,3 @@
             a
            -b
            +B
             c
            @@ -7 +7,2 @@
             g
            +h
        "#]],
    );
}

#[test]
fn hunks_of_new_removed_and_unterminated_text() {
    check_hunks(
        "",
        "a\nb",
        &expect![[r#"
        @@ -0,0 +1,2 @@
        +a
        +b
        \ No newline at end of file
    "#]],
    );
    check_hunks(
        "a\n",
        "",
        &expect![[r#"
        @@ -1 +0,0 @@
        -a
    "#]],
    );
    check_hunks("same\n", "same\n", &expect![""]);
}

#[test]
fn similarity_is_the_share_of_equal_tokens() {
    assert_eq!(TextDiff::compare_chars("abcd", "abxd").similarity(), 0.75);
    assert_eq!(TextDiff::compare_words("let a = 1;", "let b = 1;").similarity(), 6.0 / 7.0);
    assert_eq!(TextDiff::compare_lines("", "").similarity(), 1.0);
}

#[test]
fn counts_and_tokens_of_changes() {
    let diff = TextDiff::compare_lines("1\n2\n3\n", "1\nzwei\ndrei\n3\n");
    assert_eq!(diff.count_changes(), ChangeCounts { n_added: 2, n_removed: 1 });
    let changed: Vec<_> =
        diff.ops().iter().map(|op| (diff.old_tokens(op).concat(), diff.new_tokens(op).concat())).collect();
    assert_eq!(changed[1], ("2\n".to_owned(), "zwei\ndrei\n".to_owned()));
}
