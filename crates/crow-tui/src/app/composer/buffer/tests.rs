use expect_test::{Expect, expect};

use super::*;

/// Applies edits, one word each, and shows the text with `|` for the caret and `#` for an atom.
#[track_caller]
fn check(edits: &str, expected: &Expect) {
    let mut buffer = DraftBuffer::default();
    let mut shown = String::new();
    for edit in edits.split(' ') {
        match edit {
            "left" => buffer.move_left(),
            "right" => buffer.move_right(),
            "word-left" => buffer.move_word_left(),
            "word-right" => buffer.move_word_right(),
            "home" => buffer.move_line_start(),
            "end" => buffer.move_line_end(),
            "backspace" => buffer.delete_left(),
            "delete" => buffer.delete_right(),
            "kill-word" => buffer.kill_word_left(),
            "kill-next" => buffer.kill_word_right(),
            "kill-start" => buffer.kill_line_start(),
            "kill-end" => buffer.kill_line_end(),
            "yank" => buffer.yank(),
            "swap" => buffer.transpose(),
            "undo" => drop(buffer.undo()),
            "paste" => drop(buffer.insert_atom(DraftAtom::Pasted("x\ny".into()))),
            text => buffer.insert_typed(&text.replace('_', " ").replace('/', "\n")),
        }
        let (before, after) = buffer.text().split_at(buffer.caret());
        let line = format!("{edit}: {before}|{after}\n").replace('\u{F0000}', "#");
        shown.push_str(&line);
    }
    expected.assert_eq(&shown);
}

#[test]
fn caret_moves_by_clusters_words_and_lines() {
    check(
        "größe_语言/e\u{301}👩\u{200d}💻 left left left home word-right word-left left end right",
        &expect![[r#"
            größe_语言/é👩‍💻: größe 语言
            é👩‍💻|
            left: größe 语言
            é|👩‍💻
            left: größe 语言
            |é👩‍💻
            left: größe 语言|
            é👩‍💻
            home: |größe 语言
            é👩‍💻
            word-right: größe| 语言
            é👩‍💻
            word-left: |größe 语言
            é👩‍💻
            left: |größe 语言
            é👩‍💻
            end: größe 语言|
            é👩‍💻
            right: größe 语言
            |é👩‍💻
        "#]],
    );
}

#[test]
fn killed_text_is_yanked_and_consecutive_kills_are_one() {
    check(
        "one_two_three kill-word kill-word yank home kill-next kill-end yank kill-start yank",
        &expect![[r#"
            one_two_three: one two three|
            kill-word: one two |
            kill-word: one |
            yank: one two three|
            home: |one two three
            kill-next: | two three
            kill-end: |
            yank: one two three|
            kill-start: |
            yank: one two three|
        "#]],
    );
}

#[test]
fn edits_are_undone_by_word_and_kill_by_kill() {
    check(
        "one _two kill-word undo undo undo undo",
        &expect![[r#"
            one: one|
            _two: one two|
            kill-word: one |
            undo: one two|
            undo: one|
            undo: |
            undo: |
        "#]],
    );
}

#[test]
fn atom_is_edited_as_one_letter() {
    check(
        "a paste b left left delete undo swap backspace",
        &expect![[r#"
            a: a|
            paste: a#|
            b: a#b|
            left: a#|b
            left: a|#b
            delete: a|b
            undo: a|#b
            swap: #a|b
            backspace: #|b
        "#]],
    );
}

#[test]
fn line_breaks_are_killed_at_the_edges() {
    check(
        "ab/cd home kill-start left kill-end",
        &expect![[r#"
            ab/cd: ab
            cd|
            home: ab
            |cd
            kill-start: ab|cd
            left: a|bcd
            kill-end: a|
        "#]],
    );
}

#[test]
fn text_from_outside_cannot_be_an_atom_or_control_the_terminal() {
    let mut buffer = DraftBuffer::default();
    assert!(buffer.insert_atom(DraftAtom::Pasted("secret".into())));
    buffer.take();
    buffer.insert_text("a\u{F0000}b\x1b[2J\r\nc\td");
    assert_eq!(buffer.text(), "ab[2J\nc\td");
    for _ in 0..ATOMS_MAX {
        assert!(buffer.insert_atom(DraftAtom::Pasted(String::new())));
    }
    assert!(!buffer.insert_atom(DraftAtom::Pasted(String::new())));
}
