//! Expansions: `$…`, backquotes and the text of here-documents. Collects the commands in them.

use super::command::{ShellDialect, ShellParseError};
use super::lex::{HereDocument, ShellReader};
use super::word::{KnownExtent, ShellWord, WordPiece};

impl ShellReader<'_> {
    /// Reads an expansion that begins with `$`. `extent` is the known extent of the word after it.
    pub(super) fn read_dollar(
        &mut self,
        word: &mut ShellWord,
        extent: KnownExtent,
    ) -> Result<(), ShellParseError> {
        self.position += 1;
        let mut extent = extent;
        let mut piece = WordPiece::Unknown(None);
        match self.peek() {
            Some(b'(') if self.starts_with("((") => self.read_arithmetic()?,
            Some(b'(') => {
                self.position += 1;
                self.n_substitutions += 1;
                self.read_deeper(Self::read_substitution)?;
                self.n_substitutions -= 1;
            }
            Some(b'{') => {
                if self.starts_with("{@") || self.starts_with("{*") {
                    extent = KnownExtent::Unknown;
                }
                piece = self.read_parameter()?;
            }
            Some(b'@' | b'*') => {
                extent = KnownExtent::Unknown;
                self.position += 1;
            }
            // Numbers, always one word.
            Some(b'#' | b'?' | b'$') => {
                extent = KnownExtent::Prefix;
                self.position += 1;
            }
            Some(b'!' | b'-' | b'0'..=b'9') => self.position += 1,
            Some(b'_' | b'a'..=b'z' | b'A'..=b'Z') => {
                let name = &self.rest()[..name_len(self.rest())];
                piece = WordPiece::Variable(name.to_owned());
                self.position += name.len();
            }
            Some(b'\'' | b'"') if extent == KnownExtent::Unknown => {
                self.require_extended("has a quote after a dollar")?;
                return self.read_dollar_quoted(word);
            }
            Some(b'[') => return Err(ShellParseError("has arithmetic of an old kind")),
            Some(b'\\') if self.starts_with("\\\n") => {
                return Err(ShellParseError("has a dollar at the end of a line"));
            }
            _ => {
                word.push('$');
                return Ok(());
            }
        }
        word.push_unknown(piece, extent);
        Ok(())
    }

    /// With a name in it, some shells run the variable's value; numbers alone are harmless.
    fn read_arithmetic(&mut self) -> Result<(), ShellParseError> {
        let body = &self.rest()["((".len()..];
        let end = body.find("))").ok_or(ShellParseError("has arithmetic that does not end"))?;
        let is_plain = |byte: u8| byte.is_ascii_digit() || b" +-*/%".contains(&byte);
        if !body[..end].bytes().all(is_plain) {
            self.require_extended("has arithmetic with more than numbers")?;
            return self.read_extended_arithmetic();
        }
        self.position += "((".len() + end + "))".len();
        Ok(())
    }

    /// Reads `{…}` after a dollar: a name, possibly with a default or a pattern to remove.
    fn read_parameter(&mut self) -> Result<WordPiece, ShellParseError> {
        let error = ShellParseError("has an unusual parameter");
        if self.dialect == ShellDialect::Extended {
            return self.read_extended_parameter();
        }
        let end = self.rest().find('}').ok_or(error)?;
        let body = &self.rest()[1..end];
        let after = match body.as_bytes() {
            [b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-'] => "",
            [b'0'..=b'9', ..] => body.trim_start_matches(|letter: char| letter.is_ascii_digit()),
            [b'#', ..] if name_len(&body[1..]) + 1 == body.len() => "",
            _ if name_len(body) > 0 => &body[name_len(body)..],
            _ => return Err(error),
        };
        let split = |operator: &str| after.strip_prefix(operator);
        let default = [":-", ":+", "-", "+"].into_iter().find_map(split);
        let text = default.or_else(|| [":?", "##", "%%", "?", "#", "%"].into_iter().find_map(split));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ./-_*,:@%+".contains(letter);
        if !after.is_empty() && !text.is_some_and(|text| text.chars().all(is_plain)) {
            return Err(error);
        }
        self.position += end + 1;
        Ok(match default {
            Some(text) => WordPiece::Unknown(Some(text.to_owned())),
            None if after.is_empty() && name_len(body) > 0 => WordPiece::Variable(body.to_owned()),
            None => WordPiece::Unknown(None),
        })
    }

    /// Reads a command in backquotes. Shells disagree on quotes and backslashes in it.
    pub(super) fn read_backquoted(
        &mut self,
        word: &mut ShellWord,
        extent: KnownExtent,
    ) -> Result<(), ShellParseError> {
        self.position += 1;
        let end = self.rest().find('`').ok_or(ShellParseError("has a backquote that does not end"))?;
        let body = &self.rest()[..end];
        if body.contains(['\\', '"', '\n']) {
            self.require_extended("has quotes or backslashes inside backquotes")?;
        }
        if body.contains('\\') {
            return Err(ShellParseError("has quotes or backslashes inside backquotes"));
        }
        let mut reader = ShellReader::new(body, self.depth + 1, self.dialect)?;
        reader.n_substitutions = 1;
        self.commands.append(&mut reader.read_all()?);
        self.position += end + 1;
        word.push_unknown(WordPiece::Unknown(None), extent);
        Ok(())
    }

    /// Skips the here-documents that were announced on the line before.
    pub(super) fn skip_here_documents(&mut self) -> Result<(), ShellParseError> {
        for document in std::mem::take(&mut self.here_documents) {
            let start = self.position;
            let mut end = None;
            while end.is_none() && self.position < self.text.len() {
                let line_start = self.position;
                let line = self.rest().split('\n').next().unwrap_or_default();
                self.position = (self.position + line.len() + 1).min(self.text.len());
                let line = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
                end = (line == document.delimiter).then_some(line_start);
            }
            let end = end.ok_or(ShellParseError("has a here-document that does not end"))?;
            self.read_here_text(&document, start..end)?;
        }
        Ok(())
    }

    fn read_here_text(
        &mut self,
        document: &HereDocument,
        range: std::ops::Range<usize>,
    ) -> Result<(), ShellParseError> {
        let body = self.text.get(range).unwrap_or_default();
        if let Some(command) = self.commands.get_mut(document.command_index) {
            command.documents.push(body.to_owned());
        }
        // Older shells also search here for the end of a substitution.
        if self.n_substitutions > 0 && has_stray_parenthesis(body) {
            return Err(ShellParseError("has an unusual here-document"));
        }
        if document.is_literal {
            return Ok(());
        }
        // An escaped line break could hide the end.
        if body.contains("\\\n") {
            return Err(ShellParseError("has an escaped line break in a here-document"));
        }
        self.read_expansions(body)
    }

    /// Reads the commands in the expansions of a text.
    pub(super) fn read_expansions(&mut self, text: &str) -> Result<(), ShellParseError> {
        let mut reader = ShellReader::new(text, self.depth + 1, self.dialect)?;
        reader.n_substitutions = 1;
        let mut word = ShellWord::from_text("");
        while let Some(letter) = reader.rest().chars().next() {
            match letter {
                '$' => reader.read_dollar(&mut word, KnownExtent::Prefix)?,
                '`' => reader.read_backquoted(&mut word, KnownExtent::Prefix)?,
                '\\' => {
                    reader.position += 1;
                    reader.position += reader.rest().chars().next().map_or(0, char::len_utf8);
                }
                letter => reader.position += letter.len_utf8(),
            }
        }
        self.commands.append(&mut reader.commands);
        Ok(())
    }
}

/// Whether a text closes a parenthesis that it did not open.
fn has_stray_parenthesis(text: &str) -> bool {
    let mut n_open = 0_usize;
    text.chars().any(|letter| match letter {
        '(' => {
            n_open += 1;
            false
        }
        ')' if n_open == 0 => true,
        ')' => {
            n_open -= 1;
            false
        }
        _ => false,
    })
}

/// Returns the length of the leading name.
pub(super) fn name_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.first().is_none_or(u8::is_ascii_digit) {
        return 0;
    }
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}
