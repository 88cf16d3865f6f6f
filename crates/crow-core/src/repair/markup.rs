//! What may stand around an object without changing what it is: fences, tags, the marks of a model's format. Words may
//! not: an object that a sentence speaks of is no call.

/// Tags whose content is not meant for anybody.
const ASIDE_TAGS: [&str; 7] = ["think", "thought", "reason", "reflect", "scratch", "example", "comment"];

/// Brackets and signs that models leave around an object.
const SIGNS: &str = "()]},;:=.`'\"";

/// The word that names the format, with or without a fence.
const FORMAT: &str = "json";

/// Whether a text is nothing but markup.
pub(super) fn is_markup(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(super::is_blank);
        let Some(first) = rest.chars().next() else { return true };
        let after = match first {
            '`' if rest.starts_with("```") => after_fence(&rest[3..]),
            '<' => rest[1..].split_once('>').filter(|(tag, _)| is_tag(tag)).map(|(_, after)| after),
            '[' => rest[1..].split_once(']').filter(|(mark, _)| is_mark(mark)).map(|(_, after)| after),
            'j' | 'J' => after_format(rest),
            _ => SIGNS.contains(first).then(|| &rest[first.len_utf8()..]),
        };
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
}

/// Skips the language of a fence, which is alone on its line unless it is the format.
fn after_fence(text: &str) -> Option<&str> {
    let is_language = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '+');
    let after = text.trim_start_matches(is_language);
    let is_alone = after.is_empty() || after.trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    if is_alone || after.len() == text.len() { Some(after) } else { after_format(text) }
}

fn after_format(text: &str) -> Option<&str> {
    let (word, after) = text.split_at_checked(FORMAT.len())?;
    let ends = !after.starts_with(|char: char| char.is_alphanumeric() || char == '_');
    (word.eq_ignore_ascii_case(FORMAT) && ends).then_some(after)
}

/// Whether this stands between `<` and `>` of a tag that calls are put in.
fn is_tag(tag: &str) -> bool {
    let name = tag.split(char::is_whitespace).next().unwrap_or_default();
    let is_name = |char: char| char.is_alphanumeric() || "_-.:=/|▁｜".contains(char);
    let lower = name.to_lowercase();
    let attributes = tag[name.len()..].trim();
    let has_words = !attributes.is_empty() && attributes != "/" && !attributes.contains("=\"");
    !name.is_empty()
        && name.chars().all(is_name)
        && !has_words
        && !ASIDE_TAGS.iter().any(|aside| lower.contains(aside))
}

/// Whether this stands between the brackets of a mark such as `[TOOL_CALLS]`.
fn is_mark(mark: &str) -> bool {
    mark.contains(|char: char| char.is_ascii_uppercase())
        && mark.chars().all(|char| char.is_ascii_uppercase() || matches!(char, '_' | '/'))
}
