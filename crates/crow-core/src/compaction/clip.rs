//! Shortens a text in its middle: how it begins and how it ends says most.

/// Keeps head and tail of a text that is longer than `max` bytes, the head twice as long, and says what is missing.
pub(super) fn clip_middle(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - max / 3);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}
