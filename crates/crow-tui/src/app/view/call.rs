//! Tool calls as rows: one line, then its changes and its output, folded.

use std::time::Duration;

use crow_core::{ToolCallContent, ToolCallStatus, ToolKind};

use super::{
    content,
    rows::{RowContext, styled_row},
};
use crate::{
    app::cells::{CallCell, CommandEnd},
    text::{StyledRow, StyledSpan, format_elapsed, sanitize_line, split_row, truncate_row},
};

/// Lines of output below a call that is running, that succeeded and that failed.
const RUNNING_LINES: usize = 5;
const DONE_LINES: usize = 3;
const FAILED_LINES: usize = 12;

/// A faster call has no time on its line.
const SHOWN_TIME_MIN: Duration = Duration::from_secs(1);

/// Frames of the sign of a running call.
pub(super) const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The time of one frame of the spinner.
pub(super) const SPINNER_TIME: Duration = Duration::from_millis(200);

pub(super) fn render_call(call: &CallCell, context: RowContext<'_>) -> Vec<StyledRow> {
    if context.unfolded_call == Some(call.id.as_str()) {
        return render_unfolded(call, context);
    }
    let mut rows = vec![truncate_row(call_line(call, context), context.width)];
    if call.is_stub {
        rows.push(styled_row(
            format!("{}… the stored session has the rest", content::INDENT),
            context.theme.secondary(),
        ));
        return rows;
    }
    let changes = || -> Vec<StyledRow> {
        let changes = call.content.iter().filter_map(|content| {
            let ToolCallContent::Diff { path, old, new } = content else { return None };
            Some(content::render_change(path, old.as_deref(), new, context))
        });
        changes.flatten().collect()
    };
    // A change that waits for an earlier call is in each frame.
    match context.is_complete {
        true => rows.append(&mut changes()),
        false => {
            rows.extend_from_slice(&call.change_rows.get_or_make(context.width, context.theme, changes));
        }
    }
    rows.extend(render_output(
        &call.printed_text(),
        n_output_lines(call, context),
        call.n_lines_dropped,
        context,
    ));
    rows
}

/// Renders all of a call, in rows of the width of the screen.
pub(super) fn render_unfolded(call: &CallCell, context: RowContext<'_>) -> Vec<StyledRow> {
    let context = RowContext { is_complete: true, unfolded_call: None, ..context };
    render_call(call, context).into_iter().flat_map(|row| split_row(row, context.width)).collect()
}

/// The number of lines of output that are not folded.
fn n_output_lines(call: &CallCell, context: RowContext<'_>) -> usize {
    if context.is_complete {
        return usize::MAX;
    }
    match (call.status, call.kind) {
        (ToolCallStatus::Failed, _) => FAILED_LINES,
        (ToolCallStatus::Completed, ToolKind::Execute) => DONE_LINES,
        // The result of reading and searching is for the model.
        (ToolCallStatus::Completed, _) => 0,
        (ToolCallStatus::InProgress, _) => RUNNING_LINES,
        (ToolCallStatus::Pending, _) => 0,
    }
}

fn call_line(call: &CallCell, context: RowContext<'_>) -> StyledRow {
    let theme = context.theme;
    let elapsed = call.elapsed(context.now);
    let frame = elapsed.map_or(0, |elapsed| elapsed.as_millis() / SPINNER_TIME.as_millis());
    let spinner = SPINNER[usize::try_from(frame).unwrap_or(0) % SPINNER.len()];
    let (mark, style) = match call.status {
        ToolCallStatus::Pending => ("○", theme.secondary()),
        ToolCallStatus::InProgress => (spinner, theme.warning()),
        ToolCallStatus::Completed => ("✓", theme.success()),
        ToolCallStatus::Failed => ("✗", theme.error()),
    };
    let mut facts = Vec::new();
    if let Some(end) = call.end.as_ref().filter(|end| **end != CommandEnd::Exited(0)) {
        facts.push(describe_end(end));
    }
    facts.extend(elapsed.filter(|elapsed| *elapsed >= SHOWN_TIME_MIN).map(format_elapsed));
    let facts = facts.iter().map(|fact| format!(" · {fact}")).collect::<String>();
    let room = context.width.saturating_sub(facts.chars().count());
    let mut row = StyledRow::from_span(StyledSpan::styled(mark, style));
    row.push_span(StyledSpan::plain(format!(" {}", sanitize_line(&call.title))));
    let mut row = truncate_row(row, room);
    row.push_span(StyledSpan::styled(facts, theme.secondary()));
    row
}

/// The end of a command in words.
pub(super) fn describe_end(end: &CommandEnd) -> String {
    match end {
        CommandEnd::Exited(code) => format!("exit code {code}"),
        CommandEnd::Signalled(signal) => format!("signal {}", sanitize_line(signal)),
    }
}

/// Renders the last lines of output.
pub(super) fn render_output(
    text: &str,
    n_lines_max: usize,
    n_dropped: usize,
    context: RowContext<'_>,
) -> Vec<StyledRow> {
    if n_lines_max == 0 {
        return Vec::new();
    }
    let (n_hidden, tail) = split_last_lines(text.trim_end(), n_lines_max);
    let rows = content::output_rows(tail, context);
    let mut shown = Vec::new();
    if n_hidden + n_dropped > 0 {
        let text = format!("{}… {} earlier lines", content::INDENT, n_hidden + n_dropped);
        shown.push(styled_row(text, context.theme.secondary()));
    }
    for row in rows {
        // A line that the terminal wraps would take more rows than were counted.
        shown.push(if context.is_complete { row } else { truncate_row(row, context.width) });
    }
    shown
}

/// Returns the number of lines above the last ones, and the last ones. A frame costs the rows that it shows.
fn split_last_lines(text: &str, n_lines: usize) -> (usize, &str) {
    match text.rmatch_indices('\n').nth(n_lines.saturating_sub(1)) {
        Some((end, _)) => (text[..end].matches('\n').count() + 1, &text[end + 1..]),
        None => (0, text),
    }
}
