//! Redirections: files and here-documents of a command.

use super::command::{RedirectDirection, Redirection, ShellDialect, ShellParseError, SimpleCommand};
use super::lex::{HereDocument, LexedWord, ShellReader};
use super::word::{KnownExtent, ShellWord, WordPiece};

impl ShellReader<'_> {
    /// Reads a redirection if it comes next.
    pub(super) fn read_redirection(&mut self, simple: &mut SimpleCommand) -> Result<bool, ShellParseError> {
        if self.starts_with("&>") {
            return self.read_both_outputs(simple);
        }
        let rest = self.rest();
        let number = usize::from(rest.starts_with(|letter: char| letter.is_ascii_digit()));
        let is_input = number == 0 || rest.starts_with('0');
        if !rest[number..].starts_with(['<', '>']) {
            return Ok(false);
        }
        self.position += number;
        const OPERATORS: &[&str] = &["<<<", "<<-", "<<", "<>", "<&", "<(", ">>", ">|", ">&", ">(", "<", ">"];
        let rest = self.rest();
        let operator = OPERATORS.iter().copied().find(|operator| rest.starts_with(operator)).unwrap_or("<(");
        self.position += operator.len();
        if matches!(operator, "<(" | ">(") {
            let word = self.read_process_substitution()?;
            simple.words.push(word);
            return Ok(true);
        }
        self.skip_blanks()?;
        if matches!(operator, "<" | ">") && (self.starts_with("<(") || self.starts_with(">(")) {
            self.position += "<(".len();
            return self.read_process_substitution().map(|_| true);
        }
        if !self.is_at_word() {
            return Err(unusual_redirection());
        }
        let start = self.position;
        let LexedWord { word: target, is_quoted, has_braces, .. } = self.read_word()?;
        let targets = if has_braces { self.read_braced(start)? } else { vec![target.clone()] };
        let direction = match operator {
            _ if has_braces && operator != ">" => return Err(unusual_redirection()),
            "<<<" => {
                self.require_extended("has an unusual redirection")?;
                // A marker for the unknown part, so that the text does not look complete.
                let rest = if target.known_text().is_some() { "" } else { "$_" };
                simple.documents.push(format!("{}{rest}", target.text));
                return Ok(true);
            }
            // In another descriptor it is not the command's input.
            "<<" | "<<-" if !is_input => return Err(unusual_redirection()),
            "<<" | "<<-" => {
                return self.announce_here_document(target, is_quoted, operator == "<<-").map(|()| true);
            }
            "<" if !is_input => {
                self.require_extended("has an unusual redirection")?;
                RedirectDirection::In
            }
            "<&" | ">&" => {
                // A copied input could be any file.
                let is_output = operator == ">&" && !(number == 1 && is_input);
                match self.copy_direction(operator, &target, is_output)? {
                    Some(direction) => direction,
                    None => return Ok(true),
                }
            }
            "<" => RedirectDirection::In,
            _ => RedirectDirection::Out,
        };
        let redirections = targets.into_iter().map(|target| Redirection { operator, direction, target });
        simple.redirections.extend(redirections);
        Ok(true)
    }

    /// Returns the direction of a descriptor copy if it is a file instead.
    fn copy_direction(
        &self,
        operator: &str,
        target: &ShellWord,
        is_output: bool,
    ) -> Result<Option<RedirectDirection>, ShellParseError> {
        if target.known_text().is_some_and(|text| text == "-" || (is_output && is_digit(text))) {
            return Ok(None);
        }
        self.require_extended("has an unusual redirection")?;
        let is_descriptor = target.known_text().is_some_and(|text| is_digit(text.trim_end_matches('-')));
        let direction = if operator == "<&" { RedirectDirection::In } else { RedirectDirection::Out };
        Ok((!is_descriptor).then_some(direction))
    }

    /// Reads `&> FILE`. Some shells take it for `&` and `> FILE`, which is the same if nothing follows.
    fn read_both_outputs(&mut self, simple: &mut SimpleCommand) -> Result<bool, ShellParseError> {
        let operator = if self.starts_with("&>>") { "&>>" } else { "&>" };
        self.position += operator.len();
        self.skip_blanks()?;
        if !self.is_at_word() {
            return Err(ShellParseError("has an unusual redirection"));
        }
        let LexedWord { word: target, has_braces, .. } = self.read_word()?;
        self.skip_blanks()?;
        if self.is_at_word()
            || has_braces
            || simple.words.is_empty()
            || self.starts_with("<")
            || self.starts_with(">")
        {
            return Err(ShellParseError("has &> in an odd place"));
        }
        simple.redirections.push(Redirection { operator, direction: RedirectDirection::Out, target });
        Ok(true)
    }

    /// Reads the commands of `<(…)` or `>(…)`, which is a file to the program.
    fn read_process_substitution(&mut self) -> Result<ShellWord, ShellParseError> {
        self.require_extended("has an unusual redirection")?;
        self.n_substitutions += 1;
        self.read_deeper(Self::read_substitution)?;
        self.n_substitutions -= 1;
        let mut word = ShellWord::from_text("/dev/fd/");
        word.push_unknown(WordPiece::Unknown(None), KnownExtent::Prefix);
        Ok(word)
    }

    fn announce_here_document(
        &mut self,
        delimiter: ShellWord,
        is_literal: bool,
        strips_tabs: bool,
    ) -> Result<(), ShellParseError> {
        let is_plain = delimiter.known_text().is_some_and(|text| !text.is_empty() && !text.contains('\n'));
        if !is_plain || (self.n_substitutions > 0 && self.dialect == ShellDialect::Common) {
            return Err(ShellParseError("has an unusual here-document"));
        }
        let command = self.commands.len();
        self.here_documents.push(HereDocument {
            command_index: command,
            delimiter: delimiter.text,
            is_literal,
            strips_tabs,
        });
        Ok(())
    }
}

fn unusual_redirection() -> ShellParseError {
    ShellParseError("has an unusual redirection")
}

fn is_digit(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9'])
}
