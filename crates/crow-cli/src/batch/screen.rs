//! A batch on stderr: a line for each task that ended, and on a terminal a last line that shows how far it is.

#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    time::Duration,
};

use crow_core::{format_tokens, render_bar};
use crow_tui::text::{
    StyledRow, StyledSpan, TextStyle, format_elapsed, sanitize_line, text_width, truncate_row,
};

use super::{
    result_line::{BatchTaskState, TaskResult},
    tally::BatchTally,
};
use crate::run::{PaintMode, THEME};

/// Columns of the bar.
const BAR_COLUMNS: usize = 20;

/// Columns below which the bar gives way to the numbers.
const COLUMNS_WITH_BAR: usize = 50;

/// The rest of the bar.
const BAR_REST: &str = "·";

/// Shows the progress of a batch.
pub(super) struct BatchScreen<W> {
    pub(super) err: W,
    pub(super) paint: PaintMode,
    /// Returns the columns of a terminal that can redraw its last line.
    pub(super) live_columns: fn() -> Option<usize>,
}

/// The changing part of the progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchStatus {
    pub(super) n_running: usize,
    /// Tokens of all tasks, with those that are running.
    pub(super) tokens: u64,
    pub(super) elapsed: Duration,
    pub(super) is_stopping: bool,
}

impl<W: Write> BatchScreen<W> {
    /// Shows the end of a task.
    pub(super) fn show_result(&mut self, result: &TaskResult, tally: &BatchTally) -> io::Result<()> {
        let columns = (self.live_columns)();
        let mut row = StyledRow::default();
        if columns.is_none() {
            let n_open = tally.n_open().to_string();
            let n_ended = format!("{:>width$}", tally.n_ended(), width = n_open.len());
            row.push_span(StyledSpan::styled(format!("[{n_ended}/{n_open}] "), THEME.secondary()));
        }
        push_result(&mut row, result);
        self.write_row(&truncate_row(row, columns.unwrap_or(usize::MAX)))
    }

    /// Shows a notice about the batch.
    pub(super) fn show_notice(&mut self, text: &str) -> io::Result<()> {
        self.write_row(&StyledRow::from_span(StyledSpan::styled(sanitize_line(text), THEME.warning())))
    }

    /// Shows a line of the footer.
    pub(super) fn show_labelled(&mut self, label: &str, text: &str) -> io::Result<()> {
        let line = format!("{label:<12}{}", sanitize_line(text));
        self.write_row(&StyledRow::from_span(StyledSpan::styled(line, THEME.secondary())))
    }

    /// Separates what follows, on a terminal.
    pub(super) fn show_gap(&mut self) -> io::Result<()> {
        match (self.live_columns)() {
            Some(_) => writeln!(self.err),
            None => Ok(()),
        }
    }

    /// Draws the last line again.
    pub(super) fn draw_status(&mut self, status: BatchStatus, tally: &BatchTally) -> io::Result<()> {
        let Some(columns) = (self.live_columns)() else { return Ok(()) };
        // The last column stays empty: a cursor behind it is in the next line on some terminals.
        let row = truncate_row(render_status(status, tally, columns), columns.saturating_sub(1));
        write!(self.err, "\r\x1b[2K{}", self.paint.paint_row(&row))?;
        self.err.flush()
    }

    /// Removes the last line.
    pub(super) fn erase_status(&mut self) -> io::Result<()> {
        if (self.live_columns)().is_some() {
            write!(self.err, "\r\x1b[2K")?;
        }
        self.err.flush()
    }

    fn write_row(&mut self, row: &StyledRow) -> io::Result<()> {
        self.erase_status()?;
        writeln!(self.err, "{}", self.paint.paint_row(row))?;
        self.err.flush()
    }
}

fn push_result(row: &mut StyledRow, result: &TaskResult) {
    let (mark, style) = match result.state {
        BatchTaskState::Done => ("✓", THEME.success()),
        BatchTaskState::Failed => ("✗", THEME.error()),
        BatchTaskState::Cancelled => ("–", THEME.warning()),
    };
    row.push_span(StyledSpan::styled(mark, style));
    row.push_span(StyledSpan::plain(format!(" {}", sanitize_line(&result.id))));
    let mut facts = format!(" · {}", format_elapsed(Duration::from_secs_f64(result.seconds)));
    if let Some(tokens) = result.tokens {
        facts += &format!(" · {} tokens", format_tokens(tokens));
    }
    if let Some(branch) = &result.branch {
        facts += &format!(" · {}", sanitize_line(branch));
    }
    if let Some(worktree) = &result.worktree {
        facts += &format!(" · ignored files in {}", sanitize_line(worktree));
    }
    row.push_span(StyledSpan::styled(facts, THEME.secondary()));
    if let Some(error) = &result.error {
        row.push_span(StyledSpan::plain(format!(" · {}", sanitize_line(error))));
    }
}

/// Renders the last line: the bar, and the facts that fit.
fn render_status(status: BatchStatus, tally: &BatchTally, columns: usize) -> StyledRow {
    let (n_ended, n_open) = (tally.n_ended(), tally.n_open());
    let mut row = StyledRow::default();
    if columns >= COLUMNS_WITH_BAR {
        let bar = render_bar(n_ended, n_open, BAR_COLUMNS);
        let rest = BAR_REST.repeat(BAR_COLUMNS.saturating_sub(text_width(&bar)));
        row.push_span(StyledSpan::styled(bar, THEME.accent()));
        row.push_span(StyledSpan::styled(format!("{rest} "), THEME.secondary()));
    }
    row.push_span(StyledSpan::plain(format!("{n_ended}/{n_open}")));
    for (style, fact) in status_facts(status, tally) {
        let fact = format!(" · {fact}");
        if row.width() + text_width(&fact) < columns {
            row.push_span(StyledSpan::styled(fact, style));
        }
    }
    row
}

fn status_facts(status: BatchStatus, tally: &BatchTally) -> Vec<(TextStyle, String)> {
    let n_failed = tally.n_tasks(BatchTaskState::Failed);
    let mut facts = Vec::new();
    if status.is_stopping {
        facts.push((THEME.warning(), format!("stopping {}", status.n_running)));
    }
    if n_failed > 0 {
        facts.push((THEME.error(), format!("{n_failed} failed")));
    }
    if !status.is_stopping {
        facts.push((THEME.secondary(), format!("{} running", status.n_running)));
    }
    facts.push((THEME.secondary(), format_elapsed(status.elapsed)));
    let n_ended = tally.n_ended();
    if n_ended > 0 && tally.n_left() > 0 && !status.is_stopping {
        let left = status.elapsed.mul_f64(tally.n_left() as f64 / n_ended as f64);
        facts.push((THEME.secondary(), format!("{} left", format_elapsed(left))));
    }
    facts.push((THEME.secondary(), format!("{} tokens", format_tokens(status.tokens))));
    facts
}
