//! The possible words of a line that was not parsed: enough to see which paths it names, not what it does.

use super::word::{KnownExtent, ShellWord, WordPiece};

/// A longer line is not examined; see [`rough_words`].
const LEN_MAX: usize = 256 * 1024;

/// Limit of letters in a bracket expression.
const BRACKET_MAX: usize = 256;

/// Splits a line into its possible words for any shell: at white space, operators, braces and `=`, without quotes and
/// backslashes. Returns `None` if the line is too long.
pub fn rough_words(line: &str) -> Option<Vec<ShellWord>> {
    if line.len() > LEN_MAX {
        return None;
    }
    let splits =
        |letter: char| letter.is_whitespace() || letter.is_control() || ";&|<>(){}=,".contains(letter);
    Some(line.split(splits).filter(|piece| !piece.is_empty()).map(rough_word).collect())
}

fn rough_word(text: &str) -> ShellWord {
    let mut word = ShellWord::from_text("");
    let mut letters = text.chars().peekable();
    let mut n_letters = 0usize;
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' | '\\' | '`' => {}
            // `$'…'` and `$"…"` are quotes as well.
            '$' if letters.peek().is_some_and(|next| matches!(next, '\'' | '"')) => {}
            '$' => {
                let mut name = String::new();
                while let Some(next) = letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_') {
                    name.push(next);
                }
                word.push_unknown(WordPiece::Variable(name), KnownExtent::Prefix);
            }
            '*' | '?' => word.push_unknown(WordPiece::Glob, KnownExtent::Prefix),
            '[' if letters.clone().take(BRACKET_MAX).any(|next| next == ']') => {
                letters.by_ref().find(|next| *next == ']');
                word.push_unknown(WordPiece::Glob, KnownExtent::Prefix);
            }
            '~' if n_letters == 0 => {
                word.push('~');
                word.extent = KnownExtent::Home;
            }
            letter => word.push(letter),
        }
        n_letters += 1;
    }
    word
}
