//! Truncates a text in its middle; its beginning and end are the most informative parts.

/// Shortens a text to about `max` bytes: keeps its head and tail, the head twice as long, and notes the omitted
/// length.
pub(super) fn clip_middle(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - max / 3);
    format!("{}\n[… {} bytes omitted …]\n{}", &text[..head], tail - head, &text[tail..])
}
