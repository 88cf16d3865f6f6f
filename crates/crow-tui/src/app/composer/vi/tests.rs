use expect_test::{Expect, expect};

use super::*;
use crate::app::keys::{KeyAction, KeyContext, KeyLookup, find_action};

/// Edits a text, whose caret is `|`, with the keys of the table in normal mode.
#[track_caller]
fn check(text: &str, keys: &str, expected: &Expect) {
    let mut buffer = DraftBuffer::default();
    let caret = text.find('|').expect("a caret");
    buffer.set_text(&text.replace('|', ""));
    buffer.move_to(caret);
    let mut vi = ViState { is_normal: true, ..ViState::default() };
    let mut prefix: Option<String> = None;
    for letter in keys.chars() {
        if !vi.is_normal {
            buffer.insert_typed(&letter.to_string());
            continue;
        }
        let taken = prefix.take();
        let lookup = find_action(&[KeyContext::ViNormal], taken.as_deref(), &letter.to_string());
        match lookup {
            _ if vi.takes_letter() => vi.type_letter(letter, &mut buffer),
            KeyLookup::Action { action: KeyAction::Vi(command), .. } => vi.run(command, &mut buffer),
            KeyLookup::Prefix => prefix = Some(letter.to_string()),
            KeyLookup::Action { .. } | KeyLookup::Unbound => vi.type_letter(letter, &mut buffer),
        }
    }
    let mut shown = buffer.text().to_owned();
    shown.insert(buffer.caret(), '|');
    expected.assert_eq(&shown.replace('\n', "⏎"));
}

#[test]
fn motions_move_the_caret() {
    check("|one two.three", "w", &expect!["one |two.three"]);
    check("|one two.three", "3w", &expect!["one two.|three"]);
    check("one two.thr|ee", "bb", &expect!["one two|.three"]);
    check("|one two", "ee", &expect!["one tw|o"]);
    check("one| two", "$0l", &expect!["o|ne two"]);
    check("|a\nb\nlast", "G", &expect!["a⏎b⏎|last"]);
    check("a\nb\nl|ast", "gg", &expect!["|a⏎b⏎last"]);
    check("|one two three", "fe;", &expect!["one two thr|ee"]);
    check("|one two three", "tt;;,", &expect!["one| two three"]);
    check("  o|ne", "^i-", &expect!["  -|one"]);
    check("|语言 语言", "wl", &expect!["语言 语|言"]);
}

#[test]
fn operators_cut_change_and_copy() {
    check("|one two three", "dw", &expect!["|two three"]);
    check("|one two three", "d2w", &expect!["|three"]);
    check("|one two three", "2dwP", &expect!["one two| three"]);
    check("one |two three", "cwnew", &expect!["one new| three"]);
    check("one two |three", "db", &expect!["one |three"]);
    check("one two| three", "cbx", &expect!["one x| three"]);
    check("one |two", "Dp", &expect!["one tw|o"]);
    check("one |two", "Cx", &expect!["one x|"]);
    check("a\n|b\nc", "dd", &expect!["a⏎|c"]);
    check("a\nb\n|c", "ddp", &expect!["a⏎b⏎|c"]);
    check("a\n|b\nc", "ddP", &expect!["a⏎|b⏎c"]);
    check("|a\nb\nc", "2ddp", &expect!["c⏎|a⏎b"]);
    check("|a\nb", "yyp", &expect!["a⏎|a⏎b"]);
    check("|one two", "ywP", &expect!["one| one two"]);
    check("|one, two", "df,", &expect!["| two"]);
    check("|only", "dd", &expect!["|"]);
    check("one |two\nthree", "ccx", &expect!["x|⏎three"]);
}

#[test]
fn letters_are_cut_replaced_and_inserted() {
    check("|abc", "xp", &expect!["b|ac"]);
    check("ab|c", "X", &expect!["a|c"]);
    check("|abcd", "3x", &expect!["|d"]);
    check("|abc", "rx", &expect!["|xbc"]);
    check("a|b\nc", "ox", &expect!["ab⏎x|⏎c"]);
    check("a|b\nc", "Ox", &expect!["x|⏎ab⏎c"]);
    check("a|b", "Ax", &expect!["abx|"]);
    check("a|b", "Ix", &expect!["x|ab"]);
    check("|ab", "ax", &expect!["ax|b"]);
    check("|abc", "xxu", &expect!["|bc"]);
    check("|abc", "10x", &expect!["|"]);
    check("|abc", "dzx", &expect!["|bc"]);
}
