//! The simple commands of a line, as values. Knows no syntax.

use std::fmt::Write as _;

use super::word::ShellWord;

/// The reason why a line was not parsed; a sentence without its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShellParseError(pub &'static str);

/// The shells that a line is parsed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellDialect {
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

/// The commands that a command runs itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerCommands {
    /// The commands.
    pub commands: Vec<SimpleCommand>,
    /// The index of the first inner word among the outer words.
    pub first_word: usize,
    /// The additional effect of the wrapper.
    pub effect: WrapperEffect,
}

/// The effect of a wrapper on its inner commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperEffect {
    /// None: permission for the inner commands is enough.
    Transparent,
    /// More rights, or other actions of its own.
    Opaque,
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

/// Quotes a word for a shell.
pub fn quote_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
