//! A call that needs a person's word: what it would do, whole, and which answers there are.

use console::Style;
use crow_acp::{PermissionChoice, PermissionQuestion, Subject};
use crow_core::Content;
use serde_json::{Map, Value};

use super::{
    diff,
    plain::{Paint, visible},
};

/// Draws the question. A command is never shortened: half of it is not what is allowed.
pub(super) fn lines(question: &PermissionQuestion, paint: Paint) -> Vec<String> {
    match question.subject {
        Subject::Call => call(question, "May Crow do this?", paint),
        Subject::Offer => call(question, "Shall Crow do this?", paint),
        Subject::GoOn => call(question, "Shall it go on?", paint),
    }
}

/// What is said about a call: who asks for it, and why.
fn said(question: &PermissionQuestion) -> Vec<String> {
    let texts = question.content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(visible(text)),
        Content::Diff { .. } | Content::Image { .. } => None,
    });
    texts.flat_map(|text| text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>()).collect()
}

fn call(question: &PermissionQuestion, heading: &str, paint: Paint) -> Vec<String> {
    let empty = Map::new();
    let input = question.input.as_ref().and_then(Value::as_object).unwrap_or(&empty);
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let heading = paint.on(Style::new().yellow().bold(), heading);
    let title = visible(&question.title).replace('\n', " ");
    let mut lines = Vec::new();
    let mut drawn: Vec<&str> = Vec::new();
    if let Some(command) = text("command") {
        lines.push(format!("{heading} Run a command"));
        lines.extend(said(question));
        let command = visible(command);
        lines.extend(command.lines().map(|line| format!("  {}", paint.on(Style::new().cyan(), line))));
        drawn.push("command");
    } else {
        lines.push(format!("{heading} {title}"));
        lines.extend(said(question));
    }
    let change = match (text("old_string"), text("new_string"), text("content")) {
        (Some(old), Some(new), _) => {
            drawn.extend(["old_string", "new_string"]);
            diff::lines(old, new, paint)
        }
        (_, _, Some(content)) => {
            drawn.push("content");
            diff::lines("", content, paint)
        }
        (_, _, None) => Vec::new(),
    };
    let rest = input.iter().filter(|(name, _)| !drawn.contains(&name.as_str()));
    for (name, value) in rest {
        let is_said = value.as_str().is_some_and(|value| title.ends_with(&format!(" {value}")));
        if !is_said {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = visible(&format!("{name}: {value}")).replace('\n', "\n    ");
            lines.push(format!("  {}", paint.on(Style::new().dim(), &text)));
        }
    }
    lines.extend(change.into_iter().map(|line| format!("  {line}")));
    lines
}

/// Longer answers stand on lines of their own.
const LINE_CHARS_MAX: usize = 72;

/// Names the answers.
pub(super) fn answers(question: &PermissionQuestion) -> String {
    let named = question.choices.iter().enumerate().map(|(index, choice)| {
        let key = key(question, index).map(|key| format!(" ({key})")).unwrap_or_default();
        format!("{} {}{key}", index + 1, visible(&choice.name))
    });
    let named: Vec<String> = named.collect();
    let line = named.join(" · ");
    if line.chars().count() <= LINE_CHARS_MAX { line } else { named.join("\n  ") }
}

/// Reads an answer: a number, a letter or its word.
pub(super) fn chosen(question: &PermissionQuestion, typed: &str) -> Option<String> {
    let typed = typed.trim().to_lowercase();
    let numbered = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let letter = match typed.as_str() {
        "yes" => "y",
        "no" => "n",
        "always" => "a",
        other => other,
    };
    let choice = match numbered {
        Some(index) => question.choices.get(index),
        None => {
            let keyed =
                |wanted| (0..question.choices.len()).find(|index| key(question, *index) == Some(wanted));
            // Where one answer lasts, it is the one that is meant.
            let found = keyed(letter).or_else(|| if letter == "a" { keyed("s") } else { None });
            found.and_then(|index| question.choices.get(index))
        }
    };
    choice.map(|choice| choice.id.clone())
}

/// Finds the answer that holds for this call only.
pub(super) fn once(question: &PermissionQuestion, allows: Allows) -> Option<String> {
    let allows = allows == Allows::Yes;
    let choice = question.choices.iter().find(|choice| choice.allows == allows && !choice.always);
    choice.map(|choice| choice.id.clone())
}

/// A yes or a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allows {
    Yes,
    No,
}

/// The letter of a choice. Refusing for good has none: it is too easily typed.
fn key(question: &PermissionQuestion, index: usize) -> Option<&'static str> {
    let choice = question.choices.get(index)?;
    let is_alike = |other: &&PermissionChoice| (other.allows, other.always) == (choice.allows, choice.always);
    match (choice.allows, choice.always, question.choices[..index].iter().filter(is_alike).count()) {
        (true, false, 0) => Some("y"),
        (false, false, 0) => Some("n"),
        // A no that goes on to hear what to do instead.
        (false, false, 1) => Some("t"),
        // The narrower of two comes first.
        (true, true, 0) => Some("s"),
        (true, true, 1) => Some("a"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
