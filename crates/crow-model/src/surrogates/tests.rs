use proptest::prelude::*;

use super::{SurrogateJoiner, escape_marks, mark_surrogates, resolve_marks};

fn read(json: &str) -> String {
    serde_json::from_str(&mark_surrogates(json.as_bytes())).unwrap()
}

#[test]
fn lone_halves_are_replaced() {
    let rows =
        [r#""a\ud83d""#, r#""\ude00b""#, r#""\ud83d\ud83d\ude00""#, r#""\\ud83d""#, r#""\ud83d\n\uDE00""#];
    let shown = rows.map(|json| format!("{:?} {:?}", resolve_marks(&read(json)), escape_marks(&read(json))));
    assert_eq!(
        shown,
        [
            r#""a�" "a\\ud83d""#,
            r#""�b" "\\ude00b""#,
            r#""�😀" "\\ud83d😀""#,
            r#""\\ud83d" "\\ud83d""#,
            r#""�\n�" "\\ud83d\n\\ude00""#,
        ]
    );
}

#[test]
fn invalid_bytes_are_replaced() {
    let text: String = serde_json::from_str(&mark_surrogates(b"\"a\xFF\xF0\x9Fb\"")).unwrap();
    assert_eq!(resolve_marks(&text), "a\u{FFFD}\u{FFFD}b");
    assert_eq!(escape_marks(&text), r"a\ud800\ud800\ud800\ud800b");
}

proptest! {
    /// Text split between any of its UTF-16 units, each piece encoded in ASCII, is the same text again.
    #[test]
    fn text_cut_in_halves_is_whole_again(
        text in "[a\\\\\"\n\u{FFFD}é😀🦀\u{10FFFE}\u{10D83D}]{0,12}",
        lens in prop::collection::vec(0_usize..4, 1..8),
    ) {
        prop_assume!(!text.contains("\u{10FFFE}\u{10D83D}"));
        let units: Vec<u16> = text.encode_utf16().collect();
        let (mut rest, mut halves, mut joined) = (units.as_slice(), SurrogateJoiner::default(), String::new());
        for len in lens.into_iter().cycle().take(64).chain([usize::MAX]) {
            let (piece, after) = rest.split_at(len.min(rest.len()));
            let spelled: String = piece.iter().map(|unit| format!("\\u{unit:04X}")).collect();
            joined += &halves.join_next(&read(&format!("\"{spelled}\"")));
            rest = after;
        }
        joined += &halves.flush();
        prop_assert_eq!(joined, text);
    }
}
