//! Parses tasks and phases.

use super::{PhaseKind, TaskId, TaskItem, TaskPhase};
use crate::markdown::{self, MarkdownHeading};
use crate::sanitize_text;

/// Parses a task.
pub(super) fn parse_task(line: markdown::MarkdownLine<'_>) -> Option<TaskItem> {
    let item = markdown::parse_checkbox(line.text)?;
    let (id, rest) = parse_task_id(item.text)?;
    let mut task = TaskItem {
        id,
        done: item.is_ticked,
        parallel: false,
        stories: Vec::new(),
        phase: None,
        text: String::new(),
        line: line.number,
        marker: line.start + item.marker,
    };
    task.text = sanitize_text(&read_labels(rest, &mut task));
    Some(task)
}

/// Emphasis around an id or a label.
const EMPHASIS_MARKS: [char; 3] = ['*', '_', '`'];

/// Separators after an id.
const SEPARATORS: [char; 6] = [':', '.', '-', '–', '—', '：'];

/// Parses the id at the beginning of an item; returns the text after it.
fn parse_task_id(item: &str) -> Option<(TaskId, &str)> {
    let inner = item.trim_start_matches(EMPHASIS_MARKS);
    let emphasis = &item[..item.len() - inner.len()];
    let (inner, is_bracketed) = inner.strip_prefix('[').map_or((inner, false), |inner| (inner, true));
    let end = inner.find(|char: char| !char.is_alphanumeric()).unwrap_or(inner.len());
    let id = inner[..end].starts_with('T').then(|| TaskId::parse(&inner[..end])).flatten()?;
    let rest = if is_bracketed { inner[end..].strip_prefix(']')? } else { &inner[end..] };
    let rest = rest.trim_start_matches(SEPARATORS);
    // If the emphasis does not end after the id, it includes the labels.
    let rest = if emphasis.is_empty() { rest } else { rest.strip_prefix(emphasis).unwrap_or(rest) };
    Some((id, rest.trim_start().trim_start_matches(SEPARATORS).trim_start()))
}

/// Parses the labels before a task's text; returns the text with unknown labels.
fn read_labels(rest: &str, task: &mut TaskItem) -> String {
    let mut rest = rest;
    let mut unknown_labels = String::new();
    while let Some((label, after)) = split_label(rest) {
        match parse_label(label) {
            Some(labels) => {
                task.parallel |= labels.contains(&TaskLabel::Parallel);
                task.stories.extend(labels.iter().filter_map(|word| match word {
                    TaskLabel::Story(number) => Some(number),
                    TaskLabel::Parallel => None,
                }));
            }
            None => {
                unknown_labels.push_str(&rest[..rest.len() - after.len()]);
                unknown_labels.push(' ');
            }
        }
        rest = after.trim_start();
    }
    let text = rest.trim_start_matches(SEPARATORS).trim();
    // The other half of an emphasis around the id.
    let has_unpaired_bold = text.matches("**").count() % 2 == 1;
    unknown_labels.push_str(&if has_unpaired_bold { text.replacen("**", "", 1) } else { text.to_owned() });
    unknown_labels.trim().to_owned()
}

/// Splits off a bracketed label at the beginning; a link is not a label.
fn split_label(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start_matches(EMPHASIS_MARKS);
    let emphasis = &text[..text.len() - inner.len()];
    let (label, after) = inner.strip_prefix('[')?.split_once(']')?;
    let after = after.strip_prefix(emphasis).unwrap_or(after);
    (!after.starts_with('(') && !label.contains('[')).then_some((label, after))
}

#[derive(PartialEq, Eq)]
enum TaskLabel {
    Parallel,
    Story(u32),
}

/// Parses a label such as `P` or `US1+US2`; `None` for any other.
fn parse_label(label: &str) -> Option<Vec<TaskLabel>> {
    let labels = label.split(['+', ',', '/', '&', ' ']).filter(|word| !word.is_empty());
    let labels: Option<Vec<TaskLabel>> = labels
        .map(|word| match parse_story_label(word) {
            Some(number) => Some(TaskLabel::Story(number)),
            None => word.eq_ignore_ascii_case("p").then_some(TaskLabel::Parallel),
        })
        .collect();
    labels.filter(|labels| !labels.is_empty())
}

/// Parses `US1`.
pub(super) fn parse_story_label(word: &str) -> Option<u32> {
    let digits = word.get(..2).filter(|prefix| prefix.eq_ignore_ascii_case("us")).map(|_| &word[2..])?;
    parse_digits(digits.strip_prefix('-').unwrap_or(digits))
}

pub(super) fn parse_digits(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Parses a heading as a phase: `Phase 3.1: Title`, the same in another language, or a title without a number.
pub(super) fn parse_phase(heading: MarkdownHeading<'_>, line: usize) -> Option<TaskPhase> {
    if heading.level == 1 && !is_phase_heading(heading) {
        return None;
    }
    let title = heading.title.trim_matches(EMPHASIS_MARKS);
    let (number, rest) = match split_phase_title(title) {
        // Deeper headings are parts of a phase unless they say “phase”.
        Some((word, number, rest)) if heading.level <= 2 || word.eq_ignore_ascii_case("phase") => {
            (Some(number.to_owned()), rest)
        }
        Some(_) | None => (None, title),
    };
    let title = rest.trim_start().trim_start_matches(SEPARATORS).trim();
    let title = sanitize_text(title);
    Some(TaskPhase { number, kind: phase_kind(&title), title, line })
}

/// Splits a title such as `Phase 3.1: Setup` into word, number and rest.
fn split_phase_title(title: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = title.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    let end = rest.find(|char: char| !(char.is_ascii_digit() || char == '.')).unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    let has_number = number.starts_with(|char: char| char.is_ascii_digit());
    let rest = &rest[number.len()..];
    let is_complete_number = !rest.starts_with(char::is_alphanumeric);
    (has_number && is_complete_number && word.chars().all(char::is_alphabetic))
        .then_some((word, number, rest))
}

/// Whether a heading says that it is a phase.
pub(super) fn is_phase_heading(heading: MarkdownHeading<'_>) -> bool {
    starts_with_word(heading.title.trim_matches(EMPHASIS_MARKS), "phase")
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn phase_kind(title: &str) -> PhaseKind {
    let lowercase = title.to_lowercase();
    if lowercase.contains("convergence") {
        return PhaseKind::Convergence;
    }
    if let Some(number) = find_story_number(&lowercase) {
        return PhaseKind::Story { number, priority: find_priority(title) };
    }
    let kinds = [
        ("setup", PhaseKind::Setup),
        ("foundation", PhaseKind::Foundational),
        ("polish", PhaseKind::Polish),
        ("cross-cutting", PhaseKind::Polish),
    ];
    kinds.into_iter().find(|(word, _)| lowercase.contains(word)).map_or(PhaseKind::Other, |(_, kind)| kind)
}

/// Finds the number in `user story 1` or `us1`.
pub(crate) fn find_story_number(lowercase: &str) -> Option<u32> {
    let words: Vec<&str> =
        lowercase.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let number = words.windows(2).find(|pair| pair[0] == "story").and_then(|pair| parse_digits(pair[1]));
    number.or_else(|| words.iter().find_map(|word| parse_story_label(word)))
}

/// Finds the `1` of `P1`.
pub(crate) fn find_priority(title: &str) -> Option<u32> {
    let mut words = title.split(|char: char| !char.is_alphanumeric());
    words.find_map(|word| parse_digits(word.strip_prefix(['P', 'p'])?).filter(|number| *number > 0))
}
