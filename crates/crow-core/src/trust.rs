//! Trust in repository files. The user approves or rejects a content, never a name: changed content was not reviewed.
//! Knows no storage and no user interface.

use std::collections::BTreeMap;
use std::fmt;

/// The SHA-256 hash of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

/// A repository file that supplies configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrustSubject {
    /// The path from the repository's root.
    pub path: String,
    /// The hash of its content.
    pub hash: ContentHash,
}

/// The user's answer about a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// It may be used.
    Trust,
    /// It may not, and is not asked about again.
    Reject,
}

/// The user's answers for one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustLedger(BTreeMap<TrustSubject, TrustAnswer>);

/// The trust in a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    /// Use it.
    Trusted,
    /// Ignore it.
    Rejected,
    /// Ask.
    Unknown,
}

impl TrustLedger {
    /// Records an answer; the last one counts.
    pub fn record_answer(&mut self, subject: TrustSubject, answer: TrustAnswer) {
        self.0.insert(subject, answer);
    }

    /// Returns the answer for exactly this content at this path.
    pub fn answer_for(&self, subject: &TrustSubject) -> Option<TrustAnswer> {
        self.0.get(subject).copied()
    }
}

/// Evaluates a content: answers of the session take precedence over stored ones, and without an answer it is not
/// trusted.
pub fn evaluate_trust(subject: &TrustSubject, session: &TrustLedger, remembered: &TrustLedger) -> TrustState {
    match session.answer_for(subject).or_else(|| remembered.answer_for(subject)) {
        Some(TrustAnswer::Trust) => TrustState::Trusted,
        Some(TrustAnswer::Reject) => TrustState::Rejected,
        None => TrustState::Unknown,
    }
}

impl TrustAnswer {
    /// Returns the stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trust => "yes",
            Self::Reject => "no",
        }
    }

    /// Parses a stored word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Trust, Self::Reject].into_iter().find(|answer| answer.as_str() == text)
    }
}

impl ContentHash {
    /// Wraps a computed hash.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses the output of [`fmt::Display`].
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
            .for_each(|(path, content, answer)| ledger.record_answer(trust_subject(path, *content), *answer));
        ledger
    }

    #[test]
    fn answer_applies_to_one_content_at_one_path() {
        let (none, remembered) = (
            TrustLedger::default(),
            trust_ledger(&[("a", 1, TrustAnswer::Trust), ("b", 1, TrustAnswer::Reject)]),
        );
        assert_eq!(evaluate_trust(&trust_subject("a", 1), &none, &remembered), TrustState::Trusted);
        assert_eq!(evaluate_trust(&trust_subject("a", 2), &none, &remembered), TrustState::Unknown);
        assert_eq!(evaluate_trust(&trust_subject("b", 1), &none, &remembered), TrustState::Rejected);
        assert_eq!(evaluate_trust(&trust_subject("c", 1), &none, &remembered), TrustState::Unknown);
        assert_eq!(evaluate_trust(&trust_subject("a", 1), &none, &none), TrustState::Unknown);
    }

    #[test]
    fn answer_of_session_and_last_answer_take_precedence() {
        let remembered = trust_ledger(&[("a", 1, TrustAnswer::Reject), ("a", 1, TrustAnswer::Trust)]);
        let session = trust_ledger(&[("a", 1, TrustAnswer::Reject)]);
        assert_eq!(
            evaluate_trust(&trust_subject("a", 1), &TrustLedger::default(), &remembered),
            TrustState::Trusted
        );
        assert_eq!(evaluate_trust(&trust_subject("a", 1), &session, &remembered), TrustState::Rejected);
    }

    #[test]
    fn hash_round_trips_through_text() {
        let hash = ContentHash::new(std::array::from_fn(|place| u8::try_from(place * 7).unwrap_or(255)));
        assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
        let upper = hash.to_string().to_uppercase();
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32), &upper] {
            assert_eq!(ContentHash::parse(text), None, "{text}");
        }
    }
}
