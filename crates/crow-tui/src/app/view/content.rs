//! Content of cells as rows: the only module that chooses how Markdown, changes of files and output are shown.

use super::rows::RowContext;
use crate::text::{
    DiffExtent, DiffTexts, RowIndent, StyledRow, StyledSpan, TextStyle, ansi_rows, expand_tabs, fold_diff,
    render_diff, render_diff_part, sanitize_text, wrap_spans,
};

/// Cells in front of what belongs to a cell's first line.
pub(super) const INDENT: &str = "  ";

/// Renders a text in one style, with `first` in front of its first row and `rest` in front of the others.
pub(super) fn render_paragraph(
    text: &str,
    style: TextStyle,
    [first, rest]: [&str; 2],
    context: RowContext<'_>,
) -> Vec<StyledRow> {
    let indent = |text: &str| vec![StyledSpan::styled(text, style)];
    let lines = sanitize_text(text);
    let lines: Vec<String> = lines.trim_end().lines().map(expand_tabs).collect();
    let span = StyledSpan::styled(lines.join("\n"), style);
    let mut rows = Vec::new();
    for (index, line) in span.content.split('\n').enumerate() {
        let first = if index == 0 { first } else { rest };
        let indent = RowIndent { first: indent(first), rest: indent(rest) };
        rows.extend(wrap_spans(&[StyledSpan::styled(line, style)], context.width, &indent));
    }
    rows
}

/// Renders a change of a file, folded in the conversation.
pub(super) fn render_change(
    path: &str,
    old: Option<&str>,
    new: &str,
    context: RowContext<'_>,
) -> Vec<StyledRow> {
    let path = context.facts.shown_path(path);
    let rows = render_diff(&path, old, new, context.width.saturating_sub(INDENT.len()), &context.theme);
    let rows = if context.is_complete { rows } else { fold_diff(rows, &context.theme) };
    rows.into_iter().map(indent_row).collect()
}

/// Renders a change for a question: nothing that changes is left out.
pub(super) fn whole_change(
    texts: DiffTexts<'_>,
    extent: DiffExtent,
    context: RowContext<'_>,
) -> impl Iterator<Item = StyledRow> {
    let width = context.width.saturating_sub(INDENT.len());
    let path = context.facts.shown_path(texts.path);
    let texts = DiffTexts { path: &path, ..texts };
    render_diff_part(texts, extent, width, &context.theme).into_iter().map(indent_row)
}

/// Renders the output of a program, one row per line.
pub(super) fn output_rows(text: &str, context: RowContext<'_>) -> Vec<StyledRow> {
    ansi_rows(text, &context.theme).into_iter().map(indent_row).collect()
}

fn indent_row(mut row: StyledRow) -> StyledRow {
    row.spans.insert(0, StyledSpan::plain(INDENT));
    row
}

/// Renders a patch as `git diff` prints it.
pub(super) fn render_patch(text: &str, context: RowContext<'_>) -> Vec<StyledRow> {
    let theme = context.theme;
    let text = sanitize_text(text);
    let rows = text.lines().flat_map(|line| {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => theme.heading(),
            [b'+', ..] => theme.success(),
            [b'-', ..] => theme.error(),
            [b'@', ..] => theme.inline_code(),
            [b'd', b'i', b'f', b'f', ..] => theme.heading(),
            _ => TextStyle::default(),
        };
        render_paragraph(line, style, ["", ""], context)
    });
    rows.collect()
}
