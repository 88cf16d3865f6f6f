//! The change of a file: counts, line numbers, signs and the code in its colours. Unchanged lines far from a change are
//! folded.

use std::time::{Duration, Instant};

use crow_core::text_diff::{ChangeCounts, DiffOp, TextDiff};

use super::{
    CodeHighlighter, ColorTheme, RowIndent, StyledRow, StyledSpan, TextStyle, expand_tabs, sanitize_line,
    sanitize_text, wrap_spans,
};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Rows of a diff; the file has the rest.
pub const DIFF_ROWS_MAX: usize = 400;

/// Rows of a diff in a conversation.
const FOLDED_ROWS_MAX: usize = 40;

/// After this time the comparison is coarse.
const COMPARE_MAX: Duration = Duration::from_millis(100);

/// The old and the new content of a file. Without the old one, the file is new.
#[derive(Debug, Clone, Copy)]
pub struct DiffTexts<'a> {
    pub path: &'a str,
    pub old: Option<&'a str>,
    pub new: &'a str,
}

/// The part of a change that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffExtent {
    /// As many rows as there is room for in a conversation.
    Preview,
    /// All lines that change.
    AllChanges,
    /// All lines.
    AllLines,
}

impl DiffExtent {
    fn context_lines(self, diff_lines: usize) -> usize {
        match self {
            Self::Preview | Self::AllChanges => CONTEXT_LINES,
            Self::AllLines => diff_lines,
        }
    }

    fn rows_max(self) -> usize {
        match self {
            Self::Preview => DIFF_ROWS_MAX,
            Self::AllChanges | Self::AllLines => usize::MAX,
        }
    }
}

/// Renders the change of a file as rows of this width. Without the old content, the file is new.
pub fn render_diff(
    path: &str,
    old: Option<&str>,
    new: &str,
    width: usize,
    theme: &ColorTheme,
) -> Vec<StyledRow> {
    render_diff_part(DiffTexts { path, old, new }, DiffExtent::Preview, width, theme)
}

/// Renders a part of the change of a file as rows of this width.
pub fn render_diff_part(
    DiffTexts { path, old, new }: DiffTexts<'_>,
    extent: DiffExtent,
    width: usize,
    theme: &ColorTheme,
) -> Vec<StyledRow> {
    let (old_text, new_text) = (sanitize_text(old.unwrap_or_default()), sanitize_text(new));
    let n_lines = old_text.lines().count().max(new_text.lines().count());
    let diff = TextDiff::compare_lines_until(&old_text, &new_text, Instant::now() + COMPARE_MAX);
    let mut rows = vec![header_row(path, old.is_none(), &diff, theme)];
    let n_digits = n_lines.max(1).to_string().len();
    let mut painter = DiffPainter {
        width,
        theme: *theme,
        n_digits,
        old: CodeHighlighter::for_path(path, *theme),
        new: CodeHighlighter::for_path(path, *theme),
        rows: Vec::new(),
    };
    let groups = diff.grouped_ops(extent.context_lines(n_lines));
    // A highlighter has to read every line, as a comment or a string may begin in a folded one.
    let (mut old_lines, mut new_lines) = (old_text.lines(), new_text.lines());
    let (mut n_old, mut n_new) = (0, 0);
    for group in &groups {
        let Some(first) = group.first() else { continue };
        let n_folded = first.new_range().start - n_new;
        for line in old_lines.by_ref().take(first.old_range().start - n_old) {
            painter.old.highlight_line(line);
        }
        for line in new_lines.by_ref().take(n_folded) {
            painter.new.highlight_line(line);
        }
        if n_folded > 0 {
            painter.push_fold(n_folded);
        }
        for op in group {
            let n_removed = op.old_range().len();
            let n_added = op.new_range().len();
            let removed: Vec<&str> = old_lines.by_ref().take(n_removed).collect();
            let added: Vec<&str> = new_lines.by_ref().take(n_added).collect();
            painter.push_op(op, &removed, &added);
            (n_old, n_new) = (op.old_range().end, op.new_range().end);
        }
        if painter.rows.len() > extent.rows_max() {
            break;
        }
    }
    let n_hidden = painter.rows.len().saturating_sub(extent.rows_max());
    painter.rows.truncate(extent.rows_max());
    rows.append(&mut painter.rows);
    let is_cut = n_hidden > 0;
    if is_cut {
        rows.push(StyledRow::from_span(StyledSpan::styled("… the rest is not shown", theme.secondary())));
    } else if n_new < new_text.lines().count() && !groups.is_empty() {
        painter.push_fold(new_text.lines().count() - n_new);
        rows.append(&mut painter.rows);
    }
    rows
}

