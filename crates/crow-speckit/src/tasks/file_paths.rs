//! The file paths in a task.

/// Finds file paths in a text as written: names with an extension, or well-known names.
pub(crate) fn find_paths(text: &str) -> impl Iterator<Item = &str> {
    split_words(text).filter(|word| is_file_path(word))
}

/// Whether a text contains a path: a file, or something with a slash.
pub(crate) fn has_path(text: &str) -> bool {
    split_words(text).any(|word| is_file_path(word) || is_dir_path(word))
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let is_separator = |char: char| char.is_whitespace() || "`'\"()<>,;|*".contains(char);
    text.split(is_separator)
        .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
        .filter(|word| !word.contains("://"))
}

fn is_file_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    if matches!(
        name,
        "Dockerfile" | "Makefile" | "Justfile" | "justfile" | "Procfile" | "Gemfile" | "Rakefile"
    ) {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let is_extension = (1..=10).contains(&extension.len())
        && extension.starts_with(|char: char| char.is_ascii_lowercase())
        && extension.chars().all(|char| char.is_ascii_alphanumeric());
    // `e.g` and `Node.js` are not files.
    let is_word = !word.contains('/')
        && (stem.chars().count() == 1 && extension.len() == 1
            || extension == "js" && stem.starts_with(|char: char| char.is_ascii_uppercase()));
    is_extension && !is_word
}

fn is_dir_path(word: &str) -> bool {
    let is_abbreviation =
        matches!(word.to_ascii_lowercase().as_str(), "and/or" | "i/o" | "ci/cd" | "n/a" | "tcp/ip");
    word.contains('/') && word.chars().any(char::is_alphanumeric) && !is_abbreviation
}
