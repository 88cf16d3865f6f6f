//! A row as the bytes that draw it.

use crate::text::{LinkTarget, PaletteColor, StyledRow, StyledSpan, TextStyle, cluster_width};
use unicode_segmentation::UnicodeSegmentation as _;

/// Appends the row's text with its styles and links, from the column where the cursor is. Leaves the default style.
pub(super) fn write_row(out: &mut Vec<u8>, row: &StyledRow, columns_max: usize) {
    let mut pen = RowPen::default();
    let mut column = 0;
    for span in &row.spans {
        pen.set_span(out, span);
        for cluster in span.content.graphemes(true) {
            let width = cluster_width(cluster);
            if column + width > columns_max {
                pen.lift(out);
                return;
            }
            out.extend_from_slice(cluster.as_bytes());
            column += width;
            // Terminals disagree on the width of joined letters, so the column after them is set.
            if !row.is_code && cluster.contains(['\u{200d}', '\u{fe0f}']) {
                out.extend_from_slice(format!("\x1b[{}G", column + 1).as_bytes());
            }
        }
    }
    pen.lift(out);
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
