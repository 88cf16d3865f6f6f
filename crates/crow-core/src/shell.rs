//! Parses a shell command line into its simple commands, for evaluation.
//!
//! `/bin/sh` is a different program on every system, so only the syntax that all of them parse alike is accepted;
//! other lines are errors with a reason. Knows no rules, and no programs except wrappers.

mod expand;
mod extended;
mod lex;
mod parse;
mod redirect;
mod rough_words;
mod word;
mod wrappers;

use std::fmt::Write as _;

pub use self::rough_words::rough_words;
pub use self::word::{KnownExtent, ShellWord, WordPiece};
pub use self::wrappers::{InnerCommands, WrapperEffect};

/// The reason why a line was not parsed; a sentence without its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShellParseError(pub &'static str);

/// The shells that a line is parsed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellDialect {
    /// All: syntax that they parse differently is an error.
    Common,
    /// Those with `[[`, arrays and functions.
    Extended,
}

/// A variable that is set, for one command or for the rest of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: ShellWord,
}

/// The direction of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectDirection {
    /// The file is read.
    In,
    /// The file is written, or may be.
    Out,
}

/// A redirection from or to a file. Descriptor copies and here-documents are not included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The operator, such as `>>`.
    pub operator: &'static str,
    /// The direction.
    pub direction: RedirectDirection,
    /// The file.
    pub target: ShellWord,
}

/// A simple command: a program with its words, or only assignments or redirections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// Variables set before it.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments.
    pub words: Vec<ShellWord>,
    /// The redirections.
    pub redirections: Vec<Redirection>,
    /// The here-documents, as written.
    pub documents: Vec<String>,
    /// The commands it runs itself.
    pub inner: Option<InnerCommands>,
}

impl SimpleCommand {
    /// Returns a canonical text of the command; `None` if a part is unknown.
    pub fn canonical_text(&self) -> Option<String> {
        let mut text = String::new();
        for Assignment { name, value } in &self.assignments {
            // Writing to a string cannot fail.
            let _ = write!(text, "{name}={} ", quote_word(value.known_text()?));
        }
        for word in &self.words {
            let _ = write!(text, "{} ", quote_word(word.known_text()?));
        }
        for Redirection { operator, target, .. } in &self.redirections {
            let _ = write!(text, "{operator} {} ", quote_word(target.known_text()?));
        }
        for document in &self.documents {
            let _ = write!(text, "<< {} ", quote_word(document));
        }
        Some(text.trim_end().to_owned())
    }

    /// Visits the command and all commands that it runs.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.inner.iter().flat_map(|inner| &inner.commands).for_each(|inner| inner.walk(visit));
    }
}

/// Parses a command line into its simple commands, in source order, including those in lists, pipelines, groups,
/// branches, loops and substitutions.
pub fn parse_line(line: &str) -> Result<Vec<SimpleCommand>, ShellParseError> {
    parse::parse_commands(line, 0, ShellDialect::Common)
}

/// Parses a line that [`parse_line`] rejects, with the syntax of extended shells. Suitable to find what a line may
/// do, never to conclude that it does no more: another shell may parse it differently.
pub fn parse_extended(line: &str) -> Result<Vec<SimpleCommand>, ShellParseError> {
    parse::parse_commands(line, 0, ShellDialect::Extended)
}

/// Parses a text that is the start of one simple command, without its inner commands.
pub fn parse_words(text: &str) -> Result<Vec<ShellWord>, ShellParseError> {
    parse::parse_words(text)
}

/// Quotes a word for a shell.
pub fn quote_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
