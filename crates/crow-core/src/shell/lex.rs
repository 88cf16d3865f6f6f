//! The place in the text, and words. Knows quotes; what `$` and backquotes mean is `expand`'s.

use super::{Dialect, Extent, NotUnderstood, Piece, Simple, Word};

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
pub(super) struct Lexed {
    pub(super) word: Word,
    pub(super) is_quoted: bool,
    /// A line break was escaped inside it.
    pub(super) is_continued: bool,
    /// It begins with braces that may stand for several words, or has such in it.
    pub(super) has_braces: bool,
}

/// Reads a text from its beginning to its end.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) dialect: Dialect,
    /// How many command substitutions are open around here.
    pub(super) n_substitutions: usize,
    pub(super) here: Vec<HereDocument>,
    pub(super) commands: Vec<Simple>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, depth: usize, dialect: Dialect) -> Result<Self, NotUnderstood> {
        if text.len() > LEN_MAX {
            return Err(NotUnderstood("is too long"));
        }
        if depth > DEPTH_MAX {
            return Err(NotUnderstood("is nested too deeply"));
        }
        if text.chars().any(is_hidden) {
            return Err(NotUnderstood("has control characters"));
        }
        Ok(Self { text, at: 0, depth, dialect, n_substitutions: 0, here: Vec::new(), commands: Vec::new() })
    }

    /// Reads something one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, NotUnderstood>,
    ) -> Result<T, NotUnderstood> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(NotUnderstood("is nested too deeply"));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Refuses what not every shell reads alike, unless the line is read for those that have it.
    pub(super) fn only_extended(&self, why: &'static str) -> Result<(), NotUnderstood> {
        if self.dialect == Dialect::Extended { Ok(()) } else { Err(NotUnderstood(why)) }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn starts(&self, with: &str) -> bool {
        self.rest().starts_with(with)
    }

    /// Steps over a text if it comes next.
    pub(super) fn take(&mut self, expected: &str) -> bool {
        let is_next = self.starts(expected);
        self.at += if is_next { expected.len() } else { 0 };
        is_next
    }

    /// Steps over blanks, escaped line breaks and a comment.
    pub(super) fn skip_blanks(&mut self) -> Result<(), NotUnderstood> {
        let mut is_continued = false;
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.starts("\\\n") => {
                    self.continue_line()?;
                    is_continued = true;
                }
                Some(b'#')
                    if is_continued || (self.n_substitutions > 0 && self.dialect == Dialect::Common) =>
                {
                    return Err(NotUnderstood("has a comment in an odd place"));
                }
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return Ok(()),
            }
        }
    }

    fn continue_line(&mut self) -> Result<(), NotUnderstood> {
        self.at += "\\\n".len();
        self.no_here_document()
    }

    /// Shells disagree on where a here-document begins when its line goes on.
    fn no_here_document(&self) -> Result<(), NotUnderstood> {
        if self.here.is_empty() { Ok(()) } else { Err(NotUnderstood("goes on after a here-document")) }
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
    pub(super) fn word(&mut self) -> Result<Lexed, NotUnderstood> {
        let start = self.at;
        let mut lexed =
            Lexed { word: Word::known(""), is_quoted: false, is_continued: false, has_braces: false };
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
                    self.at += 1;
                    if letter == '"' {
                        self.double_quoted(&mut lexed.word)?;
                    } else {
                        self.single_quoted(&mut lexed.word)?;
                    }
                }
                '\\' if self.starts("\\\n") => {
                    self.continue_line()?;
                    lexed.is_continued = true;
                }
                '\\' => {
                    self.at += 1;
                    lexed.is_quoted = true;
                    self.literal(&mut lexed.word)?;
                }
                '$' => self.dollar(&mut lexed.word, Extent::Splits)?,
                '`' => self.backquoted(&mut lexed.word, Extent::Splits)?,
                '~' if self.at == start => self.tilde(&mut lexed.word)?,
                '~' if matches!(last, '=' | ':') => self.unknown(&mut lexed.word, Piece::Unknown(None)),
                '*' | '?' => self.unknown(&mut lexed.word, Piece::Glob),
                '[' if !is_test => {
                    self.unknown(&mut lexed.word, Piece::Glob);
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
                ',' if may_brace => self.brace(&mut lexed)?,
                '.' if may_brace && last == '.' => self.brace(&mut lexed)?,
                letter if letter.is_whitespace() => {
                    self.only_extended("has blanks of an unusual kind")?;
                    self.literal(&mut lexed.word)?;
                }
                _ => {
                    may_brace |= letter == '{';
                    self.literal(&mut lexed.word)?;
                }
            }
            last = letter;
        }
        // The break may stand between letters that mean something together.
        if may_brace && lexed.is_continued {
            return Err(NotUnderstood("has braces that may stand for several words"));
        }
        Ok(lexed)
    }

    /// Steps over a letter that makes braces stand for several words.
    fn brace(&mut self, lexed: &mut Lexed) -> Result<(), NotUnderstood> {
        self.only_extended("has braces that may stand for several words")?;
        lexed.has_braces = true;
        self.literal(&mut lexed.word)
    }

    fn literal(&mut self, word: &mut Word) -> Result<(), NotUnderstood> {
        let letter = self.rest().chars().next().ok_or(NotUnderstood("ends in a backslash"))?;
        self.at += letter.len_utf8();
        word.push(letter);
        Ok(())
    }

    /// Steps over a letter that makes the word unknown.
    fn unknown(&mut self, word: &mut Word, piece: Piece) {
        self.at += 1;
        word.push_unknown(piece, Extent::Begins);
    }

    fn tilde(&mut self, word: &mut Word) -> Result<(), NotUnderstood> {
        let after = self.rest()[1..].chars().next();
        if !after.is_none_or(|after| after == '/' || ends_word(after)) {
            self.only_extended("names someone's home folder")?;
            let name = self.rest().find('/').unwrap_or(1).min(self.peek_bare().len().max(1));
            self.at += name;
            word.push_unknown(Piece::Unknown(None), Extent::Begins);
            return Ok(());
        }
        self.at += 1;
        word.push('~');
        word.extent = Extent::Home;
        Ok(())
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), NotUnderstood> {
        let end = self.rest().find('\'').ok_or(NotUnderstood("has a quote that does not end"))?;
        let inside = &self.rest()[..end];
        if inside.contains('\n') {
            self.no_here_document()?;
        }
        inside.chars().for_each(|letter| word.push(letter));
        self.at += end + 1;
        Ok(())
    }

    pub(super) fn double_quoted(&mut self, word: &mut Word) -> Result<(), NotUnderstood> {
        loop {
            match self.rest().chars().next() {
                None => return Err(NotUnderstood("has a quote that does not end")),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('$') => self.dollar(word, Extent::Begins)?,
                Some('`') => self.backquoted(word, Extent::Begins)?,
                Some('\\') if self.starts("\\\n") => self.continue_line()?,
                Some('\\') => {
                    self.at += 1;
                    if !matches!(self.peek(), Some(b'$' | b'`' | b'"' | b'\\')) {
                        word.push('\\');
                    }
                    self.literal(word)?;
                }
                Some(letter) => {
                    if letter == '\n' {
                        self.no_here_document()?;
                    }
                    self.literal(word)?;
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
