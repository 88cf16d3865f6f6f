//! Search queries as the index needs them, and the snippet of a message found.

use std::borrow::Cow;

/// Users type a few words; a pasted page would only cost time.
const WORDS_MAX: usize = 32;
/// A pasted page without spaces would be one word, and a phrase beyond what PostgreSQL can parse.
const PHRASE_WORDS_MAX: usize = 128;
/// Enough to recognize the place, on one line of a terminal.
const BEFORE_CHARS: usize = 40;
const AFTER_CHARS: usize = 120;

/// Splits a query into words.
pub(crate) fn search_words(query: &str) -> Vec<&str> {
    let words = query.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| word.contains(char::is_alphanumeric)).take(WORDS_MAX).collect()
}

/// Quotes a word, so that it is not parsed as an operator. Of what is indexed as several words, it is a phrase.
pub(crate) fn quote_phrase(word: &str) -> String {
    let separated = separate_cjk(word);
    let words: Vec<&str> = separated.split_whitespace().take(PHRASE_WORDS_MAX).collect();
    format!("\"{}\"", words.join(" ").replace('"', "\"\""))
}

/// Puts spaces around the characters of scripts that are written without them, so that each is a word of the index.
pub(crate) fn separate_cjk(text: &str) -> Cow<'_, str> {
    if !text.contains(is_cjk) {
        return Cow::Borrowed(text);
    }
    let mut separated = String::with_capacity(2 * text.len());
    for c in text.chars() {
        match is_cjk(c) {
            true => separated.extend([' ', c, ' ']),
            false => separated.push(c),
        }
    }
    Cow::Owned(separated)
}

/// Whether a character is Han, Kana, Bopomofo or a syllable of Hangul.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{1aff0}'..='\u{1b16f}'
        | '\u{20000}'..='\u{3fffd}')
}

/// Returns the text around the first of the words that occurs literally.
pub(crate) fn extract_snippet(text: &str, words: &[&str]) -> String {
    let offset = words.iter().filter_map(|word| find_word(text, word)).min().unwrap_or(0);
    let (before, after) = text.split_at(offset);
    let start = before.char_indices().rev().nth(BEFORE_CHARS).map_or(0, |(at, c)| at + c.len_utf8());
    let end = after.char_indices().nth(AFTER_CHARS).map_or(text.len(), |(at, _)| offset + at);
    let line = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let (cut_left, cut_right) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{cut_left}{line}{cut_right}")
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_match = |rest: &str| {
        let mut rest = rest.chars().flat_map(char::to_lowercase);
        word.chars().flat_map(char::to_lowercase).all(|c| rest.next() == Some(c))
    };
    text.char_indices().map(|(at, _)| at).find(|&at| is_match(&text[at..]))
}

#[cfg(test)]
mod tests {
    use super::{extract_snippet, quote_phrase, search_words};

    #[test]
    fn search_operators_are_only_words() {
        for (typed, wanted) in [
            ("parse error", r#""parse" "error""#),
            ("a OR b* NEAR(c)", r#""a" "OR" "b*" "NEAR(c)""#),
            (r#"say "hi" -x ^y text:z"#, r#""say" """hi""" "-x" "^y" "text:z""#),
            ("-- \0 ''", ""),
            ("SQLite数据库 カラス", r#""SQLite 数 据 库" "カ ラ ス""#),
        ] {
            let quoted: Vec<String> = search_words(typed).into_iter().map(quote_phrase).collect();
            assert_eq!(quoted.join(" "), wanted);
        }
    }

    #[test]
    fn snippet_shows_the_word_in_context() {
        let text = format!("{}\n\nHere is the Öl spill {}", "wide ".repeat(40), "after ".repeat(40));
        let shown = extract_snippet(&text, &["öl"]);
        assert!(
            shown.starts_with('…') && shown.ends_with('…') && shown.contains("Here is the Öl spill after"),
            "{shown}"
        );
        assert_eq!(extract_snippet("short", &["absent"]), "short");
    }
}
