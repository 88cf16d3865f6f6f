use expect_test::{Expect, expect};

use super::*;

const THEME: ColorTheme = ColorTheme { has_color: true, is_light: false };

fn show_rows(rows: &[StyledRow]) -> String {
    rows.iter().map(|row| row.text() + "\n").collect()
}

#[track_caller]
fn check(old: Option<&str>, new: &str, width: usize, expected: &Expect) {
    let rows = render_diff("src/main.rs", old, new, width, &THEME);
    assert!(rows[1..].iter().all(|row| row.width() <= width));
    expected.assert_eq(&show_rows(&rows));
}

const OLD: &str = "use std::io;\n\nfn one() {}\nfn two() {}\nfn three() {}\nfn four() {}\n\nfn main() {\n    println!(\"hello\");\n}\n\n// 1\n// 2\n// 3\n// 4\n";

#[test]
fn changes_have_numbers_signs_and_context() {
    let new = OLD.replace(
        "    println!(\"hello\");",
        "\tprintln!(\"a greeting that is longer than the row\");\n    // 語",
    );
    check(
        Some(OLD),
        &new,
        40,
        &expect![[r#"
        src/main.rs  +2 −1
           ⋮ 5 unchanged lines
         6   fn four() {}
         7   
         8   fn main() {
         9 -     println!("hello");
         9 +         println!("a greeting that
             is longer than the row");
        10 +     // 語
        11   }
        12   
        13   // 1
           ⋮ 3 unchanged lines
    "#]],
    );
    check(
        Some(OLD),
        &new,
        80,
        &expect![[r#"
        src/main.rs  +2 −1
           ⋮ 5 unchanged lines
         6   fn four() {}
         7   
         8   fn main() {
         9 -     println!("hello");
         9 +         println!("a greeting that is longer than the row");
        10 +     // 語
        11   }
        12   
        13   // 1
           ⋮ 3 unchanged lines
    "#]],
    );
}

#[test]
fn new_file_is_all_added() {
    check(
        None,
        "one\n\x1b[31mtwo\u{202e}",
        60,
        &expect![[r#"
            src/main.rs (new)  +2 −0
            1 + one
            2 + two\u{202e}
        "#]],
    );
    check(
        Some("same\n"),
        "same\n",
        60,
        &expect![[r#"
        src/main.rs  +0 −0
    "#]],
    );
}

#[test]
fn long_diff_is_cut() {
    let new: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let rows = render_diff("a.txt", None, &new, 80, &THEME);
    assert_eq!(rows.len(), DIFF_ROWS_MAX + 2);
    assert_eq!(rows[0].text(), "a.txt (new)  +1000 −0");
    assert_eq!(rows.last().unwrap().text(), "… the rest is not shown");
}

#[test]
fn signs_and_code_are_coloured() {
    let rows = render_diff("a.rs", Some("let a = 1;\n"), "let b = 1;\n", 80, &THEME);
    let colors = |row: &StyledRow| {
        row.spans.iter().map(|span| (span.content.clone(), span.style.color)).collect::<Vec<_>>()
    };
    expect![[r#"
        [
            [
                (
                    "1 - let a = 1;",
                    Some(
                        PaletteColor(
                            1,
                        ),
                    ),
                ),
            ],
            [
                (
                    "1 + ",
                    Some(
                        PaletteColor(
                            2,
                        ),
                    ),
                ),
                (
                    "let",
                    Some(
                        PaletteColor(
                            5,
                        ),
                    ),
                ),
                (
                    " b = ",
                    None,
                ),
                (
                    "1",
                    Some(
                        PaletteColor(
                            3,
                        ),
                    ),
                ),
                (
                    ";",
                    None,
                ),
            ],
        ]
    "#]]
    .assert_debug_eq(&rows[1..].iter().map(colors).collect::<Vec<_>>());
    let plain = ColorTheme { has_color: false, is_light: false };
    let rows = render_diff("a.rs", Some("let a = 1;\n"), "let b = 1;\n", 80, &plain);
    assert!(rows.iter().flat_map(|row| &row.spans).all(|span| span.style.color.is_none()));
}

/// A line that is compared coarsely is removed and added, so that the result is still a diff.
#[test]
fn coarse_comparison_still_covers_both_texts() {
    let old: String = (0..2_000).map(|n| format!("{}\n", n * 7 % 1_999)).collect();
    let new: String = (0..2_000).map(|n| format!("{}\n", n * 11 % 1_999)).collect();
    let diff = TextDiff::compare_lines_until(&old, &new, Instant::now());
    let rebuilt: String = diff.ops().iter().flat_map(|op| diff.new_tokens(op).iter().copied()).collect();
    assert_eq!(rebuilt, new);
}
