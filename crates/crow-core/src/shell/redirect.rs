//! Redirections: files and here-documents around a command.

use super::lex::{HereDocument, Lexed, Reader};
use super::{Dialect, Direction, Extent, NotUnderstood, Piece, Redirection, Simple, Word};

impl Reader<'_> {
    /// Reads a redirection if it comes next.
    pub(super) fn redirection(&mut self, simple: &mut Simple) -> Result<bool, NotUnderstood> {
        if self.starts("&>") {
            return self.both_outputs(simple);
        }
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
        if matches!(operator, "<(" | ">(") {
            let word = self.process()?;
            simple.words.push(word);
            return Ok(true);
        }
        self.skip_blanks()?;
        if matches!(operator, "<" | ">") && (self.starts("<(") || self.starts(">(")) {
            self.at += "<(".len();
            return self.process().map(|_| true);
        }
        if !self.at_word() {
            return Err(odd());
        }
        let start = self.at;
        let Lexed { word: target, is_quoted, has_braces, .. } = self.word()?;
        let targets = if has_braces { self.braced(start)? } else { vec![target.clone()] };
        let direction = match operator {
            _ if has_braces && operator != ">" => return Err(odd()),
            "<<<" => {
                self.only_extended("has an unusual redirection")?;
                // Of what is not known something stays, so that it is not taken for all.
                let rest = if target.whole().is_some() { "" } else { "$_" };
                simple.documents.push(format!("{}{rest}", target.text));
                return Ok(true);
            }
            // Into another descriptor it is not what the command reads.
            "<<" | "<<-" if !is_input => return Err(odd()),
            "<<" | "<<-" => {
                return self.announce(target, is_quoted, operator == "<<-").map(|()| true);
            }
            "<" if !is_input => {
                self.only_extended("has an unusual redirection")?;
                Direction::In
            }
            "<&" | ">&" => {
                // A copied input could be any.
                let is_output = operator == ">&" && !(number == 1 && is_input);
                match self.copied(operator, &target, is_output)? {
                    Some(direction) => direction,
                    None => return Ok(true),
                }
            }
            "<" => Direction::In,
            _ => Direction::Out,
        };
        let redirections = targets.into_iter().map(|target| Redirection { operator, direction, target });
        simple.redirections.extend(redirections);
        Ok(true)
    }

    /// Returns which way a copy of a descriptor goes if it is a file instead.
    fn copied(
        &self,
        operator: &str,
        target: &Word,
        is_output: bool,
    ) -> Result<Option<Direction>, NotUnderstood> {
        if target.whole().is_some_and(|text| text == "-" || (is_output && is_digit(text))) {
            return Ok(None);
        }
        self.only_extended("has an unusual redirection")?;
        let is_descriptor = target.whole().is_some_and(|text| is_digit(text.trim_end_matches('-')));
        let direction = if operator == "<&" { Direction::In } else { Direction::Out };
        Ok((!is_descriptor).then_some(direction))
    }

    /// Reads `&> FILE`. Some shells take it for `&` and `> FILE`, which is the same if nothing follows.
    fn both_outputs(&mut self, simple: &mut Simple) -> Result<bool, NotUnderstood> {
        let operator = if self.starts("&>>") { "&>>" } else { "&>" };
        self.at += operator.len();
        self.skip_blanks()?;
        if !self.at_word() {
            return Err(NotUnderstood("has an unusual redirection"));
        }
        let Lexed { word: target, has_braces, .. } = self.word()?;
        self.skip_blanks()?;
        if self.at_word() || has_braces || simple.words.is_empty() || self.starts("<") || self.starts(">") {
            return Err(NotUnderstood("has &> in an odd place"));
        }
        simple.redirections.push(Redirection { operator, direction: Direction::Out, target });
        Ok(true)
    }

    /// Reads the commands of `<(…)` or `>(…)`, which is a file to the program.
    fn process(&mut self) -> Result<Word, NotUnderstood> {
        self.only_extended("has an unusual redirection")?;
        self.n_substitutions += 1;
        self.deeper(Self::substitution)?;
        self.n_substitutions -= 1;
        let mut word = Word::known("/dev/fd/");
        word.push_unknown(Piece::Unknown(None), Extent::Begins);
        Ok(word)
    }

    fn announce(
        &mut self,
        delimiter: Word,
        is_literal: bool,
        strips_tabs: bool,
    ) -> Result<(), NotUnderstood> {
        let is_plain = delimiter.whole().is_some_and(|text| !text.is_empty() && !text.contains('\n'));
        if !is_plain || (self.n_substitutions > 0 && self.dialect == Dialect::Common) {
            return Err(NotUnderstood("has an unusual here-document"));
        }
        let command = self.commands.len();
        self.here.push(HereDocument { command, delimiter: delimiter.text, is_literal, strips_tabs });
        Ok(())
    }
}

fn odd() -> NotUnderstood {
    NotUnderstood("has an unusual redirection")
}

fn is_digit(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9'])
}
