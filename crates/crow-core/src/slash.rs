//! Slash commands. Parses their syntax and knows no commands: the caller treats an unknown name as a prompt.

mod placeholders;

pub use placeholders::{fill_all_arguments, fill_arguments};

/// A text with the syntax of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlashCommand<'a> {
    /// The word after the slash; a colon separates a namespace from the name.
    pub name: &'a str,
    /// The text after the white space that follows the name, unchanged.
    pub arguments: &'a str,
}

/// Parses a command; `None` for a text without a slash and a name at its start.
pub fn parse_command(text: &str) -> Option<SlashCommand<'_>> {
    let text = text.strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    is_command_name(name).then(|| SlashCommand { name, arguments: rest.trim_start() })
}

/// Whether a word is a valid command name.
pub fn is_command_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && !word.ends_with(':')
        && word.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-' | ':'))
}

#[cfg(test)]
mod tests;
