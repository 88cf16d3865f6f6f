//! Removes what models write around a patch.

use std::borrow::Cow;

use serde_json::Value;

use super::parse::BEGIN;

/// A fence in a here-document in JSON; more is no mistake that models make.
const WRAPPERS_MAX: usize = 4;

/// Returns the patch without a code fence, a here-document or JSON around it.
pub(super) fn unwrap_patch(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..WRAPPERS_MAX {
        let Some(inner) = unwrap_json(&text).or_else(|| unwrap_lines(&text).map(str::to_owned)) else {
            break;
        };
        text = Cow::Owned(inner);
    }
    text
}

/// Returns the first string of a JSON object that contains a patch.
fn unwrap_json(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    let fields: serde_json::Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut texts = fields.values().filter_map(Value::as_str);
    texts.find(|text| text.contains(BEGIN)).map(str::to_owned)
}

/// Removes the first and the last line if they are a code fence or a here-document.
fn unwrap_lines(text: &str) -> Option<&str> {
    let (first, rest) = text.trim().split_once('\n')?;
    let first = first.trim();
    let end = match first.strip_prefix("```") {
        Some(_) => "```",
        None => heredoc_word(first.trim_start_matches("apply_patch").trim_start())?,
    };
    let (inner, last) = rest.trim_end().rsplit_once('\n')?;
    (last.trim() == end).then_some(inner)
}

/// Returns the word that ends a here-document that begins like this: `<<EOF`, `<<'EOF'` or `<< "EOF"`.
pub(super) fn heredoc_word(redirection: &str) -> Option<&str> {
    let word = redirection.trim().strip_prefix("<<")?.trim_start_matches('-').trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
    let word = unquoted.unwrap_or(word);
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word.then_some(word)
}
