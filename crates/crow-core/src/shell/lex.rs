//! The position in the text, and words with quotes; `expand` reads `$` and backquotes.

use super::command::{ShellDialect, ShellParseError, SimpleCommand};
use super::word::{KnownExtent, ShellWord, WordPiece};

/// Enough for a file in a here-document, and fast to parse.
const LEN_MAX: usize = 256 * 1024;
/// Deeper than handwritten nesting, within the stack.
const DEPTH_MAX: usize = 24;

/// Reserved words of any shell.
pub(super) const RESERVED: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "[[", "]]", "function", "select", "coproc",
];

/// A here-document whose text begins after the line.
pub(super) struct HereDocument {
    /// The index of its command.
    pub(super) command_index: usize,
    pub(super) delimiter: String,
    pub(super) is_literal: bool,
    pub(super) strips_tabs: bool,
}

/// A word with properties of its source.
pub(super) struct LexedWord {
    pub(super) word: ShellWord,
    pub(super) is_quoted: bool,
    /// Whether a line break in it was escaped.
    pub(super) is_continued: bool,
    /// Whether its braces may expand to several words.
    pub(super) has_braces: bool,
}

impl LexedWord {
    fn new() -> Self {
        Self { word: ShellWord::from_text(""), is_quoted: false, is_continued: false, has_braces: false }
    }
}

