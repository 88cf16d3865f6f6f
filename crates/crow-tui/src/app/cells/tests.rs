use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

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
        "One."
        "Two.\n\nThree"
    "#]],
    );
    check(
        "Code:\n\n```\na\n\nb\n",
        &expect![[r#"
        "Code:"
        "```\na\n\nb\n"
    "#]],
    );
    check(
        "- a\n\n- b\n\n- c\n",
        &expect![[r#"
        "- a\n\n- b\n\n- c\n"
    "#]],
    );
    check(
        "- a\n\nText\nmore",
        &expect![[r#"
        "- a"
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
    /// However a text arrives in pieces, nothing is lost but blank lines between blocks.
    #[test]
    fn streamed_text_is_the_whole_text(text in "([a-c`\\-> \n]|```\n|\n\n|- ){0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut) && *cut <= text.len()).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts {
            pieces.push(&text[start..cut]);
            start = cut;
        }
        pieces.push(&text[start..]);
        let without_breaks = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(without_breaks(&streamed(&pieces).join("\n\n")), without_breaks(&text));
    }
}
