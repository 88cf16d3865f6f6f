//! Extracts the text of a page without its elements, for pages that are unsafe for an engine, in one pass.

use super::html_shape::{
    find_bytes, is_one_of, read_tag_name, skip_attributes, skip_comment, skip_past, skip_raw_text,
};

/// Elements whose content is not text for a reader.
const SKIPPED_ELEMENTS: [&[u8]; 7] =
    [b"iframe", b"noembed", b"noframes", b"script", b"style", b"title", b"xmp"];

/// Elements within a line.
const INLINE_ELEMENTS: [&[u8]; 18] = [
    b"a", b"abbr", b"b", b"cite", b"code", b"em", b"font", b"i", b"kbd", b"mark", b"q", b"s", b"small",
    b"span", b"strong", b"sub", b"sup", b"u",
];

/// Escaped characters, the ampersand last.
const ENTITIES: [(&str, &str); 6] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];

/// Returns the text of a page.
pub(super) fn strip_tags(html: &str) -> String {
    let bytes = html.as_bytes();
    let mut text = String::new();
    let mut at = 0_usize;
    while let Some(next) = find_bytes(bytes, at, b"<") {
        text.push_str(html.get(at..next).unwrap_or_default());
        let begin = next + 1;
        let is_end = bytes.get(begin) == Some(&b'/');
        let name_start = begin + usize::from(is_end);
        at = match bytes.get(name_start) {
            Some(b'!') if bytes[begin..].starts_with(b"!--") => skip_comment(bytes, begin + 1),
            Some(b'!' | b'?') => skip_past(bytes, begin, b">"),
            Some(first) if first.is_ascii_alphabetic() => {
                let (name, length) = read_tag_name(&bytes[name_start..]);
                if !is_one_of(&INLINE_ELEMENTS, &name) {
                    text.push('\n');
                }
                let end = skip_attributes(bytes, name_start + length);
                if is_one_of(&SKIPPED_ELEMENTS, &name) && !is_end {
                    skip_raw_text(bytes, end, &name)
                } else {
                    end
                }
            }
            _ => {
                text.push('<');
                begin
            }
        };
    }
    text.push_str(html.get(at..).unwrap_or_default());
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    ENTITIES.iter().fold(text, |text, (entity, character)| text.replace(entity, character))
}
