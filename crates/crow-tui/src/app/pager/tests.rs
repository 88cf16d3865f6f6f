//! Searching the pager.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

/// Searches ten rows, of which three are visible: `>` for the next match, `<` for the one before. Shows the row of each
/// match, and the first visible row after it.
#[track_caller]
fn check(source: PagerSource, query: &str, moves: &str, expected: &Expect) {
    let texts = ["an Owl", "b", "two OWLS", "c", "d", "e", "owl", "f", "owl too", "g"];
    let rows: Vec<StyledRow> = texts.into_iter().map(StyledRow::from_text).collect();
    let mut pager = TextPager::new("rows", source);
    pager.clamp(rows.len(), 3);
    pager.query = query.to_owned();
    let mut shown = String::new();
    for letter in moves.chars() {
        pager.find_match(&rows, 3, letter == '<');
        let top = rows.len() - 3 - pager.n_below;
        let _ = match pager.match_row {
            Some(row) => writeln!(shown, "{letter} {row} {:?} from {top}", rows[row].text()),
            None => writeln!(shown, "{letter} no match from {top}"),
        };
    }
    expected.assert_eq(&shown);
}

#[test]
fn search_of_a_transcript_goes_up_from_its_end() {
    check(
        PagerSource::Transcript,
        "owl",
        ">>>>><",
        &expect![[r#"
        > 8 "owl too" from 7
        > 6 "owl" from 6
        > 2 "two OWLS" from 2
        > 0 "an Owl" from 0
        > 8 "owl too" from 7
        < 0 "an Owl" from 0
    "#]],
    );
}

#[test]
fn search_of_a_text_goes_down_from_its_start() {
    check(
        PagerSource::Text(String::new()),
        "Owl",
        ">>>>><",
        &expect![[r#"
        > 0 "an Owl" from 0
        > 2 "two OWLS" from 0
        > 6 "owl" from 6
        > 8 "owl too" from 6
        > 0 "an Owl" from 0
        < 8 "owl too" from 7
    "#]],
    );
}

#[test]
fn search_without_a_match_stays_where_it_is() {
    check(
        PagerSource::Keys,
        "eagle",
        "><",
        &expect![[r#"
        > no match from 0
        < no match from 0
    "#]],
    );
}

#[test]
fn text_is_found_in_any_case_and_between_wide_letters() {
    let found = |text: &str, query: &str| -> Vec<String> {
        find_text(text, query).into_iter().map(|range| text[range].to_owned()).collect()
    };
    assert_eq!(found("Ärger über ÄRGER", "ärger"), ["Ärger", "ÄRGER"]);
    assert_eq!(found("漢字 and 漢字", "字"), ["字", "字"]);
    // This letter is longer in lower case.
    assert_eq!(found("İstanbul İİ", "stan"), ["stan"]);
    assert_eq!(found("İstanbul", "i"), ["İ"]);
    assert_eq!(found("text", ""), Vec::<String>::new());
}
