//! A shell command line as the simple commands in it, for whoever judges them.
//!
//! `/bin/sh` is another program on every system, so only what each of them reads the same way is understood;
//! the rest is *not understood*, with a reason. Knows no rule and no program but those that run another.

mod expand;
mod extended;
mod lex;
mod parse;
mod redirect;
mod rough;
mod word;
mod wrap;

use std::fmt::Write as _;

pub use self::rough::rough_words;
pub use self::word::{KnownExtent, ShellWord, WordPiece};
pub use self::wrap::{InnerCommands, WrapperEffect};

/// Why a line was not understood; a sentence without its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShellParseError(pub &'static str);

/// Which shells a line is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellDialect {
    /// All: what they read differently is not understood.
    Common,
    /// Those with `[[`, arrays, functions and so on.
    Extended,
}

/// A variable that is set, for one command or from there on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: ShellWord,
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectDirection {
    /// The file is read.
    In,
    /// The file is written, or may be.
    Out,
}

/// A redirection from or to a file. Copies of descriptors and here-documents touch none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// As written, such as `>>`.
    pub operator: &'static str,
    /// Which way it goes.
    pub direction: RedirectDirection,
    /// The file.
    pub target: ShellWord,
}

/// A simple command: one program with its words, or just assignments or redirections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// Variables set in front of it.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments.
    pub words: Vec<ShellWord>,
    /// Files its input and output are.
    pub redirections: Vec<Redirection>,
    /// Texts that are its input, as they are written.
    pub documents: Vec<String>,
    /// What it runs itself.
    pub inner: Option<InnerCommands>,
}

impl SimpleCommand {
    /// Spells the command so that equal commands are equal texts; `None` when something in it is unknown.
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

    /// Visits the command and all that it runs.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.inner.iter().flat_map(|inner| &inner.commands).for_each(|inner| inner.walk(visit));
    }
}

/// Reads a command line into its simple commands, in the order they are written: those of lists, pipelines,
/// groups, branches, loops and substitutions alike.
pub fn parse_line(line: &str) -> Result<Vec<SimpleCommand>, ShellParseError> {
    parse::parse_commands(line, 0, ShellDialect::Common)
}

/// Reads a line that [`parse_line`] does not understand as the shells with more in them do. Good to find what a line may do,
/// never to conclude that it does no more: another shell may read it otherwise.
pub fn parse_extended(line: &str) -> Result<Vec<SimpleCommand>, ShellParseError> {
    parse::parse_commands(line, 0, ShellDialect::Extended)
}

/// Reads a text that is the beginning of one simple command, without looking into what it would run.
pub fn parse_words(text: &str) -> Result<Vec<ShellWord>, ShellParseError> {
    parse::parse_words(text)
}

/// Spells a word so that a shell reads it back.
pub fn quote_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
