//! Names of tasks, which are made of words and are different each time.

/// Words of such a name, at least; nothing else that is logged has as many.
const WORDS_MIN: usize = 4;

/// Stands for a name.
const SHOWN: &str = "$TASK";

/// Puts one word in the place of all names.
pub fn hidden(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut left = text;
    while let Some(name) = left.split(|c| !is_of_name(c)).find(|word| is_name(word)) {
        let (before, after) = left.split_once(name).unwrap_or((left, ""));
        hidden.push_str(before);
        hidden.push_str(SHOWN);
        left = after;
    }
    hidden + left
}

/// The name that a text begins with.
pub(crate) fn first(text: &str) -> Option<String> {
    text.split(|c| !is_of_name(c)).next().filter(|word| is_name(word)).map(str::to_owned)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c == '-'
}

fn is_name(word: &str) -> bool {
    word.split('-').count() >= WORDS_MIN && word.split('-').all(|part| !part.is_empty())
}
