//! Names of tasks, which are made of words and are different each time.

/// Words of such a name, at least; nothing else that is logged has as many.
const WORDS_MIN: usize = 4;

/// Stands for a name.
const PLACEHOLDER: &str = "$TASK";

/// Puts one word in the place of all names.
pub fn mask_task_names(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(name) = rest.split(|c| !is_name_char(c)).find(|word| is_task_name(word)) {
        let (before, after) = rest.split_once(name).unwrap_or((rest, ""));
        masked.push_str(before);
        masked.push_str(PLACEHOLDER);
        rest = after;
    }
    masked + rest
}

/// The name that a text begins with.
pub(crate) fn leading_task_name(text: &str) -> Option<String> {
    text.split(|c| !is_name_char(c)).next().filter(|word| is_task_name(word)).map(str::to_owned)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_lowercase() || c == '-'
}

fn is_task_name(word: &str) -> bool {
    word.split('-').count() >= WORDS_MIN && word.split('-').all(|part| !part.is_empty())
}
