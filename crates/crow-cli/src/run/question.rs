//! Permission requests: the complete call and the possible answers.

use crow_acp::{AgentPermissionRequest, PermissionOption, PermissionSubject};
use crow_core::{ToolCallContent, ToolKind};
use crow_tui::text::{fold_diff, render_diff, reveal_controls};
use serde_json::{Map, Value};

use super::plain::{PaintMode, THEME, UNWRAPPED};

/// Renders the request. A command is never shortened: the user approves all of it.
pub(super) fn render_question(question: &AgentPermissionRequest, paint: PaintMode) -> Vec<String> {
    match question.subject {
        PermissionSubject::Call => render_call(question, "Allow this?", paint),
        PermissionSubject::Proposal => render_call(question, "Do this?", paint),
        PermissionSubject::Continue => render_call(question, "Continue?", paint),
    }
}

/// Renders the explanation of the request: its origin and reason.
fn render_explanation(question: &AgentPermissionRequest) -> Vec<String> {
    let texts = question.content.iter().filter_map(|content| match content {
        ToolCallContent::Text(text) => Some(reveal_controls(text)),
        ToolCallContent::Diff { .. } | ToolCallContent::Image { .. } => None,
    });
    texts.flat_map(|text| text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>()).collect()
}

fn render_call(question: &AgentPermissionRequest, heading: &str, paint: PaintMode) -> Vec<String> {
    let empty = Map::new();
    let input = question.input.as_ref().and_then(Value::as_object).unwrap_or(&empty);
    // Another tool may mean something else by the name of an argument.
    let text_of = |kind: ToolKind, name: &str| {
        input.get(name).filter(|_| question.kind == kind).and_then(Value::as_str)
    };
    let heading = paint.apply_style(THEME.warning().bold(), heading);
    let title = reveal_controls(&question.title).replace('\n', " ");
    let mut lines = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    if let Some(command) = text_of(ToolKind::Execute, "command") {
        lines.push(format!("{heading} Run a command"));
        lines.extend(render_explanation(question));
        let command = reveal_controls(command);
        lines.extend(
            command.lines().map(|line| format!("  {}", paint.apply_style(THEME.inline_code(), line))),
        );
        shown.push("command");
    } else {
        lines.push(format!("{heading} {title}"));
        lines.extend(render_explanation(question));
        let is_path = matches!(question.kind, ToolKind::Read | ToolKind::Edit);
        let is_in_title =
            |value: &Value| value.as_str().is_some_and(|value| title.ends_with(&format!(" {value}")));
        let path = input.iter().find(|(_, value)| is_path && is_in_title(value));
        shown.extend(path.map(|(name, _)| name.as_str()));
    }
    let text = |name| text_of(ToolKind::Edit, name);
    let change = match (text("old_string"), text("new_string"), text("content")) {
        (Some(old), Some(new), _) if old != new => {
            shown.extend(["old_string", "new_string"]);
            render_change(Some(old), new, paint)
        }
        (_, _, Some(content)) => {
            shown.push("content");
            render_change(None, content, paint)
        }
        (_, _, None) => Vec::new(),
    };
    let other_inputs = input.iter().filter(|(name, _)| !shown.contains(&name.as_str()));
    for (name, value) in other_inputs {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let text = reveal_controls(&format!("{name}: {value}")).replace('\n', "\n    ");
        lines.push(format!("  {}", paint.apply_style(THEME.secondary(), &text)));
    }
    lines.extend(change.into_iter().map(|line| format!("  {line}")));
    lines
}

/// Renders a change without its file, which is in the title.
fn render_change(old: Option<&str>, new: &str, paint: PaintMode) -> Vec<String> {
    let old = old.map(reveal_controls);
    let rows = render_diff("", old.as_deref(), &reveal_controls(new), UNWRAPPED, &THEME);
    fold_diff(rows, &THEME).iter().map(|row| paint.paint_row(row)).collect()
}

/// Longer lists of answers are written one per line.
const LINE_CHARS_MAX: usize = 72;

/// Lists the answers.
pub(super) fn describe_choices(question: &AgentPermissionRequest) -> String {
    let labels = question.options.iter().enumerate().map(|(index, choice)| {
        let key = choice_key(question, index).map(|key| format!(" ({key})")).unwrap_or_default();
        format!("{} {}{key}", index + 1, reveal_controls(&choice.name))
    });
    let labels: Vec<String> = labels.collect();
    let line = labels.join(" · ");
    if line.chars().count() <= LINE_CHARS_MAX { line } else { labels.join("\n  ") }
}

/// Parses an answer: a number, a letter or a word.
pub(super) fn parse_choice(question: &AgentPermissionRequest, typed: &str) -> Option<String> {
    let typed = typed.trim().to_lowercase();
    let numbered = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let letter = match typed.as_str() {
        "yes" => "y",
        "no" => "n",
        "always" => "a",
        other => other,
    };
    let choice = match numbered {
        Some(index) => question.options.get(index),
        None => {
            let find_by_key =
                |key| (0..question.options.len()).find(|index| choice_key(question, *index) == Some(key));
            // With a single lasting answer, `a` means it.
            let found = find_by_key(letter).or_else(|| if letter == "a" { find_by_key("s") } else { None });
            found.and_then(|index| question.options.get(index))
        }
    };
    choice.map(|choice| choice.id.clone())
}

/// Finds the answer that applies to this call only.
pub(super) fn find_one_time_choice(
    question: &AgentPermissionRequest,
    answer: OneTimeAnswer,
) -> Option<String> {
    let is_allowed = answer == OneTimeAnswer::Allow;
    let choice = question.options.iter().find(|choice| choice.allows == is_allowed && !choice.always);
    choice.map(|choice| choice.id.clone())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OneTimeAnswer {
    Allow,
    Reject,
}

/// Returns the letter of a choice. Rejecting for good has none: a slip would be costly.
fn choice_key(question: &AgentPermissionRequest, index: usize) -> Option<&'static str> {
    let choice = question.options.get(index)?;
    let is_same_kind =
        |other: &&PermissionOption| (other.allows, other.always) == (choice.allows, choice.always);
    match (choice.allows, choice.always, question.options[..index].iter().filter(is_same_kind).count()) {
        (true, false, 0) => Some("y"),
        (false, false, 0) => Some("n"),
        // Rejects and tells the model what to do instead.
        (false, false, 1) => Some("t"),
        // The narrower of the two comes first.
        (true, true, 0) => Some("s"),
        (true, true, 1) => Some("a"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
