//! Lists as rows: the picker, and the completions above the composer.

use super::rows::{LiveBlock, RowContext, styled_row};
use crate::{
    app::{completion::CompletionList, picker::ListPicker},
    screen::CaretPosition,
    text::{StyledRow, StyledSpan, TextStyle, sanitize_line, text_width, truncate_row},
};

/// Completions that are visible at once.
const COMPLETIONS_MAX: usize = 8;

/// The widest first column.
const LABEL_COLUMNS_MAX: usize = 40;

/// A row of a list.
struct ListRow<'a> {
    label: &'a str,
    detail: &'a str,
    is_current: bool,
}

/// Renders a list with its search line, in at most `n_rows`.
pub(super) fn render_picker(picker: &ListPicker, n_rows: usize, context: RowContext<'_>) -> LiveBlock {
    let theme = context.theme;
    let mut block = LiveBlock::default();
    let heading = format!("{}: {}", sanitize_line(&picker.title), sanitize_line(&picker.query));
    let column = u16::try_from(text_width(&heading)).unwrap_or(0);
    block.caret = Some(CaretPosition { row: 0, column });
    block.push_row(styled_row(heading, theme.accent()));
    let matches = picker.matches();
    let rows: Vec<ListRow<'_>> = matches
        .iter()
        .map(|entry| ListRow { label: &entry.label, detail: &entry.detail, is_current: entry.is_current })
        .collect();
    let n_list = n_rows.saturating_sub(2).max(1);
    block.rows.extend(render_rows(&rows, picker.selected, n_list, context));
    if rows.is_empty() {
        block.push_row(styled_row("  no match", theme.secondary()));
    }
    let hint = format!("{} · type to search · enter chooses · esc closes", matches.len());
    block.push_row(styled_row(hint, theme.secondary()));
    block
}

/// Renders the completions.
pub(super) fn render_completions(list: &CompletionList, n_rows: usize, context: RowContext<'_>) -> LiveBlock {
    let rows: Vec<ListRow<'_>> = list
        .items
        .iter()
        .map(|item| ListRow { label: &item.label, detail: &item.detail, is_current: false })
        .collect();
    let n_rows = n_rows.min(COMPLETIONS_MAX);
    LiveBlock { rows: render_rows(&rows, list.selected, n_rows, context), caret: None }
}

/// Renders the rows around the selected one.
fn render_rows(
    rows: &[ListRow<'_>],
    selected: usize,
    n_rows: usize,
    context: RowContext<'_>,
) -> Vec<StyledRow> {
    let theme = context.theme;
    let first = (selected + 1).saturating_sub(n_rows);
    let visible = || rows.iter().enumerate().skip(first).take(n_rows);
    let has_details = rows.iter().any(|row| !row.detail.is_empty());
    let columns_max = if has_details { LABEL_COLUMNS_MAX.min(context.width / 2) } else { context.width };
    let n_columns = visible().map(|(_, row)| text_width(row.label)).max().unwrap_or(0).min(columns_max);
    let rendered = visible().map(|(index, row)| {
        let style = if index == selected { theme.accent() } else { TextStyle::default() };
        let mark = match (index == selected, row.is_current) {
            (true, _) => "› ",
            (false, true) => "• ",
            (false, false) => "  ",
        };
        let label = StyledSpan::styled(format!("{mark}{}", sanitize_line(row.label)), style);
        let mut line = truncate_row(StyledRow::from_span(label), n_columns + 2);
        let n_spaces = (n_columns + 4).saturating_sub(line.width());
        if !row.detail.is_empty() {
            line.push_span(StyledSpan::styled(" ".repeat(n_spaces), TextStyle::default()));
            line.push_span(StyledSpan::styled(sanitize_line(row.detail), theme.secondary()));
        }
        truncate_row(line, context.width)
    });
    rendered.collect()
}
