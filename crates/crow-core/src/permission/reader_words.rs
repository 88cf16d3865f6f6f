//! Separates the options of a reader from its operands.

use super::readers::{ReaderOperands, ReaderProgram};
use crate::shell::{KnownExtent, ShellWord, WordPiece};

/// The parsed words of a command.
pub(super) struct ParsedWords<'a> {
    pub(super) operands: Vec<&'a ShellWord>,
    /// Whether an option contained the pattern.
    pub(super) has_pattern: bool,
    /// The values of options that select files by name.
    pub(super) filters: Vec<ShellWord>,
}

/// Options that select files by name.
const FILTER_OPTIONS: [&str; 3] = ["--include", "--glob", "--iglob"];

/// Separates options from operands; `None` if an option is not in the table.
pub(super) fn parse_words<'a>(reader: &ReaderProgram, words: &'a [ShellWord]) -> Option<ParsedWords<'a>> {
    let mut parsed = ParsedWords { operands: Vec::new(), has_pattern: false, filters: Vec::new() };
    let long: Vec<&str> = reader.long.split_whitespace().collect();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if !text.starts_with('-') || text == "-" {
            parsed.operands.push(word);
            continue;
        }
        if text == "--" && word.known_text().is_some() {
            parsed.operands.extend(words);
            break;
        }
        // A glob after `=` matches names that begin with the same option, if anything.
        let is_joined = text.starts_with("--") && text.contains('=') && word.extent != KnownExtent::Unknown;
        if !is_one_word(word) && !is_joined {
            return None;
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let valued = format!("{name}=");
        let is_long = text.starts_with("--") || long.contains(&text);
        if is_long {
            match value {
                None if word.known_text().is_some() && long.contains(&name) => {}
                None if word.known_text().is_some() && long.contains(&valued.as_str()) => {
                    let value = words.next().filter(|word| is_one_word(word))?;
                    parsed.filters.extend(FILTER_OPTIONS.contains(&name).then(|| value.clone()));
                }
                Some(_) if long.contains(&valued.as_str()) => {
                    let value = || word.without_prefix(valued.len());
                    parsed.filters.extend(FILTER_OPTIONS.contains(&name).then(value));
                }
                _ => return None,
            }
            parsed.has_pattern |= ["--regexp", "--expression", "--files", "--type-list"].contains(&name);
            continue;
        }
        word.known_text()?;
        for (at, letter) in text[1..].char_indices() {
            let is_number = letter.is_ascii_digit() && reader.flags.contains('#');
            if reader.valued.contains(letter) {
                parsed.has_pattern |= letter == 'e' && reader.operands == ReaderOperands::PatternThenFiles;
                let joined = &text[1 + at + letter.len_utf8()..];
                let value = match joined {
                    "" => words.next().filter(|word| is_one_word(word))?.clone(),
                    joined => ShellWord::from_text(joined),
                };
                parsed.filters.extend((letter == 'g' && reader.names == "rg").then_some(value));
                break;
            }
            if letter == '#' || !(is_number || reader.flags.contains(letter)) {
                return None;
            }
        }
    }
    Some(parsed)
}

/// Whether a word stays one word after expansion.
pub(super) fn is_one_word(word: &ShellWord) -> bool {
    word.extent != KnownExtent::Unknown && !word.pieces.contains(&WordPiece::Glob)
}
