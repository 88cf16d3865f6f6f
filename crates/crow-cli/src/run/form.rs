//! Questions that are answered with a number or free text.

use crow_acp::{ElicitationForm, ElicitationOutcome, FormSubject};
use crow_tui::text::reveal_controls;

use super::plain::{PaintMode, THEME};

/// Leaves a question open.
const DONE: &str = "done";

/// Cancels the work that asks, where free text is accepted.
const CANCEL: &str = "cancel";

/// Declines the request of an MCP server.
const DECLINE: &str = "decline";

/// Renders the question and its answers, one per line.
pub(super) fn render_form(form: &ElicitationForm, paint: PaintMode) -> Vec<String> {
    let heading = match form.subject {
        FormSubject::Question | FormSubject::McpServer => "Question:",
        FormSubject::Trust => "Do you trust this?",
    };
    let heading = paint.apply_style(THEME.warning().bold(), heading);
    let message = reveal_controls(&form.message);
    let mut message_lines = message.lines();
    let mut lines = vec![format!("{heading} {}", message_lines.next().unwrap_or_default())];
    lines.extend(message_lines.map(|line| format!("  {line}")));
    let on_one_line = |text: &str| reveal_controls(text).replace('\n', " ");
    let is_numbered = has_numbered_options(form);
    lines.extend(form.options.iter().enumerate().map(|(index, choice)| {
        let mark = if is_numbered { (index + 1).to_string() } else { "-".to_owned() };
        let label = paint.apply_style(THEME.inline_code(), &on_one_line(&choice.label));
        let description = match choice.description.as_str() {
            "" => String::new(),
            description => format!(" — {}", on_one_line(description)),
        };
        format!("  {mark} {label}{description}")
    }));
    lines
}

/// Describes on one line how to answer.
pub(super) fn describe_answers(form: &ElicitationForm) -> String {
    let numbers = match form.options.len() {
        0 => None,
        _ if !has_numbered_options(form) => Some("Enter for the first, or a name".to_owned()),
        1 => Some("1 or Enter".to_owned()),
        n_options => Some(format!("1-{n_options}, Enter for 1")),
    };
    let own_answer = form.free_text.then(|| "your own answer".to_owned());
    let has_cancel = form.free_text || form.subject == FormSubject::McpServer;
    let cancel = has_cancel.then(|| format!("{CANCEL} to stop"));
    let decline = match form.subject {
        FormSubject::Question | FormSubject::Trust => format!("{DONE} to leave it open"),
        FormSubject::McpServer => format!("{DECLINE} to answer nothing"),
    };
    let ways = numbers.into_iter().chain(own_answer).chain([decline]).chain(cancel);
    ways.collect::<Vec<_>>().join(" · ")
}

/// Parses an answer: empty for the first option, a label, a number, or free text.
pub(super) fn parse_answer(form: &ElicitationForm, line: &str) -> Option<ElicitationOutcome> {
    let text = line.trim();
    if text.is_empty() {
        return form.options.first().map(|choice| ElicitationOutcome::Accepted(choice.label.clone()));
    }
    let labelled = form.options.iter().find(|choice| choice.label.trim().eq_ignore_ascii_case(text));
    let number = text.parse::<usize>().ok().filter(|_| has_numbered_options(form));
    let index = number.and_then(|number| number.checked_sub(1));
    match labelled.or_else(|| form.options.get(index?)) {
        Some(choice) => Some(ElicitationOutcome::Accepted(choice.label.clone())),
        None if form.subject == FormSubject::McpServer && text.eq_ignore_ascii_case(DECLINE) => {
            Some(ElicitationOutcome::Declined)
        }
        None if form.subject == FormSubject::McpServer && text.eq_ignore_ascii_case(CANCEL) => {
            Some(ElicitationOutcome::Cancelled)
        }
        None if form.subject != FormSubject::McpServer && text.eq_ignore_ascii_case(DONE) => {
            Some(ElicitationOutcome::Declined)
        }
        None => form.free_text_answer(text).map(|words| ElicitationOutcome::Accepted(words.to_owned())),
    }
}

/// Whether a number chooses an option. To a server, a number may be the answer itself.
fn has_numbered_options(form: &ElicitationForm) -> bool {
    form.subject != FormSubject::McpServer || !form.free_text
}

#[cfg(test)]
mod tests;
