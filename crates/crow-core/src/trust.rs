//! Whether what a repository brings along may be used. A person says yes or no to a content, never to a name:
//! what changed was never looked at. Must never know where contents are kept or who is asked.

use std::collections::BTreeMap;
use std::fmt;

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

/// One file that a repository supplies something with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrustSubject {
    /// Its path from the repository's root.
    pub path: String,
    /// What is in it.
    pub hash: ContentHash,
}

/// What a person said to a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// It may be used.
    Yes,
    /// It may not, and it is not asked again.
    No,
}

/// What a person has said to the contents of one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustLedger(BTreeMap<TrustSubject, TrustAnswer>);

/// What may be done with a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    /// Use it.
    Trusted,
    /// Leave it alone.
    Refused,
    /// Ask.
    Unknown,
}

impl TrustLedger {
    /// Takes down what the person said; the last word counts.
    pub fn record_answer(&mut self, supply: TrustSubject, word: TrustAnswer) {
        self.0.insert(supply, word);
    }

    /// Tells what was said to this very content at this very place.
    pub fn answer_for(&self, supply: &TrustSubject) -> Option<TrustAnswer> {
        self.0.get(supply).copied()
    }
}

/// Judges a content: what was said in the session counts before what is remembered, and silence is not a yes.
pub fn evaluate_trust(supply: &TrustSubject, session: &TrustLedger, remembered: &TrustLedger) -> TrustState {
    match session.answer_for(supply).or_else(|| remembered.answer_for(supply)) {
        Some(TrustAnswer::Yes) => TrustState::Trusted,
        Some(TrustAnswer::No) => TrustState::Refused,
        None => TrustState::Unknown,
    }
}

impl TrustAnswer {
    /// Spells the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
        }
    }

    /// Reads a word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Yes, Self::No].into_iter().find(|word| word.as_str() == text)
    }
}

impl ContentHash {
    /// Takes a hash as it was computed.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        let is_hex = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 2 * bytes.len() || !digits.iter().all(is_hex) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust_subject(path: &str, content: u8) -> TrustSubject {
        TrustSubject { path: path.into(), hash: ContentHash::new([content; 32]) }
    }

    fn trust_ledger(said: &[(&str, u8, TrustAnswer)]) -> TrustLedger {
        let mut ledger = TrustLedger::default();
        said.iter()
            .for_each(|(path, content, word)| ledger.record_answer(trust_subject(path, *content), *word));
        ledger
    }

    #[test]
    fn a_word_is_about_one_content_at_one_place() {
        let (none, remembered) =
            (TrustLedger::default(), trust_ledger(&[("a", 1, TrustAnswer::Yes), ("b", 1, TrustAnswer::No)]));
        assert_eq!(evaluate_trust(&trust_subject("a", 1), &none, &remembered), TrustState::Trusted);
        assert_eq!(evaluate_trust(&trust_subject("a", 2), &none, &remembered), TrustState::Unknown);
        assert_eq!(evaluate_trust(&trust_subject("b", 1), &none, &remembered), TrustState::Refused);
        assert_eq!(evaluate_trust(&trust_subject("c", 1), &none, &remembered), TrustState::Unknown);
        assert_eq!(evaluate_trust(&trust_subject("a", 1), &none, &none), TrustState::Unknown);
    }

    #[test]
    fn the_session_counts_first_and_the_last_word() {
        let remembered = trust_ledger(&[("a", 1, TrustAnswer::No), ("a", 1, TrustAnswer::Yes)]);
        let session = trust_ledger(&[("a", 1, TrustAnswer::No)]);
        assert_eq!(
            evaluate_trust(&trust_subject("a", 1), &TrustLedger::default(), &remembered),
            TrustState::Trusted
        );
        assert_eq!(evaluate_trust(&trust_subject("a", 1), &session, &remembered), TrustState::Refused);
    }

    #[test]
    fn hashes_are_read_as_they_are_written() {
        let hash = ContentHash::new(std::array::from_fn(|place| u8::try_from(place * 7).unwrap_or(255)));
        assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
        let upper = hash.to_string().to_uppercase();
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32), &upper] {
            assert_eq!(ContentHash::parse(text), None, "{text}");
        }
    }
}
