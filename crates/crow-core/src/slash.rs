//! What a leading slash means. Knows the spelling of a command and must never know which commands exist:
//! an unknown name is a prompt, and that is the caller's to say.

mod fill;

pub use fill::{fill_all_arguments, fill_arguments};

/// A text that is spelled like a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlashCommand<'a> {
    /// The word after the slash; a colon in it stands between whose command it is and which.
    pub name: &'a str,
    /// Everything after the whitespace that follows the name, byte for byte.
    pub arguments: &'a str,
}

/// Reads a command; `None` when the text merely starts with a slash, or does not start with one.
pub fn parse_command(text: &str) -> Option<SlashCommand<'_>> {
    let text = text.strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    is_command_name(name).then(|| SlashCommand { name, arguments: rest.trim_start() })
}

/// Tells whether a command can be called so.
pub fn is_command_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && !word.ends_with(':')
        && word.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-' | ':'))
}

#[cfg(test)]
mod tests;
