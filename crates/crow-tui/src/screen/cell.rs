//! A row as the bytes that draw it, and the difference of two rows.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::text::{LinkTarget, PaletteColor, StyledRow, StyledSpan, TextStyle, cluster_width};

/// A grapheme cluster of a row with the cells before it.
#[derive(Clone, Copy)]
struct RowCell<'a> {
    text: &'a str,
    column: usize,
    width: usize,
    span: &'a StyledSpan,
}

impl RowCell<'_> {
    fn is_drawn_like(&self, other: &Self) -> bool {
        self.text == other.text
            && self.column == other.column
            && self.span.style == other.span.style
            && self.span.link == other.span.link
    }

    fn end(&self) -> usize {
        self.column + self.width
    }
}

/// Returns the cells of a row that fit the columns.
fn cells(row: &StyledRow, columns_max: usize) -> impl Iterator<Item = RowCell<'_>> {
    let clusters =
        row.spans.iter().flat_map(|span| span.content.graphemes(true).map(move |text| (text, span)));
    let placed = clusters.scan(0, move |column, (text, span)| {
        let cell = RowCell { text, column: *column, width: cluster_width(text), span };
        *column = cell.end();
        Some(cell)
    });
    placed.take_while(move |cell| cell.end() <= columns_max)
}

/// Appends the row's text with its styles and links, from the column where the cursor is. Leaves the default style.
pub(super) fn write_row(out: &mut Vec<u8>, row: &StyledRow, columns_max: usize) {
    // The terminal wraps code, so its columns are not those of the screen.
    write_cells(out, cells(row, columns_max), !row.is_code);
}

/// Returns a row with its styles and links, for a terminal whose lines are written one after the other.
pub fn style_row(row: &StyledRow) -> String {
    let mut out = Vec::new();
    write_cells(&mut out, cells(row, usize::MAX), false);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends the moves and the cells that turn a drawn row into another one. The cursor may be anywhere in the row.
pub(super) fn write_changes(out: &mut Vec<u8>, drawn: &StyledRow, row: &StyledRow, columns_max: usize) {
    let before: Vec<RowCell<'_>> = cells(drawn, columns_max).collect();
    let after: Vec<RowCell<'_>> = cells(row, columns_max).collect();
    let end = |cells: &[RowCell<'_>]| cells.last().map_or(0, RowCell::end);
    if end(&after) < end(&before) {
        out.extend_from_slice(b"\r\x1b[2K");
        write_cells(out, after.into_iter(), true);
        return;
    }
    let is_equal = |(old, new): &(&RowCell<'_>, &RowCell<'_>)| old.is_drawn_like(new);
    let first = before.iter().zip(&after).take_while(is_equal).count();
    // A common end moves nothing only if both rows are equally long.
    let n_same_end = if end(&after) == end(&before) {
        before[first.min(before.len())..]
            .iter()
            .rev()
            .zip(after[first..].iter().rev())
            .take_while(is_equal)
            .count()
    } else {
        0
    };
    let changed = &after[first..after.len() - n_same_end];
    if let Some(cell) = changed.first() {
        move_to_column(out, cell.column);
        write_cells(out, changed.iter().copied(), true);
    }
}

fn write_cells<'a>(out: &mut Vec<u8>, cells: impl Iterator<Item = RowCell<'a>>, is_placed: bool) {
    let mut pen = RowPen::default();
    for cell in cells {
        pen.set_span(out, cell.span);
        out.extend_from_slice(cell.text.as_bytes());
        // Terminals disagree on the width of joined letters, so the column after them is set.
        if is_placed && cell.text.contains(['\u{200d}', '\u{fe0f}']) {
            pen.lift(out);
            move_to_column(out, cell.end());
        }
    }
    pen.lift(out);
}

/// Moves inside the row.
pub(super) fn move_to_column(out: &mut Vec<u8>, column: usize) {
    if column == 0 {
        out.push(b'\r');
    } else {
        out.extend_from_slice(format!("\x1b[{}G", column + 1).as_bytes());
    }
}

/// Returns in how many rows a terminal of these columns shows the first cells of a row, without the last one of them:
/// 0 as long as they fit one row.
pub(super) fn count_wraps(row: &StyledRow, n_cells: usize, columns: usize) -> usize {
    let (mut n_wraps, mut column) = (0, 0);
    for cell in cells(row, usize::MAX).take_while(|cell| cell.end() <= n_cells) {
        if column + cell.width > columns {
            (n_wraps, column) = (n_wraps + 1, 0);
        }
        column += cell.width;
    }
    n_wraps
}

/// The style and link that the terminal is in.
#[derive(Default)]
struct RowPen {
    style: TextStyle,
    link: Option<LinkTarget>,
}

impl RowPen {
    fn set_span(&mut self, out: &mut Vec<u8>, span: &StyledSpan) {
        if self.link != span.link {
            match &span.link {
                Some(link) => {
                    let open = format!("\x1b]8;id={};{}\x1b\\", link_id(link), link.address());
                    out.extend_from_slice(open.as_bytes());
                }
                None => out.extend_from_slice(b"\x1b]8;;\x1b\\"),
            }
            self.link.clone_from(&span.link);
        }
        if self.style != span.style {
            out.extend_from_slice(style_sequence(span.style).as_bytes());
            self.style = span.style;
        }
    }

    fn lift(&mut self, out: &mut Vec<u8>) {
        self.set_span(out, &StyledSpan::default());
    }
}

/// Identifies a link, so that the terminal highlights its fragments together.
fn link_id(link: &LinkTarget) -> String {
    // FNV-1a.
    let hash = link.address().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:x}")
}

fn style_sequence(style: TextStyle) -> String {
    let mut sequence = String::from("\x1b[0");
    let attributes = [
        (style.is_bold, ";1"),
        (style.is_dim, ";2"),
        (style.is_italic, ";3"),
        (style.is_underlined, ";4"),
        (style.is_struck, ";9"),
    ];
    sequence.extend(attributes.iter().filter(|(is_set, _)| *is_set).map(|(_, code)| *code));
    match style.color {
        None => {}
        Some(PaletteColor(color @ 0..=7)) => sequence.push_str(&format!(";{}", 30 + color)),
        Some(PaletteColor(color @ 8..=15)) => sequence.push_str(&format!(";{}", 82 + color)),
        Some(PaletteColor(color)) => sequence.push_str(&format!(";38;5;{color}")),
    }
    sequence.push('m');
    sequence
}
