//! Conditions of `test` and `[`: those that read nothing protected and run nothing.

use super::command_evaluation::CommandEvaluation;
use crate::shell::{KnownExtent, ShellWord, WordPiece};

/// Operators on files, before and between their operands.
const FILE_OPERATORS: &[&str] =
    &["-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-nt", "-ot", "-ef", "-p", "-S", "-b", "-c"];

/// Operators on variables, of which some shells run a text in brackets after the name.
const VARIABLE_OPERATORS: [&str; 2] = ["-v", "-R"];

impl CommandEvaluation<'_> {
    /// Whether a condition of `test` reads nothing protected and runs nothing.
    pub(super) fn is_free_test(&self, words: &[ShellWord]) -> bool {
        let is_file = |word: &ShellWord| FILE_OPERATORS.contains(&word.text.as_str());
        words.iter().enumerate().all(|(at, word)| {
            let before = at.checked_sub(1).map(|at| &words[at]);
            let next = words.get(at + 1);
            let is_operand = before.is_some_and(is_file)
                || next.is_some_and(|next| ["-nt", "-ot", "-ef"].contains(&next.text.as_str()));
            let is_free = if is_operand { self.is_free_file(word, false) } else { self.is_free_text(word) };
            is_free && !self.may_test_variable(word, next)
        })
    }

    /// Whether a word may test a variable whose name is not known, or that several words may.
    fn may_test_variable(&self, word: &ShellWord, next: Option<&ShellWord>) -> bool {
        if word.extent == KnownExtent::Unknown {
            // It may become several words, with an operator among them.
            return self.variables.word_readings(word).iter().any(|reading| {
                let names_operator = VARIABLE_OPERATORS.iter().any(|name| reading.text.contains(name));
                !reading.pieces.is_empty() || names_operator
            });
        }
        let is_operator =
            |word: &ShellWord| word.known_text().is_some_and(|name| VARIABLE_OPERATORS.contains(&name));
        if self.variables.word_readings(word).iter().any(is_operator) {
            return true;
        }
        let may_subscribe = |next: &ShellWord| next.known_text().is_none_or(|name| name.contains('['));
        word.known_text().is_none()
            && may_be_operator(word)
            && (word.pieces.contains(&WordPiece::Glob) || next.is_some_and(may_subscribe))
    }
}

/// Whether a partly known word may be an operator on variables.
fn may_be_operator(word: &ShellWord) -> bool {
    let known = word.pieces.iter().filter_map(|piece| match piece {
        WordPiece::Known(text) => Some(text.as_str()),
        WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_) => None,
    });
    let letters: String = std::iter::once(word.text.as_str()).chain(known).collect();
    VARIABLE_OPERATORS.iter().any(|name| name.starts_with(&letters) || name.ends_with(&letters))
}