/// A reader of a text.
pub(super) struct ShellReader<'a> {
    pub(super) text: &'a str,
    pub(super) position: usize,
    pub(super) depth: usize,
    pub(super) dialect: ShellDialect,
    /// The number of enclosing command substitutions.
    pub(super) n_substitutions: usize,
    pub(super) here_documents: Vec<HereDocument>,
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
        Ok(Self {
            text,
            position: 0,
            depth,
            dialect,
            n_substitutions: 0,
            here_documents: Vec::new(),
            commands: Vec::new(),
        })
    }

    /// Runs a reader one level deeper.
    pub(super) fn read_deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ShellParseError>,
    ) -> Result<T, ShellParseError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ShellParseError("is nested too deeply"));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Rejects syntax that shells read differently, unless parsing for extended shells.
    pub(super) fn require_extended(&self, reason: &'static str) -> Result<(), ShellParseError> {
        if self.dialect == ShellDialect::Extended { Ok(()) } else { Err(ShellParseError(reason)) }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    pub(super) fn starts_with(&self, prefix: &str) -> bool {
        self.rest().starts_with(prefix)
    }

    /// Skips a text if it comes next.
    pub(super) fn take(&mut self, expected: &str) -> bool {
        let is_next = self.starts_with(expected);
        self.position += if is_next { expected.len() } else { 0 };
        is_next
    }

    /// Skips white space, escaped line breaks and a comment.
    pub(super) fn skip_blanks(&mut self) -> Result<(), ShellParseError> {
        let mut is_continued = false;
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.position += 1,
                Some(b'\\') if self.starts_with("\\\n") => {
                    self.continue_line()?;
                    is_continued = true;
                }
                Some(b'#')
                    if is_continued || (self.n_substitutions > 0 && self.dialect == ShellDialect::Common) =>
                {
                    return Err(ShellParseError("has a comment in an odd place"));
                }
                Some(b'#') => self.position += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return Ok(()),
            }
        }
    }

    fn continue_line(&mut self) -> Result<(), ShellParseError> {
        self.position += "\\\n".len();
        self.check_no_here_document()
    }

    /// Shells disagree on the start of a here-document if its line continues.
    fn check_no_here_document(&self) -> Result<(), ShellParseError> {
        if self.here_documents.is_empty() {
            Ok(())
        } else {
            Err(ShellParseError("continues after a here-document"))
        }
    }

    /// Returns the next word if no part of it is quoted or expanded, without skipping it.
    pub(super) fn peek_bare(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|letter: char| ends_word(letter) || "'\"\\$`".contains(letter));
        match end.and_then(|end| rest[end..].chars().next()) {
            Some(letter) if !ends_word(letter) => "",
            _ => &rest[..end.unwrap_or(rest.len())],
        }
    }

    /// Reads a word of at least one letter.
    pub(super) fn read_word(&mut self) -> Result<LexedWord, ShellParseError> {
        let start = self.position;
        let mut lexed = LexedWord::new();
        // These are programs, no patterns.
        let is_test = matches!(self.peek_bare(), "[" | "[[");
        let (mut has_brace, mut n_open_braces) = (false, 0_usize);
        // The piece count of the word at an open `[`.
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
                    self.position += 1;
                    lexed.is_quoted = true;
                    self.push_literal(&mut lexed.word)?;
                }
                '$' => self.read_dollar(&mut lexed.word, KnownExtent::Unknown)?,
                '`' => self.read_backquoted(&mut lexed.word, KnownExtent::Unknown)?,
                '~' if self.position == start => self.read_tilde(&mut lexed.word)?,
                '~' if matches!(last, '=' | ':') => {
                    self.skip_unknown(&mut lexed.word, WordPiece::Unknown(None));
                }
                '*' | '?' => self.skip_unknown(&mut lexed.word, WordPiece::Glob),
                '[' if !is_test => {
                    self.skip_unknown(&mut lexed.word, WordPiece::Glob);
                    open_bracket = open_bracket.or(Some((lexed.word.pieces.len(), self.position)));
                }
                ']' if let Some((n_pieces, inside)) = open_bracket
                    && !matches!(&self.text[inside..self.position], "" | "!" | "^") =>
                {
                    self.position += 1;
                    // The whole bracket expression matches one letter.
                    lexed.word.pieces.truncate(n_pieces);
                    open_bracket = None;
                }
                // Bash closes braces only after a comma: `{a},b}` is `a}` and `b`.
                ',' if has_brace => self.read_brace(&mut lexed)?,
                '.' if n_open_braces > 0 && last == '.' => self.read_brace(&mut lexed)?,
                letter if letter.is_whitespace() => {
                    self.require_extended("has blanks of an unusual kind")?;
                    self.push_literal(&mut lexed.word)?;
                }
                _ => {
                    has_brace |= letter == '{';
                    n_open_braces = count_open_braces(n_open_braces, letter);
                    self.push_literal(&mut lexed.word)?;
                }
            }
            last = letter;
        }
        // The break may separate letters that have a meaning together.
        if has_brace && lexed.is_continued {
            return Err(ShellParseError("has braces that may expand to several words"));
        }
        Ok(lexed)
    }

    /// Reads a quoted text.
    fn read_quoted(&mut self, mark: char, word: &mut ShellWord) -> Result<(), ShellParseError> {
        self.position += 1;
        if mark == '"' { self.read_double_quoted(word) } else { self.read_single_quoted(word) }
    }

    /// Skips a letter that makes braces expand to several words.
    fn read_brace(&mut self, lexed: &mut LexedWord) -> Result<(), ShellParseError> {
        self.require_extended("has braces that may expand to several words")?;
        lexed.has_braces = true;
        self.push_literal(&mut lexed.word)
    }

    fn push_literal(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let letter = self.rest().chars().next().ok_or(ShellParseError("ends in a backslash"))?;
        self.position += letter.len_utf8();
        word.push(letter);
        Ok(())
    }

    /// Skips a letter that makes the word unknown.
    fn skip_unknown(&mut self, word: &mut ShellWord, piece: WordPiece) {
        self.position += 1;
        word.push_unknown(piece, KnownExtent::Prefix);
    }

    fn read_tilde(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let after = self.rest()[1..].chars().next();
        if !after.is_none_or(|after| after == '/' || ends_word(after)) {
            self.require_extended("names another user's home directory")?;
            let name = self.rest().find('/').unwrap_or(1).min(self.peek_bare().len().max(1));
            self.position += name;
            word.push_unknown(WordPiece::Unknown(None), KnownExtent::Prefix);
            return Ok(());
        }
        self.position += 1;
        word.push('~');
        word.extent = KnownExtent::Home;
        Ok(())
    }

    fn read_single_quoted(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        let end = self.rest().find('\'').ok_or(ShellParseError("has a quote that does not end"))?;
        let quoted = &self.rest()[..end];
        if quoted.contains('\n') {
            self.check_no_here_document()?;
        }
        quoted.chars().for_each(|letter| word.push(letter));
        self.position += end + 1;
        Ok(())
    }

    pub(super) fn read_double_quoted(&mut self, word: &mut ShellWord) -> Result<(), ShellParseError> {
        loop {
            match self.rest().chars().next() {
                None => return Err(ShellParseError("has a quote that does not end")),
                Some('"') => {
                    self.position += 1;
                    return Ok(());
                }
                Some('$') => self.read_dollar(word, KnownExtent::Prefix)?,
                Some('`') => self.read_backquoted(word, KnownExtent::Prefix)?,
                Some('\\') if self.starts_with("\\\n") => self.continue_line()?,
                Some('\\') => {
                    self.position += 1;
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

fn count_open_braces(n_open: usize, letter: char) -> usize {
    match letter {
        '{' => n_open + 1,
        '}' => n_open.saturating_sub(1),
        _ => n_open,
    }
}

/// Whether a letter ends a word unless quoted.
pub(super) fn ends_word(letter: char) -> bool {
    " \t\n;&|<>()".contains(letter)
}

/// Whether a shell, a terminal or a reader may treat a letter specially.
fn is_hidden(letter: char) -> bool {
    let turns_text = matches!(letter, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    (letter.is_control() && letter != '\n' && letter != '\t') || turns_text
}
