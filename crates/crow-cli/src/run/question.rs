//! Permission requests: the complete call and the possible answers.

use crow_acp::{AgentPermissionRequest, PermissionOption};
use crow_tui::{
    RequestPart, split_request,
    text::{DiffTexts, render_diff_part, reveal_controls},
};

use super::plain::{PaintMode, THEME, UNWRAPPED};

/// Renders the request. None of it is shortened: the user approves all of it.
pub(super) fn render_question(question: &AgentPermissionRequest, paint: PaintMode) -> Vec<String> {
    split_request(question).iter().flat_map(|part| render_part(part, paint)).collect()
}

fn render_part(part: &RequestPart, paint: PaintMode) -> Vec<String> {
    match part {
        RequestPart::Title { heading, title } => {
            vec![format!("{} {title}", paint.apply_style(THEME.warning().bold(), heading))]
        }
        RequestPart::Text(text) => text.lines().map(|line| format!("  {line}")).collect(),
        RequestPart::Change { path, old, new, extent } => {
            let texts = DiffTexts { path, old: old.as_deref(), new };
            let rows = render_diff_part(texts, *extent, UNWRAPPED, &THEME);
            rows.iter().map(|row| format!("  {}", paint.paint_row(row))).collect()
        }
        RequestPart::Image(mime) => vec![format!("  [image {mime}]")],
        RequestPart::Command(command) => {
            let style = THEME.inline_code();
            command.lines().map(|line| format!("  {}", paint.apply_style(style, line))).collect()
        }
        RequestPart::Argument(text) => {
            let text = text.replace('\n', "\n    ");
            vec![format!("  {}", paint.apply_style(THEME.secondary(), &text))]
        }
    }
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