/// Shortens the rows of a diff for a conversation; the file has the rest.
pub fn fold_diff(mut rows: Vec<StyledRow>, theme: &ColorTheme) -> Vec<StyledRow> {
    let n_hidden = rows.len().saturating_sub(FOLDED_ROWS_MAX);
    if n_hidden > 0 {
        rows.truncate(FOLDED_ROWS_MAX);
        let text = format!("… {n_hidden} more rows");
        rows.push(StyledRow::from_span(StyledSpan::styled(text, theme.secondary())));
    }
    rows
}

/// The file and the number of lines added and removed.
fn header_row(path: &str, is_new: bool, diff: &TextDiff<'_>, theme: &ColorTheme) -> StyledRow {
    let ChangeCounts { n_added, n_removed } = diff.count_changes();
    let mut row = StyledRow::from_span(StyledSpan::styled(sanitize_line(path), theme.heading()));
    let gap = |row: &StyledRow, gap| if row.text().is_empty() { "" } else { gap };
    if is_new {
        row.push_span(StyledSpan::styled(format!("{}(new)", gap(&row, " ")), theme.secondary()));
    }
    row.push_span(StyledSpan::styled(format!("{}+{n_added}", gap(&row, "  ")), theme.success()));
    row.push_span(StyledSpan::styled(format!(" −{n_removed}"), theme.error()));
    row
}

struct DiffPainter {
    width: usize,
    theme: ColorTheme,
    n_digits: usize,
    old: CodeHighlighter,
    new: CodeHighlighter,
    rows: Vec<StyledRow>,
}

impl DiffPainter {
    fn push_op(&mut self, op: &DiffOp, removed: &[&str], added: &[&str]) {
        let is_equal = matches!(op, DiffOp::Equal { .. });
        for (index, line) in removed.iter().enumerate() {
            let spans = self.old.highlight_line(&expand_tabs(line));
            if !is_equal {
                let content: String = spans.into_iter().map(|span| span.content).collect();
                let spans = [StyledSpan::styled(content, self.theme.error())];
                self.push_line(op.old_range().start + index + 1, '-', self.theme.error(), &spans);
            }
        }
        for (index, line) in added.iter().enumerate() {
            let spans = self.new.highlight_line(&expand_tabs(line));
            let (sign, style) =
                if is_equal { (' ', self.theme.secondary()) } else { ('+', self.theme.success()) };
            self.push_line(op.new_range().start + index + 1, sign, style, &spans);
        }
    }

    fn push_line(&mut self, number: usize, sign: char, style: TextStyle, spans: &[StyledSpan]) {
        let gutter = format!("{number:>n_digits$} {sign} ", n_digits = self.n_digits);
        let rest = " ".repeat(gutter.len());
        let indent =
            RowIndent { first: vec![StyledSpan::styled(gutter, style)], rest: vec![StyledSpan::plain(rest)] };
        self.rows.extend(wrap_spans(spans, self.width, &indent));
    }

    fn push_fold(&mut self, n_lines: usize) {
        let lines = if n_lines == 1 { "line" } else { "lines" };
        let text = format!("{:>n_digits$} ⋮ {n_lines} unchanged {lines}", "", n_digits = self.n_digits);
        self.rows.push(StyledRow::from_span(StyledSpan::styled(text, self.theme.secondary())));
    }
}

#[cfg(test)]
mod tests;
