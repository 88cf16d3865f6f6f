//! A question as rows: all of its subject, scrolled, then the answers and how to give them.

use std::rc::Rc;

use crow_acp::ElicitationForm;

use super::{
    content, permission,
    rows::{LiveBlock, RowContext, styled_row},
};
use crate::{
    app::{
        event::DrawnQuestion,
        keys::{KeyAction, key_for},
        question::{OfferedAnswer, QuestionSubject, WaitingQuestion},
        state::AppState,
    },
    text::{StyledRow, StyledSpan, format_count, sanitize_line, split_row, truncate_row},
};

/// Rows of the subject for which answers give way, with the one that counts the others.
const SUBJECT_ROWS_MIN: usize = 3;

/// Renders a question in `n_rows` if it fits; also returns the part of its subject that is visible.
pub(super) fn render_question(
    state: &AppState,
    question: &WaitingQuestion,
    n_rows: usize,
    context: RowContext<'_>,
) -> (LiveBlock, DrawnQuestion) {
    let body = subject_rows(question, context);
    let n_answers_max = n_rows.saturating_sub(1 + body.len().min(SUBJECT_ROWS_MIN)).max(1);
    let answers =
        if question.takes_text { Vec::new() } else { render_answers(question, n_answers_max, context) };
    let n_left_out = if question.takes_text { 0 } else { question.answers().len() - answers.len() };
    let hint = render_hint(state, question, n_left_out > 0, context);
    let n_visible = n_rows.saturating_sub(answers.len() + 1).max(1);
    let n_hidden = body.len().saturating_sub(n_visible);
    // One row says how much is hidden.
    let n_visible = if n_hidden > 0 { n_visible.saturating_sub(1).max(1) } else { n_visible };
    let first = question.scroll.min(body.len().saturating_sub(n_visible));
    let drawn = DrawnQuestion {
        id: question.id,
        n_rows: body.len(),
        columns: context.width,
        first,
        end: body.len().min(first + n_visible),
    };
    let n_below = drawn.n_rows - drawn.end;
    let mut block = LiveBlock::default();
    block.rows.extend_from_slice(&body[drawn.first..drawn.end]);
    if n_hidden > 0 {
        let n_above = format_count(first, "row");
        let text = format!("  … {n_above} above, {n_below} below · {} scrolls", key_for(KeyAction::PageDown));
        block.push_row(styled_row(text, context.theme.warning()));
    }
    block.rows.extend(answers);
    block.push_row(hint);
    if block.rows.len() > n_rows {
        let hint = render_low_window_hint(state, question, context);
        return (LiveBlock { rows: vec![hint], caret: None }, DrawnQuestion { end: first, ..drawn });
    }
    (block, drawn)
}

/// Counts the rows of a question that has room for all of it.
pub(super) fn count_rows(question: &WaitingQuestion, context: RowContext<'_>) -> usize {
    let n_answers = if question.takes_text { 0 } else { question.answers().len() };
    subject_rows(question, context).len() + n_answers + 1
}

fn subject_rows(question: &WaitingQuestion, context: RowContext<'_>) -> Rc<[StyledRow]> {
    question.rows.get_or_make(context.width, context.theme, || render_subject(question, context))
}

/// Renders what is asked, in rows that are cut nowhere.
fn render_subject(question: &WaitingQuestion, context: RowContext<'_>) -> Vec<StyledRow> {
    let rows = match &question.subject {
        QuestionSubject::Call(request) => permission::render_request(request, context),
        QuestionSubject::Form(form) => render_form(form, context),
    };
    rows.into_iter().flat_map(|row| split_row(row, context.width)).collect()
}

fn render_form(form: &ElicitationForm, context: RowContext<'_>) -> Vec<StyledRow> {
    content::render_paragraph(&form.message, context.theme.heading(), ["", ""], context)
}

/// Renders the answers, or those up to the selected one that fit.
fn render_answers(question: &WaitingQuestion, n_rows: usize, context: RowContext<'_>) -> Vec<StyledRow> {
    let answers = question.answers();
    let first = (question.selected + 1).saturating_sub(n_rows);
    let rows = answers
        .iter()
        .enumerate()
        .skip(first)
        .take(n_rows)
        .map(|(index, answer)| render_answer(answer, index == question.selected, context));
    rows.collect()
}

fn render_answer(answer: &OfferedAnswer, is_selected: bool, context: RowContext<'_>) -> StyledRow {
    let theme = context.theme;
    let key = answer.key.map_or(" ", key_for);
    let style = if is_selected { theme.accent() } else { crate::text::TextStyle::default() };
    let mark = if is_selected { "›" } else { " " };
    let mut row = StyledRow::from_span(StyledSpan::styled(format!("  {mark} "), style));
    row.push_span(StyledSpan::styled(format!("{key} "), theme.accent()));
    row.push_span(StyledSpan::styled(format!(" {}", sanitize_line(&answer.name)), style));
    if !answer.description.is_empty() {
        row.push_span(StyledSpan::styled(
            format!("  {}", sanitize_line(&answer.description)),
            theme.secondary(),
        ));
    }
    truncate_row(row, context.width)
}

/// Renders who has the keyboard, and the keys that answer; by name if answers are left out.
fn render_hint(
    state: &AppState,
    question: &WaitingQuestion,
    leaves_out_answers: bool,
    context: RowContext<'_>,
) -> StyledRow {
    let theme = context.theme;
    let more = match state.questions.len() {
        1 => String::new(),
        n_questions => format!(" · {}", format_count(n_questions - 1, "more question")),
    };
    if question.edits_prefix() {
        let text = format!("enter always allows commands that begin so · esc returns{more}");
        return styled_row(text, theme.secondary());
    }
    if question.takes_text {
        return styled_row(format!("enter sends the answer · esc returns{more}"), theme.secondary());
    }
    if is_behind_text(state, question) {
        let tab = key_for(KeyAction::FocusQuestion);
        return styled_row(
            format!("your text has the keyboard · {tab} answers the question{more}"),
            theme.warning(),
        );
    }
    let keys: Vec<&str> = question.answers().iter().filter_map(|answer| Some(key_for(answer.key?))).collect();
    let keys = match (leaves_out_answers, keys.is_empty()) {
        (false, _) => "a key, or ↑↓ and enter".to_owned(),
        (true, true) => "↑↓ shows other answers, enter chooses".to_owned(),
        (true, false) => format!("{}, or ↑↓ and enter", keys.join(" ")),
    };
    styled_row(format!("{keys} · esc stops{more}"), theme.secondary())
}

/// Whether the composer has a text, and so the keyboard.
fn is_behind_text(state: &AppState, question: &WaitingQuestion) -> bool {
    !state.composer.is_empty() && !question.is_focused && !question.takes_text
}

/// Renders the only row of a question for which there is no room: it cannot be approved.
fn render_low_window_hint(
    state: &AppState,
    question: &WaitingQuestion,
    context: RowContext<'_>,
) -> StyledRow {
    let reject = question.answers().iter().find(|answer| !answer.allows).and_then(|answer| answer.key);
    let keys = match (is_behind_text(state, question), question.takes_text, reject) {
        (true, _, _) => format!(" · {} answers it", key_for(KeyAction::FocusQuestion)),
        (false, true, _) => " · enter sends the answer".to_owned(),
        (false, false, Some(key)) => format!(" · {} rejects · esc stops", key_for(key)),
        (false, false, None) => " · esc stops".to_owned(),
    };
    styled_row(format!("window too low for the question{keys}"), context.theme.warning())
}
