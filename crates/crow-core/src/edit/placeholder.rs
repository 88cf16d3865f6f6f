//! Detects placeholder lines: some models write `// ... existing code ...` for unchanged lines.

/// Starts of comments in various languages.
const COMMENTS: &[&str] = &["{/*", "<!--", "//", "/*", "--", "#", ";", "%", "*"];

/// Brackets around a placeholder. What they begin may also be code.
const BRACKETS: [char; 2] = ['[', '('];

/// Characters of code after dots and a bracket, such as `...(existing ?? [])`.
const OPERATORS: [char; 6] = ['?', '|', '&', '=', '{', '+'];

/// Continuations of a placeholder after its dots.
const AFTER_DOTS: &[&str] = &[
    "existing",
    "rest of",
    "the rest",
    "rest",
    "remaining",
    "unchanged",
    "other",
    "same as",
    "previous",
    "omitted",
    "keep",
    "more code",
    "code unchanged",
    "no changes",
];

/// Starts of a placeholder in a comment without dots.
const WITHOUT_DOTS: &[&str] = &[
    "existing code",
    "rest of the",
    "rest of code",
    "rest of file",
    "rest of function",
    "remaining code",
    "unchanged code",
    "code unchanged",
    "keep existing code",
];

/// Words after the start of a placeholder without dots; with any other word it is a sentence about the code.
const TAIL_WORDS: &str = "above as before below body brevity class code component continues file for function goes \
                          here implementation is method methods module of omitted remain remains same stay stays \
                          test tests the unchanged unmodified";

/// Finds a placeholder in the new text that the old text does not contain.
pub(super) fn find_placeholder(old: &str, new: &str) -> Option<(usize, String)> {
    let found = new.lines().zip(1..).find(|(line, _)| is_placeholder(line) && !old.contains(line.trim()));
    found.map(|(line, number)| (number, line.trim().to_owned()))
}

fn is_placeholder(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let comment = COMMENTS.iter().find_map(|mark| line.strip_prefix(mark));
    let text = comment.unwrap_or(&line).trim_start_matches(['/', '#', '-', '*', ' ']);
    let text = text.trim_start_matches(BRACKETS).trim_start();
    let dotted = text.strip_prefix("...").or_else(|| text.strip_prefix('…'));
    match dotted {
        Some(rest) => starts_after_dots(rest, comment.is_some() || text.starts_with('…')),
        None => {
            (comment.is_some() || line.starts_with(BRACKETS))
                && WITHOUT_DOTS.iter().any(|start| is_whole_sentence(text, start))
        }
    }
}

/// Whether a text after dots continues a placeholder. Outside of a comment, dots without a blank may be an operator of
/// the language: `...existing,` is code.
fn starts_after_dots(rest: &str, is_prose: bool) -> bool {
    let text = rest.trim_start_matches(['.', '…', ' ', '[', '(']);
    let is_spaced = text.len() < rest.len();
    let Some(tail) = AFTER_DOTS.iter().find_map(|start| text.strip_prefix(start)) else { return false };
    let is_name = tail.trim_start_matches('.').starts_with(is_name_letter);
    let is_code = !is_prose && (!is_spaced || tail.contains(OPERATORS));
    !is_name && !is_code && !tail.ends_with([',', ';'])
}

fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether a comment is only the start of a placeholder and words that say nothing about the code.
fn is_whole_sentence(text: &str, start: &str) -> bool {
    let Some(tail) = text.strip_prefix(start) else { return false };
    let mut words = tail.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    !tail.starts_with(char::is_alphanumeric)
        && words.all(|word| TAIL_WORDS.split(' ').any(|known| known == word))
}
