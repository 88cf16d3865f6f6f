//! A word of a command line: what is known of it before the shell expands it.

/// How much of a word is known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownExtent {
    /// All of it.
    Whole,
    /// All but where the home folder is, which stands as `~`.
    Home,
    /// How it begins; it may become several words that all begin so.
    Begins,
    /// Nothing: it may become any words, or none.
    Splits,
}

/// A part of a word behind its known beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPiece {
    /// Text that stands there as it is.
    Known(String),
    /// A pattern that the shell matches against file names: no slash, and no dot at the start of a name.
    Glob,
    /// The value of a variable.
    Variable(String),
    /// Anything; the text is one of the values it may have, if one is written out.
    Unknown(Option<String>),
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// The word without its quotes, up to the first part that is not known.
    pub text: String,
    /// How far that is.
    pub extent: KnownExtent,
    /// What follows: empty if all of the word is known, or else a part that is not, then what is behind it.
    pub rest: Vec<WordPiece>,
}

impl ShellWord {
    /// Makes a word that is known.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), extent: KnownExtent::Whole, rest: Vec::new() }
    }

    /// Makes a word that may be any words.
    pub fn unknown() -> Self {
        Self { text: String::new(), extent: KnownExtent::Splits, rest: vec![WordPiece::Unknown(None)] }
    }

    /// Returns the word if all of it is known.
    pub fn known_text(&self) -> Option<&str> {
        (self.extent == KnownExtent::Whole).then_some(self.text.as_str())
    }

    /// Whether what is not known may turn the word into an option.
    pub fn may_be_option(&self) -> bool {
        match self.extent {
            KnownExtent::Whole | KnownExtent::Home => false,
            KnownExtent::Begins => self.text.is_empty(),
            KnownExtent::Splits => true,
        }
    }

    /// Whether something of the word is known, at any place in it.
    pub fn has_known_part(&self) -> bool {
        !self.text.is_empty() || self.rest.iter().any(|piece| matches!(piece, WordPiece::Known(_)))
    }

    /// Returns the same word without the first `len` bytes of its known beginning.
    #[must_use]
    pub fn without_prefix(&self, len: usize) -> Self {
        let text = self.text.get(len..).unwrap_or_default().to_owned();
        Self { text, extent: self.extent, rest: self.rest.clone() }
    }

    /// Appends a letter that is known.
    pub(super) fn push(&mut self, letter: char) {
        match self.rest.last_mut() {
            None => self.text.push(letter),
            Some(WordPiece::Known(text)) => text.push(letter),
            Some(WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_)) => {
                self.rest.push(WordPiece::Known(letter.into()));
            }
        }
    }

    /// Appends a part that is not known, which leaves `extent` known of the word.
    pub(super) fn push_unknown(&mut self, piece: WordPiece, extent: KnownExtent) {
        // A tilde in front is no known beginning any more.
        let is_home = self.extent == KnownExtent::Home;
        self.extent = if is_home { KnownExtent::Splits } else { self.extent.max(extent) };
        self.rest.push(piece);
    }

    /// Replaces everything from byte `start` of the known beginning by something unknown.
    pub(super) fn forget_from(&mut self, start: usize) {
        self.text.truncate(start);
        self.extent = self.extent.max(KnownExtent::Begins);
        self.rest = vec![WordPiece::Unknown(None)];
    }
}
