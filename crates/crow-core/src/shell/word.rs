//! A word of a command line, as far as it is known before expansion.

/// The known extent of a word before expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownExtent {
    /// All of it.
    Full,
    /// All except the home directory, written as `~`.
    Home,
    /// Its start; it may become several words with that start.
    Prefix,
    /// Nothing: it may become any words, or none.
    Unknown,
}

/// A piece of a word after its known start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPiece {
    /// Literal text.
    Known(String),
    /// A pattern that the shell matches against file names: no slash, and no leading dot.
    Glob,
    /// The value of a variable.
    Variable(String),
    /// Any text; the value is one possibility that is written out.
    Unknown(Option<String>),
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// The word without quotes, up to the first unknown piece.
    pub text: String,
    /// The extent of that text.
    pub extent: KnownExtent,
    /// The pieces after the text: empty if all of the word is known, otherwise beginning with an unknown one.
    pub pieces: Vec<WordPiece>,
}

impl ShellWord {
    /// Creates a known word.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), extent: KnownExtent::Full, pieces: Vec::new() }
    }

    /// Creates a word that may be any words.
    pub fn unknown() -> Self {
        Self { text: String::new(), extent: KnownExtent::Unknown, pieces: vec![WordPiece::Unknown(None)] }
    }

    /// Returns the word if all of it is known.
    pub fn known_text(&self) -> Option<&str> {
        (self.extent == KnownExtent::Full).then_some(self.text.as_str())
    }

    /// Whether the unknown part may turn the word into an option.
    pub fn may_be_option(&self) -> bool {
        match self.extent {
            KnownExtent::Full | KnownExtent::Home => false,
            KnownExtent::Prefix => self.text.is_empty(),
            KnownExtent::Unknown => true,
        }
    }

    /// Whether any part of the word is known.
    pub fn has_known_part(&self) -> bool {
        !self.text.is_empty() || self.pieces.iter().any(|piece| matches!(piece, WordPiece::Known(_)))
    }

    /// Returns the word without the first `len` bytes of its known start.
    #[must_use]
    pub fn without_prefix(&self, len: usize) -> Self {
        let text = self.text.get(len..).unwrap_or_default().to_owned();
        Self { text, extent: self.extent, pieces: self.pieces.clone() }
    }

    /// Appends a known letter.
    pub(super) fn push(&mut self, letter: char) {
        match self.pieces.last_mut() {
            None => self.text.push(letter),
            Some(WordPiece::Known(text)) => text.push(letter),
            Some(WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_)) => {
                self.pieces.push(WordPiece::Known(letter.into()));
            }
        }
    }

    /// Appends an unknown piece, which reduces the known extent.
    pub(super) fn push_unknown(&mut self, piece: WordPiece, extent: KnownExtent) {
        // A leading tilde is no longer a known start.
        let is_home = self.extent == KnownExtent::Home;
        self.extent = if is_home { KnownExtent::Unknown } else { self.extent.max(extent) };
        self.pieces.push(piece);
    }

    /// Replaces the known start from byte `start` by an unknown piece.
    pub(super) fn forget_from(&mut self, start: usize) {
        self.text.truncate(start);
        self.extent = self.extent.max(KnownExtent::Prefix);
        self.pieces = vec![WordPiece::Unknown(None)];
    }
}
