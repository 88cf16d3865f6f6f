//! The window changes its size: history is not lost, and the live rows are drawn once.

use crow_testkit::terminal::TerminalKind;

use super::stage::TerminalStage;

/// An answer of many lines, with a pause in the middle.
fn long_answer() -> String {
    let lines = |range: std::ops::RangeInclusive<u32>| -> String {
        range.map(|line| format!("Line {line:03} of the answer.\\n\\n")).collect()
    };
    format!("text \"{}\" | hold | text \"{}\" | hold | text \"The end.\"", lines(1..=30), lines(31..=60))
}

#[track_caller]
fn check_resize(kind: TerminalKind, n_copies_max: usize) {
    let mut stage = TerminalStage::new(80, &long_answer()).with_kind(kind);
    stage.play(
        "
        wait · ask
        type go
        key enter
        wait Line 029",
    );
    // Rows as wide as the window, which a terminal that wraps has to wrap again.
    stage.program().type_text(&"draft ".repeat(30));
    stage.play(
        "
        wait draft draft
        resize 40 14
        release
        wait Line 059
        resize 120 30
        resize 60 10
        release
        wait The end.
        gone ⠋
        key ctrl-u
                wait Ask anything
        resize 100 20
        type after the resize
        wait after the resize",
    );
    let rows = stage.program().emulator().rows();
    let text = rows.join("\n");
    let mut previous = 0;
    for line in 1..=60 {
        let row = format!("Line {line:03} of the answer.");
        let copies: Vec<usize> = text.match_indices(&row).map(|(at, _)| at).collect();
        assert!((1..=n_copies_max).contains(&copies.len()), "{row} is there {} times:\n{text}", copies.len());
        assert!(copies[0] >= previous, "{row} is above an earlier one:\n{text}");
        previous = copies[0];
    }
    assert_eq!(text.matches("The end.").count(), 1, "{text}");
    assert_eq!(text.matches("› after the resize").count(), 1, "{text}");
    let visible = stage.program().emulator().visible_rows().join("\n");
    assert_eq!(visible.matches("crow · scripted").count(), 1, "{visible}");
}

#[test]
fn terminal_that_wraps_keeps_each_line_once() {
    check_resize(TerminalKind::Kitty, 1);
}

#[test]
fn terminal_that_cuts_keeps_each_line_once() {
    check_resize(TerminalKind::Xterm, 1);
}

#[test]
fn terminal_of_unknown_kind_may_show_a_line_twice() {
    check_resize(TerminalKind::Unnamed, 4);
}
