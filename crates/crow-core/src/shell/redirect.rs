//! Redirections: files and here-documents around a command.

use super::lex::{HereDocument, Lexed, Reader};
use super::{Direction, NotUnderstood, Redirection, Simple, Word};

impl Reader<'_> {
    /// Reads a redirection if it comes next.
    pub(super) fn redirection(&mut self, simple: &mut Simple) -> Result<bool, NotUnderstood> {
        let rest = self.rest();
        let number = usize::from(rest.starts_with(|letter: char| letter.is_ascii_digit()));
        let is_input = number == 0 || rest.starts_with('0');
        if !rest[number..].starts_with(['<', '>']) {
            return Ok(false);
        }
        self.at += number;
        const OPERATORS: &[&str] = &["<<<", "<<-", "<<", "<>", "<&", "<(", ">>", ">|", ">&", ">(", "<", ">"];
        let rest = self.rest();
        let operator = OPERATORS.iter().copied().find(|operator| rest.starts_with(operator)).unwrap_or("<(");
        self.at += operator.len();
        self.skip_blanks()?;
        if matches!(operator, "<<<" | "<(" | ">(") || !self.at_word() {
            return Err(NotUnderstood("has an unusual redirection"));
        }
        let Lexed { word: target, is_quoted, .. } = self.word()?;
        let direction = match operator {
            // Into another descriptor it is not what the command reads.
            "<<" | "<<-" | "<" if !is_input => return Err(NotUnderstood("has an unusual redirection")),
            "<<" | "<<-" => {
                return self.announce(target, is_quoted, operator == "<<-").map(|()| true);
            }
            "<&" | ">&" => {
                // A copied input could be any.
                let is_output = operator == ">&" && !(number == 1 && is_input);
                let is_copy = target.whole().is_some_and(|text| text == "-" || (is_output && is_digit(text)));
                return if is_copy { Ok(true) } else { Err(NotUnderstood("has an unusual redirection")) };
            }
            "<" => Direction::In,
            _ => Direction::Out,
        };
        simple.redirections.push(Redirection { operator, direction, target });
        Ok(true)
    }

    fn announce(
        &mut self,
        delimiter: Word,
        is_literal: bool,
        strips_tabs: bool,
    ) -> Result<(), NotUnderstood> {
        let is_plain = delimiter.whole().is_some_and(|text| !text.is_empty() && !text.contains('\n'));
        if !is_plain || self.n_substitutions > 0 {
            return Err(NotUnderstood("has an unusual here-document"));
        }
        let command = self.commands.len();
        self.here.push(HereDocument { command, delimiter: delimiter.text, is_literal, strips_tabs });
        Ok(())
    }
}

fn is_digit(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9'])
}
