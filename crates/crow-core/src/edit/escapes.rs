//! Decodes escapes that were written by mistake: some models escape a text once more than JSON requires.

/// Returns the possible readings of an edit, the likeliest first.
///
/// A text with genuine escapes must keep them, so both texts must be escaped throughout.
pub(super) fn unescaped_readings(old: &str, new: &str) -> Vec<(String, String)> {
    let mut decoders: Vec<fn(&str) -> Option<String>> = Vec::new();
    // An escaped tab alone proves little: source code often contains `'\t'`.
    if old.contains("\\n") || old.contains("\\\"") {
        decoders.extend([unescape_json as fn(&str) -> Option<String>, unescape_quotes]);
    }
    if old.contains("\\\\") {
        decoders.push(unescape_doubled);
    }
    if ENTITIES.iter().any(|(entity, _)| old.contains(entity)) {
        decoders.push(unescape_entities);
    }
    let readings = decoders.into_iter().filter_map(|decode| Some((decode(old)?, decode(new)?)));
    readings.filter(|(decode, _)| decode != old).collect()
}

/// Decodes a text in which every backslash is doubled.
fn unescape_doubled(text: &str) -> Option<String> {
    let read = text.replace("\\\\", "\u{0}");
    (!read.contains('\\') && !text.contains('\u{0}')).then(|| read.replace('\u{0}', "\\"))
}

/// The HTML entities of reserved characters; the ampersand is last, so that nothing is decoded twice.
const ENTITIES: &[(&str, &str)] =
    &[("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&")];

/// Decodes a text that is escaped as HTML: it has no plain angle brackets.
fn unescape_entities(text: &str) -> Option<String> {
    let read = |text: String, (entity, plain): &(&str, &str)| text.replace(entity, plain);
    (!text.contains(['<', '>'])).then(|| ENTITIES.iter().fold(text.to_owned(), read))
}

/// Decodes the content of a JSON string: a single line with every quote escaped.
fn unescape_json(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

/// Decodes a text with plain line breaks whose double quotes are all escaped.
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
