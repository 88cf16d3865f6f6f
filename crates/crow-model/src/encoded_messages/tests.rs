//! Which messages are kept.

use crow_core::Transcript;

use super::{BYTES_MAX, EncodedMessages};

/// Sends conversations of messages with these lengths, each after the one before; returns how many of them are kept.
fn kept_of(lens: &[usize]) -> Vec<usize> {
    let (encoded_messages, transcript) = (EncodedMessages::default(), Transcript::new(""));
    let conversation = transcript.for_model().unwrap().identity();
    let texts: Vec<String> = lens.iter().map(|len| "x".repeat(*len)).collect();
    let send = |n_sent: usize| {
        let mut prefix = encoded_messages.lock_prefix(conversation, Some(String::new()));
        let new = &texts[prefix.messages().len()..n_sent];
        prefix.keep_messages(new, n_sent).unwrap();
        prefix.messages().len()
    };
    (0..=texts.len()).map(send).collect()
}

#[test]
fn messages_are_kept_as_long_as_all_have_room() {
    // A text has two quotes.
    let half = BYTES_MAX / 2 - 2;
    assert_eq!(kept_of(&[half, half]), [0, 1, 2]);
    assert_eq!(kept_of(&[half, half + 1, 1]), [0, 1, 1, 1]);
    assert_eq!(kept_of(&[BYTES_MAX, 1]), [0, 0, 0]);
}

#[test]
fn conversation_that_is_sent_once_is_not_kept() {
    let (encoded_messages, transcript) = (EncodedMessages::default(), Transcript::new(""));
    let conversation = transcript.for_model().unwrap().identity();
    let keep = |rules: Option<&str>| {
        let mut prefix = encoded_messages.lock_prefix(conversation, rules.map(str::to_owned));
        prefix.keep_messages(&["text"], 1).unwrap();
        prefix.messages().len()
    };
    assert_eq!([keep(Some("a")), keep(Some("a"))], [0, 1]);
    assert_eq!([keep(None), keep(None)], [0, 0]);
    assert_eq!([keep(Some("a")), keep(Some("b")), keep(Some("b"))], [0, 0, 1]);
}
