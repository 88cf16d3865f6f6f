//! Cells as rows.

use crow_core::{PlanEntry, PlanStatus};

use super::{
    call, content,
    rows::{RowContext, styled_row},
};
use crate::{
    app::cells::{CommandCell, CommandEnd, TranscriptCell},
    text::{StyledRow, StyledSpan, render_part, sanitize_line, truncate_row},
};

/// Lines of a user's command that are shown while it runs and after it.
const COMMAND_LINES: usize = 20;

/// Renders cells in order, separated by blank rows.
pub(super) fn render_cells<'a>(
    cells: &'a [TranscriptCell],
    previous: &mut Option<&'a TranscriptCell>,
    context: RowContext<'_>,
) -> Vec<StyledRow> {
    let mut rows = Vec::new();
    for cell in cells {
        let cell_rows = render_cell(cell, context);
        if cell_rows.is_empty() {
            continue;
        }
        if previous.is_some_and(|previous| has_gap(previous, cell)) {
            rows.push(StyledRow::default());
        }
        rows.extend(cell_rows);
        *previous = Some(cell);
    }
    rows
}

fn render_cell(cell: &TranscriptCell, context: RowContext<'_>) -> Vec<StyledRow> {
    let theme = context.theme;
    match cell {
        TranscriptCell::Prompt(text) => {
            content::render_paragraph(text, theme.accent(), ["› ", "  "], context)
        }
        TranscriptCell::Text(part) => render_part(part, context.width, &context.theme),
        TranscriptCell::Thought(text) => render_thought(text, context),
        TranscriptCell::Call(call) => call::render_call(call, context),
        TranscriptCell::Plan(entries) => render_plan(entries, context),
        TranscriptCell::Notice(text) => {
            content::render_paragraph(text, theme.secondary(), ["• ", "  "], context)
        }
        TranscriptCell::Problem(text) => {
            content::render_paragraph(text, theme.error(), ["✗ ", "  "], context)
        }
        TranscriptCell::Command(command) => render_command(command, context),
    }
}

/// Renders thinking as its first line, or all of it where nothing is folded.
fn render_thought(text: &str, context: RowContext<'_>) -> Vec<StyledRow> {
    let style = context.theme.secondary();
    if context.is_complete {
        return content::render_paragraph(text, style.italic(), ["∴ ", "  "], context);
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = sanitize_line(lines.next().unwrap_or_default());
    let n_more = lines.count();
    let more = if n_more > 0 { format!(" … {n_more} more lines") } else { String::new() };
    let room = context.width.saturating_sub(more.len() + 2);
    let mut row = truncate_row(styled_row(format!("∴ {}", first.trim()), style.italic()), room);
    row.push_span(StyledSpan::styled(more, style));
    vec![row]
}

/// Renders a plan, complete.
pub(super) fn render_plan(entries: &[PlanEntry], context: RowContext<'_>) -> Vec<StyledRow> {
    let theme = context.theme;
    let n_done = entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
    let heading = format!("Plan · {n_done} of {} done", entries.len());
    let mut rows = vec![styled_row(heading, theme.secondary())];
    for entry in entries {
        let (mark, style) = match entry.status {
            PlanStatus::Pending => ("☐ ", theme.secondary()),
            PlanStatus::InProgress => ("▸ ", theme.heading()),
            PlanStatus::Completed => ("☑ ", theme.success()),
        };
        let text = sanitize_line(&entry.text);
        rows.extend(content::render_paragraph(&text, style, [mark, "  "], context));
    }
    rows
}

/// Renders a command of the user with the end of its output.
fn render_command(command: &CommandCell, context: RowContext<'_>) -> Vec<StyledRow> {
    let theme = context.theme;
    let mut rows = content::render_paragraph(&command.command, theme.accent(), ["! ", "  "], context);
    let n_lines = if context.is_complete { usize::MAX } else { COMMAND_LINES };
    rows.extend(call::render_output(&command.output, n_lines, 0, context));
    let end = match &command.end {
        None => Some(("running; ctrl-c ends it".to_owned(), theme.secondary())),
        Some(CommandEnd::Exited(0)) => None,
        Some(end) => Some((call::describe_end(end), theme.error())),
    };
    rows.extend(end.map(|(text, style)| styled_row(format!("{}{text}", content::INDENT), style)));
    rows
}

/// Whether a blank row separates two cells.
fn has_gap(previous: &TranscriptCell, next: &TranscriptCell) -> bool {
    let is_line = |cell: &TranscriptCell| {
        matches!(cell, TranscriptCell::Call(_) | TranscriptCell::Thought(_) | TranscriptCell::Notice(_))
    };
    // A part of a text may continue the one above.
    let continues = matches!(next, TranscriptCell::Text(part) if !part.is_apart());
    !(continues || is_line(previous) && is_line(next))
}
