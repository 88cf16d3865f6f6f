//! Whether what a repository brings along may be used. A person says yes or no to a content, never to a name:
//! what changed was never looked at. Must never know where contents are kept or who is asked.

use std::collections::BTreeMap;
use std::fmt;

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

/// One file that a repository supplies something with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Supply {
    /// Its path from the repository's root.
    pub path: String,
    /// What is in it.
    pub hash: ContentHash,
}

/// What a person said to a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// It may be used.
    Yes,
    /// It may not, and it is not asked again.
    No,
}

/// What a person has said to the contents of one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger(BTreeMap<Supply, Word>);

/// What may be done with a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Use it.
    Trusted,
    /// Leave it alone.
    Refused,
    /// Ask.
    Unknown,
}

impl Ledger {
    /// Takes down what the person said; the last word counts.
    pub fn say(&mut self, supply: Supply, word: Word) {
        self.0.insert(supply, word);
    }

    /// Tells what was said to this very content at this very place.
    pub fn word(&self, supply: &Supply) -> Option<Word> {
        self.0.get(supply).copied()
    }
}

/// Judges a content: what was said in the session counts before what is remembered, and silence is not a yes.
pub fn trust(supply: &Supply, session: &Ledger, remembered: &Ledger) -> Trust {
    match session.word(supply).or_else(|| remembered.word(supply)) {
        Some(Word::Yes) => Trust::Trusted,
        Some(Word::No) => Trust::Refused,
        None => Trust::Unknown,
    }
}

impl Word {
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

    fn supply(path: &str, content: u8) -> Supply {
        Supply { path: path.into(), hash: ContentHash::new([content; 32]) }
    }

    fn ledger(said: &[(&str, u8, Word)]) -> Ledger {
        let mut ledger = Ledger::default();
        said.iter().for_each(|(path, content, word)| ledger.say(supply(path, *content), *word));
        ledger
    }

    #[test]
    fn a_word_is_about_one_content_at_one_place() {
        let (none, remembered) = (Ledger::default(), ledger(&[("a", 1, Word::Yes), ("b", 1, Word::No)]));
        assert_eq!(trust(&supply("a", 1), &none, &remembered), Trust::Trusted);
        assert_eq!(trust(&supply("a", 2), &none, &remembered), Trust::Unknown);
        assert_eq!(trust(&supply("b", 1), &none, &remembered), Trust::Refused);
        assert_eq!(trust(&supply("c", 1), &none, &remembered), Trust::Unknown);
        assert_eq!(trust(&supply("a", 1), &none, &none), Trust::Unknown);
    }

    #[test]
    fn the_session_counts_first_and_the_last_word() {
        let remembered = ledger(&[("a", 1, Word::No), ("a", 1, Word::Yes)]);
        let session = ledger(&[("a", 1, Word::No)]);
        assert_eq!(trust(&supply("a", 1), &Ledger::default(), &remembered), Trust::Trusted);
        assert_eq!(trust(&supply("a", 1), &session, &remembered), Trust::Refused);
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
