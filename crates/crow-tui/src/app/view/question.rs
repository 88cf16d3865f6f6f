//! A question as rows: all of its subject, scrolled, then the answers and how to give them.

use crow_acp::{AgentPermissionRequest, ElicitationForm, PermissionSubject};
use crow_core::ToolCallContent;
use serde_json::Value;

use super::{
    content,
    rows::{LiveBlock, RowContext, styled_row},
};
use crate::{
    app::{
        keys::{KeyAction, key_for},
        question::{OfferedAnswer, QuestionSubject, WaitingQuestion},
        state::AppState,
    },
    text::{StyledRow, StyledSpan, reveal_controls, sanitize_line, truncate_row},
};

/// Arguments that the question shows in another form.
const SHOWN_ARGUMENTS: [&str; 4] = ["command", "old_string", "new_string", "content"];

/// Renders a question in at most `n_rows`; also returns whether the end of its subject is visible.
pub(super) fn render_question(
    state: &AppState,
    question: &WaitingQuestion,
    n_rows: usize,
    context: RowContext<'_>,
) -> (LiveBlock, bool) {
    let body = match &question.subject {
        QuestionSubject::Call(request) => render_request(request, context),
        QuestionSubject::Form(form) => render_form(form, context),
    };
    let answers = if question.takes_text { Vec::new() } else { render_answers(question, context) };
    let hint = render_hint(state, question, context);
    let n_visible = n_rows.saturating_sub(answers.len() + 1).max(1);
    let n_hidden = body.len().saturating_sub(n_visible);
    // One row says how much is hidden.
    let n_visible = if n_hidden > 0 { n_visible.saturating_sub(1).max(1) } else { n_visible };
    let first = question.scroll.min(body.len().saturating_sub(n_visible));
    let n_below = body.len().saturating_sub(first + n_visible);
    let mut block = LiveBlock::default();
    block.rows.extend(body.into_iter().skip(first).take(n_visible));
    if n_hidden > 0 {
        let text =
            format!("  … {first} rows above, {n_below} below · {} scrolls", key_for(KeyAction::PageDown));
        block.push_row(styled_row(text, context.theme.warning()));
    }
    block.rows.extend(answers);
    block.push_row(hint);
    (block, n_below == 0)
}

/// Renders a permission request: nothing of what will happen is left out.
fn render_request(request: &AgentPermissionRequest, context: RowContext<'_>) -> Vec<StyledRow> {
    let theme = context.theme;
    let heading = match request.subject {
        PermissionSubject::Call => "Allow this?",
        PermissionSubject::Proposal => "Do this?",
        PermissionSubject::Continue => "Continue?",
    };
    let input = request.input.as_ref().and_then(Value::as_object);
    let argument = |name: &str| input.and_then(|input| input.get(name)).and_then(Value::as_str);
    let mut first = StyledRow::from_span(StyledSpan::styled(heading, theme.warning().bold()));
    let title = if argument("command").is_some() {
        "Run a command".to_owned()
    } else {
        sanitize_line(&request.title)
    };
    first.push_span(StyledSpan::plain(format!(" {title}")));
    let mut rows = vec![first];
    let mut has_change = false;
    for part in &request.content {
        match part {
            ToolCallContent::Text(text) => {
                rows.extend(content::render_paragraph(
                    text,
                    theme.secondary(),
                    [content::INDENT; 2],
                    context,
                ));
            }
            ToolCallContent::Diff { path, old, new } => {
                has_change = true;
                rows.extend(content::whole_change(path, old.as_deref(), new, context));
            }
            ToolCallContent::Image { mime, .. } => {
                rows.push(StyledRow::from_text(format!("  [image {mime}]")));
            }
        }
    }
    if let Some(command) = argument("command") {
        let command = reveal_controls(command);
        rows.extend(content::render_paragraph(&command, theme.inline_code(), [content::INDENT; 2], context));
    }
    if !has_change {
        match (argument("old_string"), argument("new_string"), argument("content")) {
            (Some(old), Some(new), _) => rows.extend(content::whole_change("", Some(old), new, context)),
            (_, _, Some(text)) => rows.extend(content::whole_change("", None, text, context)),
            (_, _, None) => {}
        }
    }
    rows.extend(render_other_arguments(request, context));
    rows
}

/// Renders the arguments that have no form of their own and are not in the title.
fn render_other_arguments(request: &AgentPermissionRequest, context: RowContext<'_>) -> Vec<StyledRow> {
    let input = request.input.as_ref().and_then(Value::as_object);
    let others = input.into_iter().flatten().filter(|(name, _)| !SHOWN_ARGUMENTS.contains(&name.as_str()));
    let mut rows = Vec::new();
    for (name, value) in others {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if !request.title.contains(&value) {
            let text = reveal_controls(&format!("{name}: {value}"));
            let style = context.theme.secondary();
            rows.extend(content::render_paragraph(&text, style, [content::INDENT, "    "], context));
        }
    }
    rows
}

fn render_form(form: &ElicitationForm, context: RowContext<'_>) -> Vec<StyledRow> {
    content::render_paragraph(&form.message, context.theme.heading(), ["", ""], context)
}

fn render_answers(question: &WaitingQuestion, context: RowContext<'_>) -> Vec<StyledRow> {
    let answers = question.answers();
    let rows = answers
        .iter()
        .enumerate()
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

/// Renders who has the keyboard, and the keys that answer.
fn render_hint(state: &AppState, question: &WaitingQuestion, context: RowContext<'_>) -> StyledRow {
    let theme = context.theme;
    let more = match state.questions.len() {
        1 => String::new(),
        n_questions => format!(" · {} more questions", n_questions - 1),
    };
    let has_text = !state.composer.is_empty();
    if question.edits_prefix() {
        let text = format!("enter always allows commands that begin so · esc returns{more}");
        return styled_row(text, theme.secondary());
    }
    if question.takes_text {
        return styled_row(format!("enter sends the answer · esc returns{more}"), theme.secondary());
    }
    if has_text && !question.is_focused {
        let tab = key_for(KeyAction::FocusQuestion);
        return styled_row(
            format!("your text has the keyboard · {tab} answers the question{more}"),
            theme.warning(),
        );
    }
    styled_row(format!("a key, or ↑↓ and enter · esc stops{more}"), theme.secondary())
}
