//! What a person types into a search, as the index wants it, and what is shown of a message found.

/// A person types a few words; a pasted page would make the index work for nothing.
const WORDS_MAX: usize = 32;
/// Enough to recognise the place, on one line of a terminal.
const BEFORE_CHARS: usize = 40;
const AFTER_CHARS: usize = 120;

/// Splits what was typed into words worth looking for.
pub(crate) fn search_words(typed: &str) -> Vec<&str> {
    let words = typed.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| word.contains(char::is_alphanumeric)).take(WORDS_MAX).collect()
}

/// Quotes a word, so that it is not read as an operator.
pub(crate) fn quote_word(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

/// Cuts out the text around the first of the words that occurs as it was typed.
pub(crate) fn extract_snippet(text: &str, words: &[&str]) -> String {
    let place = words.iter().filter_map(|word| find_word(text, word)).min().unwrap_or(0);
    let (before, after) = text.split_at(place);
    let start = before.char_indices().rev().nth(BEFORE_CHARS).map_or(0, |(at, c)| at + c.len_utf8());
    let end = after.char_indices().nth(AFTER_CHARS).map_or(text.len(), |(at, _)| place + at);
    let line = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let (cut_left, cut_right) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{cut_left}{line}{cut_right}")
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let starts_here = |rest: &str| {
        let mut rest = rest.chars().flat_map(char::to_lowercase);
        word.chars().flat_map(char::to_lowercase).all(|c| rest.next() == Some(c))
    };
    text.char_indices().map(|(at, _)| at).find(|&at| starts_here(&text[at..]))
}

#[cfg(test)]
mod tests {
    use super::{extract_snippet, quote_word, search_words};

    #[test]
    fn operators_are_only_words() {
        for (typed, wanted) in [
            ("parse error", r#""parse" "error""#),
            ("a OR b* NEAR(c)", r#""a" "OR" "b*" "NEAR(c)""#),
            (r#"say "hi" -x ^y text:z"#, r#""say" """hi""" "-x" "^y" "text:z""#),
            ("-- \0 ''", ""),
        ] {
            let quoted: Vec<String> = search_words(typed).into_iter().map(quote_word).collect();
            assert_eq!(quoted.join(" "), wanted);
        }
    }

    #[test]
    fn a_snippet_shows_the_word_in_its_surroundings() {
        let text = format!("{}\n\nHere is the Öl spill {}", "wide ".repeat(40), "after ".repeat(40));
        let shown = extract_snippet(&text, &["öl"]);
        assert!(
            shown.starts_with('…') && shown.ends_with('…') && shown.contains("Here is the Öl spill after"),
            "{shown}"
        );
        assert_eq!(extract_snippet("short", &["absent"]), "short");
    }
}
