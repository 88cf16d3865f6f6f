//! Diffs for the terminal.

use console::Style;
use similar::{ChangeTag, TextDiff};

use super::plain::{PaintMode, reveal_control_chars};

/// Lines of a diff that are shown; the file has the rest.
const LINES_MAX: usize = 40;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;

/// Renders the lines that differ.
pub(super) fn render_diff(old: &str, new: &str, paint: PaintMode) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if index > 0 {
            lines.push(paint.apply_style(Style::new().dim(), "⋮"));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ("-", Style::new().red()),
                ChangeTag::Insert => ("+", Style::new().green()),
                ChangeTag::Equal => (" ", Style::new().dim()),
            };
            let text =
                format!("{sign} {}", reveal_control_chars(change.value().trim_end_matches(['\r', '\n'])));
            lines.push(paint.apply_style(style, text.trim_end()));
        }
    }
    let n_hidden = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if n_hidden > 0 {
        lines.push(paint.apply_style(Style::new().dim(), &format!("… {n_hidden} more lines")));
    }
    lines
}
