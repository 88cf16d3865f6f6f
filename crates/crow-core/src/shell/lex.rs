//! The place in the text, and words. Knows quotes; what `$` and backquotes mean is `expand`'s.

use super::{KnownExtent, ShellDialect, ShellParseError, ShellWord, SimpleCommand, WordPiece};

/// Long enough for a file in a here-document, short enough to be read in a blink.
const LEN_MAX: usize = 256 * 1024;
/// Nobody nests deeper by hand, and a stack ends somewhere.
const DEPTH_MAX: usize = 24;

/// A here-document whose text begins after the line.
pub(super) struct HereDocument {
    /// The place of its command among those read.
    pub(super) command: usize,
    pub(super) delimiter: String,
    pub(super) is_literal: bool,
    pub(super) strips_tabs: bool,
}

/// A word with what only its spelling tells.
pub(super) struct LexedWord {
    pub(super) word: ShellWord,
    pub(super) is_quoted: bool,
    /// A line break was escaped inside it.
    pub(super) is_continued: bool,
    /// It begins with braces that may stand for several words, or has such in it.
    pub(super) has_braces: bool,
}

impl LexedWord {
    fn new() -> Self {
        Self { word: ShellWord::from_text(""), is_quoted: false, is_continued: false, has_braces: false }
    }
}

/// Reads a text from its beginning to its end.
pub(super) struct ShellReader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) dialect: ShellDialect,
    /// How many command substitutions are open around here.
    pub(super) n_substitutions: usize,
    pub(super) here: Vec<HereDocument>,
    pub(super) commands: Vec<SimpleCommand>,
}

impl<'a> ShellReader<'a> {
    pub(super) fn new(text: &'a str, depth: usize, dialect: ShellDialect) -> Result<Self, ShellParseError> {
        if text.len() > LEN_MAX {
            return Err(ShellParseError("is too long"));
        }
        if depth > DEPTH_MAX {
            return Err(ShellParseError("is nested too deeply"));
        }
        if text.chars().any(is_hidden) {
            return Err(ShellParseError("has control characters"));
        }
        Ok(Self { text, at: 0, depth, dialect, n_substitutions: 0, here: Vec::new(), commands: Vec::new() })
    }

