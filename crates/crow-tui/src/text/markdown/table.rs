//! Tables: drawn with columns if they fit, otherwise as one record per row.

use pulldown_cmark::Alignment;

use super::super::{ColorTheme, RowIndent, StyledRow, StyledSpan, wrap_spans};

/// A column is not made narrower than this to make the table fit.
const COLUMN_CELLS_MIN: usize = 8;

/// Between columns.
const SEPARATOR: &str = " │ ";
const SEPARATOR_CELLS: usize = 3;

/// The cells of a table; the first row is its head.
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<StyledSpan>>>,
}

impl MarkdownTable {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, spans: Vec<StyledSpan>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(spans);
        }
    }

    /// The width of each column if no cell is wrapped.
    fn natural_widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.iter().map(StyledSpan::width).sum()).max().unwrap_or(0)
        };
        (0..self.alignments.len()).map(|column| width(column).max(1)).collect()
    }
}

/// Renders a table at a width.
pub(super) fn render_table(table: &MarkdownTable, width: usize, theme: &ColorTheme) -> Vec<StyledRow> {
    match fit_columns(table.natural_widths(), width) {
        Some(widths) => draw_columns(table, &widths, theme),
        None => draw_records(table, width, theme),
    }
}

/// Narrows the widest columns until the table fits; none if they would become too narrow.
fn fit_columns(mut widths: Vec<usize>, width: usize) -> Option<Vec<usize>> {
    let n_separators = widths.len().saturating_sub(1) * SEPARATOR_CELLS;
    let available = width.checked_sub(n_separators)?;
    let mut n_excess = widths.iter().sum::<usize>().saturating_sub(available);
    while n_excess > 0 {
        let widest = widths.iter_mut().max()?;
        if *widest <= COLUMN_CELLS_MIN {
            return None;
        }
        *widest -= 1;
        n_excess -= 1;
    }
    Some(widths)
}

fn draw_columns(table: &MarkdownTable, widths: &[usize], theme: &ColorTheme) -> Vec<StyledRow> {
    let mut rows = Vec::new();
    for (index, cells) in table.rows.iter().enumerate() {
        let is_head = index == 0;
        let columns: Vec<Vec<StyledRow>> = widths
            .iter()
            .enumerate()
            .map(|(column, &width)| {
                let cell = cells.get(column).map(Vec::as_slice).unwrap_or_default();
                let bold = |span: &StyledSpan| StyledSpan { style: span.style.bold(), ..span.clone() };
                let cell: Vec<StyledSpan> =
                    if is_head { cell.iter().map(bold).collect() } else { cell.to_vec() };
                wrap_spans(&cell, width, &RowIndent::default())
            })
            .collect();
        let n_rows = columns.iter().map(Vec::len).max().unwrap_or(0);
        rows.extend((0..n_rows).map(|n| join_cells(table, widths, &columns, n, theme)));
        if is_head {
            let line: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
            rows.push(StyledRow::from_span(StyledSpan::styled(line.join("─┼─"), theme.secondary())));
        }
    }
    rows
}

/// Returns one row of the screen with its part of each cell. The last cell is not padded.
fn join_cells(
    table: &MarkdownTable,
    widths: &[usize],
    columns: &[Vec<StyledRow>],
    n_row: usize,
    theme: &ColorTheme,
) -> StyledRow {
    let mut row = StyledRow::default();
    for (column, (lines, &width)) in columns.iter().zip(widths).enumerate() {
        if column > 0 {
            row.push_span(StyledSpan::styled(SEPARATOR, theme.secondary()));
        }
        let line = lines.get(n_row).cloned().unwrap_or_default();
        let n_free = width.saturating_sub(line.width());
        let is_last = column + 1 == columns.len();
        let n_before = match table.alignments[column] {
            // Nothing follows.
            Alignment::Right | Alignment::Center if is_last && line.spans.is_empty() => 0,
            Alignment::None | Alignment::Left => 0,
            Alignment::Right => n_free,
            Alignment::Center => n_free / 2,
        };
        row.push_span(StyledSpan::plain(" ".repeat(n_before)));
        line.spans.into_iter().for_each(|span| row.push_span(span));
        if !is_last {
            row.push_span(StyledSpan::plain(" ".repeat(n_free - n_before)));
        }
    }
    row
}

fn draw_records(table: &MarkdownTable, width: usize, theme: &ColorTheme) -> Vec<StyledRow> {
    let Some((head, records)) = table.rows.split_first() else { return Vec::new() };
    let indent = RowIndent { first: Vec::new(), rest: vec![StyledSpan::plain("  ")] };
    let mut rows = Vec::new();
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            rows.push(StyledRow::default());
        }
        for (name, cell) in head.iter().zip(record) {
            let name: String = name.iter().map(|span| span.content.as_str()).collect();
            let mut spans = vec![StyledSpan::styled(format!("{name}: "), theme.heading())];
            spans.extend(cell.iter().cloned());
            rows.extend(wrap_spans(&spans, width, &indent));
        }
    }
    rows
}
