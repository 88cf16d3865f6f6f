//! The composer's text as rows of a given width: where it wraps, and where the caret is.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;

use super::buffer::DraftBuffer;
use crate::text::text_width;

/// Spaces that a tab is shown as.
const TAB: &str = "    ";

/// A part of the text on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DraftLine {
    /// The first byte.
    pub(crate) start: usize,
    /// The byte after the last one.
    pub(crate) end: usize,
}

/// The text as rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftLayout {
    pub(crate) lines: Vec<DraftLine>,
    /// The row of the caret.
    pub(crate) caret_line: usize,
    /// The cells before the caret.
    pub(crate) caret_column: usize,
}

impl DraftLayout {
    /// Wraps the text after spaces, or inside a word that is longer than a row.
    pub(crate) fn new(buffer: &DraftBuffer, width: usize) -> Self {
        // The caret may be after the last letter of a full row.
        let columns = width.saturating_sub(1).max(2);
        let mut lines = Vec::new();
        let mut line_start = 0;
        for line in buffer.text().split('\n') {
            wrap_line(
                buffer,
                DraftLine { start: line_start, end: line_start + line.len() },
                columns,
                &mut lines,
            );
            line_start += line.len() + 1;
        }
        let caret = buffer.caret();
        let caret_line = lines.iter().rposition(|line: &DraftLine| line.start <= caret).unwrap_or(0);
        let start = lines.get(caret_line).map_or(0, |line| line.start);
        let caret_column = text_width(&display_text(buffer, &buffer.text()[start..caret]));
        Self { lines, caret_line, caret_column }
    }

    /// Returns the caret's position one row up or down, in the nearest column; `None` at the edge.
    pub(crate) fn caret_above(&self, buffer: &DraftBuffer) -> Option<usize> {
        let line = self.lines.get(self.caret_line.checked_sub(1)?)?;
        Some(self.caret_in(buffer, *line))
    }

    /// The same one row down.
    pub(crate) fn caret_below(&self, buffer: &DraftBuffer) -> Option<usize> {
        let line = self.lines.get(self.caret_line + 1)?;
        Some(self.caret_in(buffer, *line))
    }

    fn caret_in(&self, buffer: &DraftBuffer, line: DraftLine) -> usize {
        let mut column = 0;
        for (offset, cluster) in buffer.text()[line.start..line.end].grapheme_indices(true) {
            if column >= self.caret_column {
                return line.start + offset;
            }
            column += text_width(&display_text(buffer, cluster));
        }
        line.end
    }
}

fn wrap_line(buffer: &DraftBuffer, line: DraftLine, columns: usize, lines: &mut Vec<DraftLine>) {
    let (mut start, mut column) = (line.start, 0);
    let mut break_at = None;
    for (offset, cluster) in buffer.text()[line.start..line.end].grapheme_indices(true) {
        let at = line.start + offset;
        let cells = text_width(&display_text(buffer, cluster));
        // One space after a full row is in the cell that is kept for the caret.
        let is_hanging = cluster == " " && column == columns;
        if column + cells > columns && at > start && !is_hanging {
            let end = break_at.filter(|&end| end > start && cluster != " ").unwrap_or(at);
            lines.push(DraftLine { start, end });
            column = text_width(&display_text(buffer, &buffer.text()[end..at]));
            (start, break_at) = (end, None);
        }
        column += cells;
        if cluster == " " {
            break_at = Some(at + 1);
        }
    }
    lines.push(DraftLine { start, end: line.end });
}

/// Returns a part of the text as it is shown: atoms as labels, tabs as spaces.
pub(crate) fn display_text<'a>(buffer: &DraftBuffer, part: &'a str) -> Cow<'a, str> {
    if part.is_ascii() && !part.contains('\t') {
        return Cow::Borrowed(part);
    }
    let mut shown = String::with_capacity(part.len());
    for letter in part.chars() {
        match buffer.find_atom(letter) {
            Some(atom) => shown.push_str(&atom.label()),
            None if letter == '\t' => shown.push_str(TAB),
            None => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::buffer::DraftAtom;
    use super::*;

    #[track_caller]
    fn check(buffer: &DraftBuffer, width: usize, expected: &Expect) {
        let layout = DraftLayout::new(buffer, width);
        let rows = layout
            .lines
            .iter()
            .map(|line| format!("{:?}\n", display_text(buffer, &buffer.text()[line.start..line.end])));
        let rows: String = rows.collect();
        expected.assert_eq(&format!("{rows}caret {} {}\n", layout.caret_line, layout.caret_column));
    }

    #[test]
    fn layout_wraps_after_words_and_inside_long_ones() {
        let mut buffer = DraftBuffer::default();
        check(
            &buffer,
            10,
            &expect![[r#"
            ""
            caret 0 0
        "#]],
        );
        buffer.set_text("fix the tests in abcdefghijklmn\n语言语言语言");
        check(
            &buffer,
            10,
            &expect![[r#"
            "fix the "
            "tests in "
            "abcdefghi"
            "jklmn"
            "语言语言"
            "语言"
            caret 5 4
        "#]],
        );
    }

    #[test]
    fn space_after_a_full_row_stays_on_it() {
        let mut buffer = DraftBuffer::default();
        let mut layouts = String::new();
        for typed in ["abcdefghi", " ", "j", " ", " ", "klmno", " ", " ", "p"] {
            buffer.insert_typed(typed);
            let layout = DraftLayout::new(&buffer, 10);
            let rows: Vec<&str> =
                layout.lines.iter().map(|line| &buffer.text()[line.start..line.end]).collect();
            layouts.push_str(&format!("{rows:?} caret {} {}\n", layout.caret_line, layout.caret_column));
        }
        expect![[r#"
            ["abcdefghi"] caret 0 9
            ["abcdefghi "] caret 0 10
            ["abcdefghi ", "j"] caret 1 1
            ["abcdefghi ", "j "] caret 1 2
            ["abcdefghi ", "j  "] caret 1 3
            ["abcdefghi ", "j  klmno"] caret 1 8
            ["abcdefghi ", "j  klmno "] caret 1 9
            ["abcdefghi ", "j  klmno  "] caret 1 10
            ["abcdefghi ", "j  klmno  ", "p"] caret 2 1
        "#]]
        .assert_eq(&layouts);
    }

    #[test]
    fn layout_shows_atoms_as_labels() {
        let mut buffer = DraftBuffer::default();
        buffer.insert_typed("see ");
        assert!(buffer.insert_atom(DraftAtom::Pasted("a\nb\nc".into())));
        buffer.insert_typed(" now");
        check(
            &buffer,
            40,
            &expect![[r#"
            "see [pasted 3 lines] now"
            caret 0 24
        "#]],
        );
        assert_eq!(buffer.full_text(), "see a\nb\nc now");
    }

    #[test]
    fn caret_moves_between_wrapped_rows() {
        let mut buffer = DraftBuffer::default();
        buffer.set_text("one two three\nfour");
        let layout = DraftLayout::new(&buffer, 10);
        buffer.move_to(layout.caret_above(&buffer).unwrap());
        assert_eq!(buffer.caret(), "one two ".len() + 4);
        buffer.move_to(DraftLayout::new(&buffer, 10).caret_above(&buffer).unwrap());
        assert_eq!(buffer.caret(), "one ".len());
        assert_eq!(DraftLayout::new(&buffer, 10).caret_above(&buffer), None);
    }
}