    /// Reads something one level deeper.
    pub(super) fn read_deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ShellParseError("is nested too deeply"));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Refuses what not every shell reads alike, unless the line is read for those that have it.
    pub(super) fn require_extended(&self, why: &'static str) -> Result<(), ShellParseError> {
        if self.dialect == ShellDialect::Extended { Ok(()) } else { Err(ShellParseError(why)) }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn starts_with(&self, with: &str) -> bool {
        self.rest().starts_with(with)
    }

    /// Steps over a text if it comes next.
    pub(super) fn take(&mut self, expected: &str) -> bool {
        let is_next = self.starts_with(expected);
        self.at += if is_next { expected.len() } else { 0 };
        is_next
    }

    /// Steps over blanks, escaped line breaks and a comment.
    pub(super) fn skip_blanks(&mut self) -> Result<(), ShellParseError> {
        let mut is_continued = false;
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.starts_with("\\\n") => {
                    self.continue_line()?;
                    is_continued = true;
                }
                Some(b'#')
                    if is_continued || (self.n_substitutions > 0 && self.dialect == ShellDialect::Common) =>
                {
                    return Err(ShellParseError("has a comment in an odd place"));
                }
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return Ok(()),
            }
        }
    }

    fn continue_line(&mut self) -> Result<(), ShellParseError> {
        self.at += "\\\n".len();
        self.check_no_here_document()
    }

    /// Shells disagree on where a here-document begins when its line goes on.
    fn check_no_here_document(&self) -> Result<(), ShellParseError> {
        if self.here.is_empty() { Ok(()) } else { Err(ShellParseError("goes on after a here-document")) }
    }

    /// Shows the next word if nothing in it is quoted or expanded, without stepping over it.
    pub(super) fn peek_bare(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter: char| ends_word(letter) || "'\"\\$`".contains(letter));
        match end.and_then(|end| rest[end..].chars().next()) {
            Some(letter) if !ends_word(letter) => "",
            _ => &rest[..end.unwrap_or(rest.len())],
        }
    }

    /// Reads a word; there is at least a letter of it.
    pub(super) fn read_word(&mut self) -> Result<LexedWord, ShellParseError> {
        let start = self.at;
        let mut lexed = LexedWord::new();
        // These are programs, and nothing else that begins so.
        let is_test = matches!(self.peek_bare(), "[" | "[[");
        let mut may_brace = false;
        // Where in the word a `[` stands whose `]` was not seen yet, as a count of its pieces.
        let mut open_bracket = None;
        let mut last = '\0';
        while let Some(letter) = self.rest().chars().next().filter(|&letter| !ends_word(letter)) {
            match letter {
                '\'' | '"' => {
                    lexed.is_quoted = true;
                    self.read_quoted(letter, &mut lexed.word)?;
                }
                '\\' if self.starts_with("\\\n") => {
                    self.continue_line()?;
                    lexed.is_continued = true;
                }
                '\\' => {
                    self.at += 1;
                    lexed.is_quoted = true;
                    self.push_literal(&mut lexed.word)?;
                }
                '$' => self.read_dollar(&mut lexed.word, KnownExtent::Splits)?,
                '`' => self.read_backquoted(&mut lexed.word, KnownExtent::Splits)?,
                '~' if self.at == start => self.read_tilde(&mut lexed.word)?,
                '~' if matches!(last, '=' | ':') => {
                    self.skip_unknown(&mut lexed.word, WordPiece::Unknown(None));
                }
                '*' | '?' => self.skip_unknown(&mut lexed.word, WordPiece::Glob),
                '[' if !is_test => {
                    self.skip_unknown(&mut lexed.word, WordPiece::Glob);
                    open_bracket = open_bracket.or(Some((lexed.word.rest.len(), self.at)));
                }
                ']' if let Some((n_pieces, inside)) = open_bracket
                    && !matches!(&self.text[inside..self.at], "" | "!" | "^") =>
                {
                    self.at += 1;
                    // All of it stands for one letter.
                    lexed.word.rest.truncate(n_pieces);
                    open_bracket = None;
                }
                ',' if may_brace => self.read_brace(&mut lexed)?,
                '.' if may_brace && last == '.' => self.read_brace(&mut lexed)?,
                letter if letter.is_whitespace() => {
                    self.require_extended("has blanks of an unusual kind")?;
                    self.push_literal(&mut lexed.word)?;
                }
                _ => {
                    may_brace |= letter == '{';
                    self.push_literal(&mut lexed.word)?;
                }
            }
            last = letter;
        }
        // The break may stand between letters that mean something together.
        if may_brace && lexed.is_continued {
            return Err(ShellParseError("has braces that may stand for several words"));
        }
        Ok(lexed)
    }

    /// Reads what a quotation mark of one kind encloses.
    fn read_quoted(&mut self, mark: char, word: &mut ShellWord) -> Result<(), ShellParseError> {
        self.at += 1;
        if mark == '"' { self.read_double_quoted(word) } else { self.read_single_quoted(word) }
    }

    /// Steps over a letter that makes braces stand for several words.
    fn read_brace(&mut self, lexed: &mut LexedWord) -> Result<(), ShellParseError> {
        self.require_extended("has braces that may stand for several words")?;
        lexed.has_braces = true;
        self.push_literal(&mut lexed.word)
    }

    fn push_literal(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let letter = self.rest().chars().next().ok_or(ShellParseError("ends in a backslash"))?;
        self.at += letter.len_utf8();
        word.push(letter);
        Ok(())
    }

    /// Steps over a letter that makes the word unknown.
    fn skip_unknown(&mut self, word: &mut ShellWord, piece: WordPiece) {
        self.at += 1;
        word.push_unknown(piece, KnownExtent::Begins);
    }

    fn read_tilde(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let after = self.rest()[1..].chars().next();
        if !after.is_none_or(|after| after == '/' || ends_word(after)) {
            self.require_extended("names someone's home folder")?;
            let name = self.rest().find('/').unwrap_or(1).min(self.peek_bare().len().max(1));
            self.at += name;
            word.push_unknown(WordPiece::Unknown(None), KnownExtent::Begins);
            return Ok(());
        }
        self.at += 1;
        word.push('~');
        word.extent = KnownExtent::Home;
        Ok(())
    }

    fn read_single_quoted(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let end = self.rest().find('\'').ok_or(ShellParseError("has a quote that does not end"))?;
        let inside = &self.rest()[..end];
        if inside.contains('\n') {
            self.check_no_here_document()?;
        }
        inside.chars().for_each(|letter| word.push(letter));
        self.at += end + 1;
        Ok(())
    }

    pub(super) fn read_double_quoted(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        loop {
            match self.rest().chars().next() {
                None => return Err(ShellParseError("has a quote that does not end")),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('$') => self.read_dollar(word, KnownExtent::Begins)?,
                Some('`') => self.read_backquoted(word, KnownExtent::Begins)?,
                Some('\\') if self.starts_with("\\\n") => self.continue_line()?,
                Some('\\') => {
                    self.at += 1;
                    if !matches!(self.peek(), Some(b'$' | b'`' | b'"' | b'\\')) {
                        word.push('\\');
                    }
                    self.push_literal(word)?;
                }
                Some(letter) => {
                    if letter == '\n' {
                        self.check_no_here_document()?;
                    }
                    self.push_literal(word)?;
                }
            }
        }
    }
}

/// Tells the letters that end a word unless they are quoted.
pub(super) fn ends_word(letter: char) -> bool {
    " \t\n;&|<>()".contains(letter)
}

/// Tells letters that a shell, a terminal or an eye reads in ways of its own.
fn is_hidden(letter: char) -> bool {
    let turns_text = matches!(letter, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    (letter.is_control() && letter != '\n' && letter != '\t') || turns_text
}
