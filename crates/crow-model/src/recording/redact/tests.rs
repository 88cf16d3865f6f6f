use proptest::prelude::{any, proptest};

use super::{SecretRedactor, SecretSet};

fn secrets() -> SecretSet {
    SecretSet::new(&[
        "sk-0123456789".into(),
        "sk-0123456789-longer".into(),
        "p\"a/s\\s w".into(),
        "none".into(),
    ])
}

/// Checks the result for bytes, complete and split anywhere.
#[track_caller]
fn check(bytes: &str, expected: &str) {
    assert_eq!(secrets().redact_text(bytes), expected);
    for cancel in 0..=bytes.len() {
        let mut redactor = SecretRedactor::new(secrets());
        let (one, other) = bytes.as_bytes().split_at(cancel);
        let shown = [redactor.feed(one), redactor.feed(other), redactor.finish()].concat();
        assert_eq!(String::from_utf8_lossy(&shown), expected, "cut at {cancel}");
    }
}

#[test]
fn secrets_are_found_in_every_encoding() {
    check("key sk-0123456789 ends", "key [secret] ends");
    check("sk-0123456789-longer", "[secret]");
    check("sk-0123456789-long gone", "[secret]-long gone");
    check("sk-0123456789-long", "[secret]");
    check("sk-0123456789sk-0123456789", "[secret][secret]");
    check(r#"{"a":"p\"a/s\\s w"}"#, r#"{"a":"[secret]"}"#);
    check(r#"{"a":"p\"a\/s\\s w"}"#, r#"{"a":"[secret]"}"#);
    check("/v1?key=p%22a%2Fs%5Cs%20w&x", "/v1?key=[secret]&x");
}

#[test]
fn other_text_is_unchanged() {
    check("", "");
    check("sk-", "sk-");
    check("ask-012 none of it", "ask-012 none of it");
    check("sk-01234567", "[secret]");
    check("tail sk-0123", "tail [secret]");
}

proptest! {
    #[test]
    fn no_secret_is_left_however_it_is_cut(pieces in proptest::collection::vec(any::<u8>(), 0..40), cuts in proptest::collection::vec(0_usize..64, 0..6)) {
        let words: [&[u8]; 6] = [b"sk-0123456789", b"sk-01234", b"-longer", b"\xff", b" ", b"56789"];
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| words[*piece as usize % words.len()].to_vec()).collect();
        let mut redactor = SecretRedactor::new(secrets());
        let mut rest = bytes.as_slice();
        let mut shown = Vec::new();
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            shown.extend(redactor.feed(now));
            rest = later;
        }
        shown.extend(redactor.feed(rest));
        shown.extend(redactor.finish());
        let is_left = shown.windows(13).any(|window| window == b"sk-0123456789");
        assert!(!is_left, "{}", String::from_utf8_lossy(&shown));
    }
}
