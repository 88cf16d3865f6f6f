//! Short names: the words in a feature's directory name. Pure; accesses no directories and knows no numbers.

use regex::Regex;

/// The longest branch name that repository hosts accept; a longer directory name could not become a branch.
pub(crate) const NAME_BYTES_MAX: usize = 244;

/// Words that are dropped. The list is part of the format: other programs drop the same words.
const STOP_WORDS: [&str; 48] = [
    "i", "a", "an", "the", "to", "for", "of", "in", "on", "at", "by", "with", "from", "is", "are", "was",
    "were", "be", "been", "being", "have", "has", "had", "do", "does", "did", "will", "would", "should",
    "could", "can", "may", "might", "must", "shall", "this", "that", "these", "those", "my", "your", "our",
    "their", "want", "need", "add", "get", "set",
];

/// The number of words in a name; four only if the description has exactly four.
const WORDS_MAX: usize = 3;

/// Derives a short name from a description; empty if it has neither letters nor digits.
pub(crate) fn slug_from_description(description: &str) -> String {
    let lowercase = description.to_ascii_lowercase();
    join_significant_words(&split_words(&lowercase), description)
}

/// Joins the most significant words of a description, given in lower case.
pub(crate) fn join_significant_words(words: &[&str], description: &str) -> String {
    let significant: Vec<&str> =
        words.iter().copied().filter(|word| is_significant(word, description)).collect();
    let selected = match significant.len() {
        0 => words.get(..WORDS_MAX).unwrap_or(words),
        4 => &significant,
        _ => significant.get(..WORDS_MAX).unwrap_or(&significant),
    };
    selected.join("-")
}

/// Normalizes a short name given by a user; empty if it has neither letters nor digits.
pub fn clean_short_name(short_name: &str) -> String {
    split_words(&short_name.to_ascii_lowercase()).join("-")
}

/// Joins the prefix and as much of the short name as fits.
pub(crate) fn fit_dir_name(prefix: &str, slug: &str) -> String {
    let n_bytes_left = NAME_BYTES_MAX.saturating_sub(prefix.len() + 1);
    let short_slug = &slug[..slug.floor_char_boundary(n_bytes_left)];
    let short_slug =
        if short_slug.len() < slug.len() { short_slug.trim_end_matches('-') } else { short_slug };
    format!("{prefix}-{short_slug}")
}

/// Splits at characters that are neither letters nor decimal digits, in any script.
fn split_words(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = match Regex::new(r"[^\p{L}\d]+") {
        Ok(separators) => separators.split(text).collect(),
        // Slightly different from the rule; the expression fails to compile only without Unicode tables.
        Err(_) => text.split(|c: char| !c.is_alphanumeric()).collect(),
    };
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

fn is_significant(word: &str, description: &str) -> bool {
    if STOP_WORDS.contains(&word) {
        return false;
    }
    word.len() >= 3 || !word.is_ascii() || is_standalone_word(&word.to_ascii_uppercase(), description)
}

/// Whether a word occurs without an ASCII letter, digit or underscore next to it.
fn is_standalone_word(word: &str, text: &str) -> bool {
    let is_word_byte =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    bytes.windows(word.len()).enumerate().any(|(offset, window)| {
        let before = offset.checked_sub(1).and_then(|before| bytes.get(before));
        window == word.as_bytes() && !is_word_byte(before) && !is_word_byte(bytes.get(offset + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_slug(description: &str, expected: &str) {
        assert_eq!(slug_from_description(description), expected);
    }

    #[test]
    fn slug_has_three_significant_words_or_exactly_four() {
        assert_slug("Build an application that can help me organize my photos", "build-application-help");
        assert_slug("one two three four", "one-two-three-four");
        assert_slug("one two three four five", "one-two-three");
    }

    #[test]
    fn short_words_stay_when_they_are_written_in_capitals() {
        assert_slug("I want to add API for the DB", "api-db");
        assert_slug("go to db", "go-to-db");
        assert_slug("ab DB_x 42 x_43", "42");
        assert_slug("ab DBs and DB", "dbs-and-db");
    }

    #[test]
    fn stop_words_alone_are_used_unchanged() {
        assert_slug("to do it", "to-do-it");
        assert_slug("a b c d", "a-b-c");
        assert_slug("!?", "");
    }

    #[test]
    fn letters_and_digits_of_every_script_are_used_and_only_ascii_is_lowercased() {
        assert_slug("Ünïcode Größe 写真 アルバム", "Ünïcode-größe-写真-アルバム");
        // A circled letter, a Roman numeral and a superscript are neither; an Arabic digit is a digit.
        assert_slug("lamp\u{24b6}post \u{2163}chapter x\u{b2}yy \u{663}", "lamp-post-chapter-\u{663}");
    }

    #[test]
    fn chosen_name_is_only_normalized() {
        assert_eq!(clean_short_name("X_y  z!"), "x-y-z");
        assert_eq!(clean_short_name("--the--API--"), "the-api");
        assert_eq!(clean_short_name("¿?"), "");
    }

    #[test]
    fn long_name_is_truncated_between_characters() {
        assert_eq!(fit_dir_name("001", "a-b"), "001-a-b");
        let name = fit_dir_name("001", &"写".repeat(100));
        assert_eq!((name.len(), name.chars().count()), (4 + 240, 4 + 80));
        let name = fit_dir_name("1000", &format!("{}-tail", "a".repeat(238)));
        assert_eq!(name, format!("1000-{}", "a".repeat(238)));
    }
}
