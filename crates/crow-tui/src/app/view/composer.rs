//! The composer as rows, with the caret.

use super::rows::{LiveBlock, RowContext, styled_row};
use crate::{
    app::{
        composer::layout::{DraftLayout, display_text},
        state::AppState,
    },
    screen::CaretPosition,
    text::{StyledRow, StyledSpan, TextStyle, sanitize_line, text_width},
};

/// Cells in front of the text.
const MARK: &str = "› ";
const ANSWER_MARK: &str = "→ ";

/// The hint in an empty composer: the first one that fits.
const PLACEHOLDERS: [&str; 3] = [
    "Ask anything; / for commands, @ for files, ! for the shell",
    "Ask anything; / command, @ file, ! shell",
    "Ask anything",
];

/// Renders the draft; of a long one the rows around the caret.
pub(super) fn render_composer(state: &AppState, n_rows_max: usize, context: RowContext<'_>) -> LiveBlock {
    if let Some(search) = &state.search {
        return render_search(state, &search.query, search.index, context);
    }
    let theme = context.theme;
    let takes_text = state.questions.front().is_some_and(|question| question.takes_text);
    let mark = if takes_text { ANSWER_MARK } else { MARK };
    // A command for the shell keeps its sign, which is edited like any other letter.
    let is_shell = !takes_text && state.composer.text().starts_with('!');
    let style = if is_shell { theme.accent() } else { TextStyle::default() };
    let width = context.width.saturating_sub(text_width(MARK));
    let layout = DraftLayout::new(&state.composer, width);
    let first = layout.caret_line.saturating_sub(n_rows_max.saturating_sub(1));
    let mut block = LiveBlock::default();
    for (index, line) in layout.lines.iter().enumerate().skip(first).take(n_rows_max) {
        let mut row =
            StyledRow::from_span(StyledSpan::styled(if index == 0 { mark } else { "  " }, theme.accent()));
        let text = &state.composer.text()[line.start..line.end];
        row.push_span(StyledSpan::styled(display_text(&state.composer, text), style));
        block.push_row(row);
    }
    if state.composer.is_empty() {
        let fitting = PLACEHOLDERS.into_iter().find(|hint| text_width(hint) <= width);
        let hint = if takes_text { "Type the answer; esc returns" } else { fitting.unwrap_or_default() };
        if let Some(row) = block.rows.first_mut() {
            row.push_span(StyledSpan::styled(hint, theme.secondary()));
        }
    }
    let column = text_width(MARK) + layout.caret_column;
    block.caret = Some(CaretPosition {
        row: u16::try_from(layout.caret_line - first).unwrap_or(0),
        column: u16::try_from(column).unwrap_or(0),
    });
    block
}

fn render_search(state: &AppState, query: &str, index: usize, context: RowContext<'_>) -> LiveBlock {
    let theme = context.theme;
    let matches = state.history.find_matches(query);
    let heading = format!("search: {}", sanitize_line(query));
    let column = u16::try_from(text_width(&heading)).unwrap_or(0);
    let mut block = LiveBlock::default();
    block.push_row(styled_row(heading, theme.accent()));
    block.caret = Some(CaretPosition { row: 0, column });
    let text = matches.get(index).copied().unwrap_or("no prompt has these words");
    let count =
        if matches.is_empty() { String::new() } else { format!(" ({} of {})", index + 1, matches.len()) };
    let line = sanitize_line(text.lines().next().unwrap_or_default());
    let mut row = StyledRow::from_text(format!("{MARK}{line}"));
    row.push_span(StyledSpan::styled(count, theme.secondary()));
    block.push_row(row);
    block
}
