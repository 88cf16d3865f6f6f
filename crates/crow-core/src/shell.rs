//! Parses a shell command line into its simple commands, for evaluation.
//!
//! `/bin/sh` is a different program on every system, so only the syntax that all of them parse alike is accepted;
//! other lines are errors with a reason. Knows no rules, and no programs except wrappers.

mod command;
mod expand;
mod extended;
mod lex;
mod parse;
mod redirect;
mod rough_words;
mod word;
mod wrappers;

use self::command::ShellDialect;
pub use self::command::{
    Assignment, InnerCommands, RedirectDirection, Redirection, ShellParseError, SimpleCommand, WrapperEffect,
    quote_word,
};
pub use self::rough_words::rough_words;
pub use self::word::{KnownExtent, ShellWord, WordPiece};

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

#[cfg(test)]
mod tests;
