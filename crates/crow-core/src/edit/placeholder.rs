//! Detects placeholder lines: some models write `// ... existing code ...` for unchanged lines.

/// Starts of comments in various languages.
const COMMENTS: &[&str] = &["{/*", "<!--", "//", "/*", "--", "#", ";", "%", "*", "[", "("];

/// Continuations of a placeholder after its dots.
const AFTER_DOTS: &[&str] = &[
    "existing",
    "rest of",
    "the rest",
    "rest ",
    "remaining",
    "unchanged",
    "other ",
    "same as",
    "previous",
    "omitted",
    "keep ",
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
    "(existing code",
    "keep existing code",
];

/// Finds a placeholder in the new text that the old text does not contain.
pub(super) fn find_placeholder(old: &str, new: &str) -> Option<(usize, String)> {
    let found = new.lines().zip(1..).find(|(line, _)| is_placeholder(line) && !old.contains(line.trim()));
    found.map(|(line, number)| (number, line.trim().to_owned()))
}

fn is_placeholder(line: &str) -> bool {
    let line = line.trim();
    let bare = COMMENTS.iter().find_map(|mark| line.strip_prefix(mark));
    let text = bare.unwrap_or(line).trim_start_matches(['/', '#', '-', '*', ' ']).to_lowercase();
    let dotted = text.strip_prefix("...").or_else(|| text.strip_prefix('…'));
    match dotted {
        Some(rest) => {
            let rest = rest.trim_start_matches(['.', '…', ' ', '(', '[']);
            AFTER_DOTS.iter().any(|word| rest.starts_with(word))
        }
        None => bare.is_some() && WITHOUT_DOTS.iter().any(|word| text.starts_with(word)),
    }
}
