use expect_test::{Expect, expect};

use super::{MatchRow, SearchHits, SearchSummary};

const NAMES: [&str; 6] = ["a", "a/b", "a/c", "a.rs", "b", "c/d/e"];

/// Adds the rows of each file of a list in this order, as a search does, and renders the result.
fn found(order: &[usize], rows_of: fn(usize) -> Vec<MatchRow>, n_rows_max: usize) -> (String, bool, usize) {
    let hits = SearchHits::new(n_rows_max);
    let mut n_searched = 0;
    for &at in order {
        let path = NAMES[at].as_ref();
        if hits.may_show(path) {
            n_searched += 1;
            hits.add_rows(path, rows_of(at));
        }
    }
    let SearchSummary { text, n_rows, .. } = hits.into_summary(|path| path.display().to_string());
    (text, n_rows > n_rows_max, n_searched)
}

fn lines(at: usize) -> Vec<MatchRow> {
    (0..at as u64 % 4).map(|number| MatchRow::Match(number + 1, "x".into())).collect()
}

#[track_caller]
fn check(n_rows_max: usize, expect: &Expect) {
    let (text, more, _) = found(&[0, 1, 2, 3, 4, 5], lines, n_rows_max);
    expect.assert_eq(&format!("{text}more: {more}\n"));
    for order in [[5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2], [2, 5, 0, 4, 1, 3], [1, 3, 2, 5, 4, 0]] {
        let (other, other_more, _) = found(&order, lines, n_rows_max);
        assert_eq!((&other, other_more), (&text, more), "in the order {order:?}");
    }
}

#[test]
fn first_rows_are_kept_in_any_order() {
    check(
        2,
        &expect![[r#"
            a/b:1: x
            a/c:1: x
            more: true
        "#]],
    );
    check(
        6,
        &expect![[r#"
            a/b:1: x
            a/c:1: x
            a/c:2: x
            a.rs:1: x
            a.rs:2: x
            a.rs:3: x
            more: true
        "#]],
    );
    check(
        7,
        &expect![[r#"
            a/b:1: x
            a/c:1: x
            a/c:2: x
            a.rs:1: x
            a.rs:2: x
            a.rs:3: x
            c/d/e:1: x
            more: false
        "#]],
    );
}

#[test]
fn files_after_the_last_row_are_not_searched() {
    let (_, _, n_searched) = found(&[2, 1, 5, 4, 3], lines, 1);
    // The files before the second row, which are two.
    assert_eq!(n_searched, 2);
}

#[test]
fn gaps_do_not_count_toward_the_limit() {
    let rows = |_| {
        vec![
            MatchRow::Context(1, "a".into()),
            MatchRow::Gap,
            MatchRow::Match(9, "b".into()),
            MatchRow::Gap,
            MatchRow::File,
        ]
    };
    expect![[r#"
        a-1- a
        --
        a:9: b
    "#]]
    .assert_eq(&found(&[0], rows, 2).0);
}
