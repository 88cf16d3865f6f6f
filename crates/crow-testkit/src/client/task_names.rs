//! Masks the names of tasks, which are random words.

/// The minimum number of words in a task name; nothing else in a log has as many.
const WORDS_MIN: usize = 4;

/// Replaces a name.
const PLACEHOLDER: &str = "$TASK";

/// Replaces all task names.
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

/// Returns the task name at the start of a text.
pub(crate) fn leading_task_name(text: &str) -> Option<String> {
    text.split(|c| !is_name_char(c)).next().filter(|word| is_task_name(word)).map(str::to_owned)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_lowercase() || c == '-'
}

fn is_task_name(word: &str) -> bool {
    word.split('-').count() >= WORDS_MIN && word.split('-').all(|part| !part.is_empty())
}
