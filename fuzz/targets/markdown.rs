//! The Markdown of a reply: its rows are the same however it is split, have no control characters, and fit the screen.
//!
//! The input is a width, the length of a piece, and the text.
#![no_main]

use crow_tui::ColorTheme;
use crow_tui::text::{MarkdownStream, StyledRow, render_markdown};
use libfuzzer_sys::fuzz_target;

const THEME: ColorTheme = ColorTheme { has_color: true, is_light: false };

/// Cells of a double-width character.
const WIDTH_MIN: usize = 2;

fn render_pieces(text: &str, n_chars: usize, width: usize) -> Vec<StyledRow> {
    let mut stream = MarkdownStream::new(width, THEME);
    let (mut rows, mut piece) = (Vec::new(), String::new());
    for char in text.chars() {
        piece.push(char);
        if piece.chars().count() == n_chars {
            stream.push(&piece);
            rows.extend(stream.take_settled());
            piece.clear();
        }
    }
    stream.push(&piece);
    rows.extend(stream.finish());
    rows
}

fuzz_target!(|data: &[u8]| {
    let [width, n_chars, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let width = usize::from(*width);
    let rows = render_markdown(text, width, &THEME);
    assert_eq!(rows, render_pieces(text, usize::from(*n_chars) + 1, width));
    for row in rows {
        assert!(!row.text().chars().any(char::is_control), "{row:?}");
        assert!(row.is_code || row.width() <= width.max(WIDTH_MIN), "{width} {row:?}");
    }
});
