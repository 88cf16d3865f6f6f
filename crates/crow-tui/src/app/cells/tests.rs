use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{sources::cell_text, *};
use crate::text::{ColorTheme, StyledRow, render_markdown, render_part};

fn streamed(pieces: &[&str]) -> Vec<String> {
    let mut cells = TranscriptCells::default();
    for piece in pieces {
        cells.append_text(None, piece);
    }
    cells.all().iter().map(|cell| cell_text(cell).to_owned()).collect()
}

#[track_caller]
fn check(text: &str, expected: &Expect) {
    let cells = streamed(&[text]);
    expected.assert_eq(&cells.iter().map(|cell| format!("{cell:?}\n")).collect::<String>());
}

#[test]
fn complete_blocks_are_separated_from_the_open_one() {
    check(
        "One.\n\nTwo.\n\nThree",
        &expect![[r#"
        "One.\n\n"
        "Two.\n\nThree"
    "#]],
    );
    check(
        "Code:\n\n```\na\n\nb\n",
        &expect![[r#"
        "Code:\n\n"
        "```\na\n\nb\n"
    "#]],
    );
    check(
        "- a\n- b\n\n- c\n",
        &expect![[r#"
        "- a\n"
        "- b\n\n"
        "- c\n"
    "#]],
    );
    check(
        "- a\n\nText\nmore",
        &expect![[r#"
        "- a\n\n"
        "Text\nmore"
    "#]],
    );
    check(
        "A word",
        &expect![[r#"
        "A word"
    "#]],
    );
}

#[test]
fn fence_with_words_after_it_closes_nothing() {
    check(
        "````md\n```rust\nfn a() {}\n```\n\nno text\n````\nText\n",
        &expect![[r#"
        "````md\n```rust\nfn a() {}\n```\n\nno text\n````\n"
        "Text\n"
    "#]],
    );
    check(
        "```\na\n``` b\n\n    ```\n\nc\n```\nText\n",
        &expect![[r#"
        "```\na\n``` b\n\n    ```\n\nc\n```\n"
        "Text\n"
    "#]],
    );
}

#[test]
fn long_code_is_divided() {
    let code: String = (1..=130).map(|line| format!("line {line}\n")).collect();
    let cells = streamed(&["Look:\n\n```py\n", &code, "```\n\nSo.\n"]);
    let lines: Vec<usize> = cells.iter().map(|cell| cell.lines().count()).collect();
    assert_eq!(lines, [2, 65, 64, 4, 1]);
}

#[test]
fn cells_become_history_in_order() {
    let mut cells = TranscriptCells::default();
    let now = Instant::now();
    let change = |id: &str, status| CallChange {
        id: id.into(),
        title: Some(id.into()),
        status: Some(status),
        ..CallChange::default()
    };
    cells.push(TranscriptCell::Prompt("go".into()));
    cells.change_call(change("a", crow_core::ToolCallStatus::InProgress), now);
    cells.change_call(change("b", crow_core::ToolCallStatus::Completed), now);
    assert_eq!(cells.n_settled(), 1, "a finished call behind an open one waits");
    cells.commit(1);
    cells.change_call(change("a", crow_core::ToolCallStatus::Completed), now);
    assert_eq!(cells.n_settled(), 2);
    cells.append_text(None, "streaming");
    assert_eq!(cells.n_settled(), 2, "open text is not settled");
    cells.end_stream();
    assert_eq!(cells.n_settled(), 3);
}

#[test]
fn new_message_is_a_new_cell() {
    let mut cells = TranscriptCells::default();
    cells.append_text(Some("1".into()), "a");
    cells.append_text(Some("1".into()), "b");
    cells.append_text(Some("2".into()), "\n\nc");
    let texts: Vec<&str> = cells.all().iter().map(cell_text).collect();
    assert_eq!(texts, ["ab", "c"]);
    assert_eq!(cells.last_answer(), "ab\n\nc");
}

proptest! {
    /// However a text arrives in pieces, the rows of the cells are those of the whole text.
    #[test]
    fn streamed_rows_are_those_of_the_whole_text(
        lines in prop::collection::vec(
            prop_oneof![
                Just("".to_owned()), Just("```".to_owned()), Just("```rs".to_owned()), Just("---".to_owned()),
                Just("| a | b |".to_owned()), Just("|---|---|".to_owned()), Just("# h".to_owned()),
                Just("1. x".to_owned()), Just("- y".to_owned()), Just("  z /* \"".to_owned()),
                Just("    code".to_owned()), Just("> q".to_owned()), "[a-c *`_#>|-]{1,12}",
                Just("/* one\n".repeat(70)),
            ],
            0..24,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text = lines.join("\n");
        let text = text.trim_start_matches('\n');
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut cells = TranscriptCells::default();
        let mut start = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            cells.append_text(None, &text[start..cut]);
            start = cut;
        }
        let theme = ColorTheme { has_color: true, is_light: false };
        let mut rows = Vec::new();
        for cell in cells.all() {
            let TranscriptCell::Text(part) = cell else { continue };
            let part_rows = render_part(part, 30, &theme);
            if part.is_apart() && !rows.is_empty() && !part_rows.is_empty() {
                rows.push(StyledRow::default());
            }
            rows.extend(part_rows);
        }
        prop_assert_eq!(rows, render_markdown(text, 30, &theme));
        let sources: String = cells.all().iter().map(cell_text).collect();
        prop_assert_eq!(sources, text);
    }
}
