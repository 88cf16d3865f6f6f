//! What a shell replaces: `$…`, backquotes and the text of here-documents. The commands in them are kept.

use super::lex::{HereDocument, ShellReader};
use super::{KnownExtent, ShellDialect, ShellParseError, ShellWord, WordPiece};

impl ShellReader<'_> {
    /// Reads what begins with `$`. `extent` is what an expansion leaves known of a word here.
    pub(super) fn read_dollar(
        &mut self,
        word: &mut ShellWord,
        extent: KnownExtent,
    ) -> Result<(), ShellParseError> {
        self.at += 1;
        let mut extent = extent;
        let mut piece = WordPiece::Unknown(None);
        match self.peek() {
            Some(b'(') if self.starts_with("((") => self.read_arithmetic()?,
            Some(b'(') => {
                self.at += 1;
                self.n_substitutions += 1;
                self.read_deeper(Self::read_substitution)?;
                self.n_substitutions -= 1;
            }
            Some(b'{') => {
                if self.starts_with("{@") || self.starts_with("{*") {
                    extent = KnownExtent::Splits;
                }
                piece = self.read_parameter()?;
            }
            Some(b'@' | b'*') => {
                extent = KnownExtent::Splits;
                self.at += 1;
            }
            Some(b'#' | b'?' | b'$' | b'!' | b'-' | b'0'..=b'9') => self.at += 1,
            Some(b'_' | b'a'..=b'z' | b'A'..=b'Z') => {
                let name = &self.rest()[..name_len(self.rest())];
                piece = WordPiece::Variable(name.to_owned());
                self.at += name.len();
            }
            Some(b'\'' | b'"') if extent == KnownExtent::Splits => {
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

    /// With a name in it, some shells run what the variable holds; numbers alone are just numbers.
    fn read_arithmetic(&mut self) -> Result<(), ShellParseError> {
        let inside = &self.rest()["((".len()..];
        let end = inside.find("))").ok_or(ShellParseError("has arithmetic that does not end"))?;
        let is_plain = |byte: u8| byte.is_ascii_digit() || b" +-*/%".contains(&byte);
        if !inside[..end].bytes().all(is_plain) {
            self.require_extended("has arithmetic with more than numbers")?;
            return self.read_extended_arithmetic();
        }
        self.at += "((".len() + end + "))".len();
        Ok(())
    }

    /// Reads `{…}` after a dollar: a name, perhaps with a plain text to use instead or to cut off.
    fn read_parameter(&mut self) -> Result<WordPiece, ShellParseError> {
        let odd = ShellParseError("has an unusual parameter");
        if self.dialect == ShellDialect::Extended {
            return self.read_extended_parameter();
        }
        let end = self.rest().find('}').ok_or(odd)?;
        let inside = &self.rest()[1..end];
        let after = match inside.as_bytes() {
            [b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-'] => "",
            [b'0'..=b'9', ..] => inside.trim_start_matches(|letter: char| letter.is_ascii_digit()),
            [b'#', ..] if name_len(&inside[1..]) + 1 == inside.len() => "",
            _ if name_len(inside) > 0 => &inside[name_len(inside)..],
            _ => return Err(odd),
        };
        let split = |operator: &str| after.strip_prefix(operator);
        let instead = [":-", ":+", "-", "+"].into_iter().find_map(split);
        let text = instead.or_else(|| [":?", "##", "%%", "?", "#", "%"].into_iter().find_map(split));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ./-_*,:@%+".contains(letter);
        if !after.is_empty() && !text.is_some_and(|text| text.chars().all(is_plain)) {
            return Err(odd);
        }
        self.at += end + 1;
        Ok(match instead {
            Some(text) => WordPiece::Unknown(Some(text.to_owned())),
            None if after.is_empty() && name_len(inside) > 0 => WordPiece::Variable(inside.to_owned()),
            None => WordPiece::Unknown(None),
        })
    }

    /// Reads a command in backquotes. With quotes or backslashes in it, shells disagree.
    pub(super) fn read_backquoted(
        &mut self,
        word: &mut ShellWord,
        extent: KnownExtent,
    ) -> Result<(), ShellParseError> {
        self.at += 1;
        let end = self.rest().find('`').ok_or(ShellParseError("has a backquote that does not end"))?;
        let inside = &self.rest()[..end];
        if inside.contains(['\\', '"', '\n']) {
            self.require_extended("has quotes or backslashes inside backquotes")?;
        }
        if inside.contains('\\') {
            return Err(ShellParseError("has quotes or backslashes inside backquotes"));
        }
        let mut reader = ShellReader::new(inside, self.depth + 1, self.dialect)?;
        reader.n_substitutions = 1;
        self.commands.append(&mut reader.read_all()?);
        self.at += end + 1;
        word.push_unknown(WordPiece::Unknown(None), extent);
        Ok(())
    }

    /// Steps over the texts of the here-documents that were announced on the line that ends here.
    pub(super) fn skip_here_documents(&mut self) -> Result<(), ShellParseError> {
        for here in std::mem::take(&mut self.here) {
            let start = self.at;
            let mut end = None;
            while end.is_none() && self.at < self.text.len() {
                let line_start = self.at;
                let line = self.rest().split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.text.len());
                let line = if here.strips_tabs { line.trim_start_matches('\t') } else { line };
                end = (line == here.delimiter).then_some(line_start);
            }
            let end = end.ok_or(ShellParseError("has a here-document that does not end"))?;
            self.read_here_text(&here, start..end)?;
        }
        Ok(())
    }

    fn read_here_text(
        &mut self,
        here: &HereDocument,
        range: std::ops::Range<usize>,
    ) -> Result<(), ShellParseError> {
        let body = self.text.get(range).unwrap_or_default();
        if let Some(command) = self.commands.get_mut(here.command) {
            command.documents.push(body.to_owned());
        }
        // Older shells look for the end of a substitution in here as well.
        if self.n_substitutions > 0 && has_stray_parenthesis(body) {
            return Err(ShellParseError("has an unusual here-document"));
        }
        if here.is_literal {
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
                '$' => reader.read_dollar(&mut word, KnownExtent::Begins)?,
                '`' => reader.read_backquoted(&mut word, KnownExtent::Begins)?,
                '\\' => {
                    reader.at += 1;
                    reader.at += reader.rest().chars().next().map_or(0, char::len_utf8);
                }
                letter => reader.at += letter.len_utf8(),
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

/// Counts the letters of the name that a text begins with.
pub(super) fn name_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.first().is_none_or(u8::is_ascii_digit) {
        return 0;
    }
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}
