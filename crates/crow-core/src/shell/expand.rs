//! What a shell replaces: `$…`, backquotes and the text of here-documents. The commands in them are kept.

use super::lex::{HereDocument, Reader};
use super::{Dialect, Extent, NotUnderstood, Piece, Word};

impl Reader<'_> {
    /// Reads what begins with `$`. `extent` is what an expansion leaves known of a word here.
    pub(super) fn dollar(&mut self, word: &mut Word, extent: Extent) -> Result<(), NotUnderstood> {
        self.at += 1;
        let mut extent = extent;
        let mut piece = Piece::Unknown(None);
        match self.peek() {
            Some(b'(') if self.starts("((") => self.arithmetic()?,
            Some(b'(') => {
                self.at += 1;
                self.n_substitutions += 1;
                self.deeper(Self::substitution)?;
                self.n_substitutions -= 1;
            }
            Some(b'{') => {
                if self.starts("{@") || self.starts("{*") {
                    extent = Extent::Splits;
                }
                piece = self.parameter()?;
            }
            Some(b'@' | b'*') => {
                extent = Extent::Splits;
                self.at += 1;
            }
            Some(b'#' | b'?' | b'$' | b'!' | b'-' | b'0'..=b'9') => self.at += 1,
            Some(b'_' | b'a'..=b'z' | b'A'..=b'Z') => {
                let name = &self.rest()[..name_len(self.rest())];
                piece = Piece::Variable(name.to_owned());
                self.at += name.len();
            }
            Some(b'\'' | b'"') if extent == Extent::Splits => {
                self.only_extended("has a quote after a dollar")?;
                return self.dollar_quoted(word);
            }
            Some(b'[') => return Err(NotUnderstood("has arithmetic of an old kind")),
            Some(b'\\') if self.starts("\\\n") => {
                return Err(NotUnderstood("has a dollar at the end of a line"));
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
    fn arithmetic(&mut self) -> Result<(), NotUnderstood> {
        let inside = &self.rest()["((".len()..];
        let end = inside.find("))").ok_or(NotUnderstood("has arithmetic that does not end"))?;
        let is_plain = |byte: u8| byte.is_ascii_digit() || b" +-*/%".contains(&byte);
        if !inside[..end].bytes().all(is_plain) {
            self.only_extended("has arithmetic with more than numbers")?;
            return self.extended_arithmetic();
        }
        self.at += "((".len() + end + "))".len();
        Ok(())
    }

    /// Reads `{…}` after a dollar: a name, perhaps with a plain text to use instead or to cut off.
    fn parameter(&mut self) -> Result<Piece, NotUnderstood> {
        let odd = NotUnderstood("has an unusual parameter");
        if self.dialect == Dialect::Extended {
            return self.extended_parameter();
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
            Some(text) => Piece::Unknown(Some(text.to_owned())),
            None if after.is_empty() && name_len(inside) > 0 => Piece::Variable(inside.to_owned()),
            None => Piece::Unknown(None),
        })
    }

    /// Reads a command in backquotes. With quotes or backslashes in it, shells disagree.
    pub(super) fn backquoted(&mut self, word: &mut Word, extent: Extent) -> Result<(), NotUnderstood> {
        self.at += 1;
        let end = self.rest().find('`').ok_or(NotUnderstood("has a backquote that does not end"))?;
        let inside = &self.rest()[..end];
        if inside.contains(['\\', '"', '\n']) {
            self.only_extended("has quotes or backslashes inside backquotes")?;
        }
        if inside.contains('\\') {
            return Err(NotUnderstood("has quotes or backslashes inside backquotes"));
        }
        let mut reader = Reader::new(inside, self.depth + 1, self.dialect)?;
        reader.n_substitutions = 1;
        self.commands.append(&mut reader.all()?);
        self.at += end + 1;
        word.push_unknown(Piece::Unknown(None), extent);
        Ok(())
    }

    /// Steps over the texts of the here-documents that were announced on the line that ends here.
    pub(super) fn here_documents(&mut self) -> Result<(), NotUnderstood> {
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
            let end = end.ok_or(NotUnderstood("has a here-document that does not end"))?;
            self.here_text(&here, start..end)?;
        }
        Ok(())
    }

    fn here_text(&mut self, here: &HereDocument, range: std::ops::Range<usize>) -> Result<(), NotUnderstood> {
        let body = self.text.get(range).unwrap_or_default();
        if let Some(command) = self.commands.get_mut(here.command) {
            command.documents.push(body.to_owned());
        }
        // Older shells look for the end of a substitution in here as well.
        if self.n_substitutions > 0 && has_stray_parenthesis(body) {
            return Err(NotUnderstood("has an unusual here-document"));
        }
        if here.is_literal {
            return Ok(());
        }
        // An escaped line break could hide the end.
        if body.contains("\\\n") {
            return Err(NotUnderstood("has an escaped line break in a here-document"));
        }
        self.expansions(body)
    }

    /// Reads the commands in the expansions of a text.
    pub(super) fn expansions(&mut self, text: &str) -> Result<(), NotUnderstood> {
        let mut reader = Reader::new(text, self.depth + 1, self.dialect)?;
        reader.n_substitutions = 1;
        let mut word = Word::known("");
        while let Some(letter) = reader.rest().chars().next() {
            match letter {
                '$' => reader.dollar(&mut word, Extent::Begins)?,
                '`' => reader.backquoted(&mut word, Extent::Begins)?,
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
