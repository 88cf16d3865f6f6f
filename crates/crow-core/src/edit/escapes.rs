//! Reads escapes that were written by mistake: some models escape a text once more than JSON asks for.

/// What an edit may have been meant to be, the likeliest first.
///
/// A text with escapes of its own must not lose them, so both texts have to be escaped throughout.
pub(super) fn unescaped_readings(old: &str, new: &str) -> Vec<(String, String)> {
    let mut ways: Vec<fn(&str) -> Option<String>> = Vec::new();
    // A tab alone says little: source code is full of `'\t'`.
    if old.contains("\\n") || old.contains("\\\"") {
        ways.extend([unescape_json as fn(&str) -> Option<String>, unescape_quotes]);
    }
    if old.contains("\\\\") {
        ways.push(unescape_doubled);
    }
    if ENTITIES.iter().any(|(entity, _)| old.contains(entity)) {
        ways.push(unescape_entities);
    }
    let readings = ways.into_iter().filter_map(|read| Some((read(old)?, read(new)?)));
    readings.filter(|(read, _)| read != old).collect()
}

/// Reads a text in which every backslash is doubled.
fn unescape_doubled(text: &str) -> Option<String> {
    let read = text.replace("\\\\", "\u{0}");
    (!read.contains('\\') && !text.contains('\u{0}')).then(|| read.replace('\u{0}', "\\"))
}

/// What HTML writes for the characters that it needs itself; the ampersand is last, so that nothing is read twice.
const ENTITIES: &[(&str, &str)] =
    &[("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&")];

/// Reads a text that was written for HTML: none of its angle brackets is plain.
fn unescape_entities(text: &str) -> Option<String> {
    let read = |text: String, (entity, plain): &(&str, &str)| text.replace(entity, plain);
    (!text.contains(['<', '>'])).then(|| ENTITIES.iter().fold(text.to_owned(), read))
}

/// Reads a text that is the inside of a JSON string: a single line, with every quote escaped.
fn unescape_json(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

/// Reads a text whose lines are fine and whose double quotes are all escaped.
fn unescape_quotes(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => return None,
            '\\' => match chars.next() {
                Some('"') => out.push('"'),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    Some(out)
}
