//! The answers that a person gave about a spec, as they are kept in it. Text in, text out; knows no file and no person.

use crate::markdown::{self, MarkdownHeading, MarkdownLine};
use crate::tasks::one_line;

const SECTION: &str = "Clarifications";

/// Adds an answer to a spec, under its day, and makes the places for it where they are missing. Nothing else changes.
pub fn add_clarification(text: &str, today: &str, question: &str, answer: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let bullet = format!("- Q: {} → A: {}", sanitize_answer(question), sanitize_answer(answer));
    let session = format!("### Session {today}");
    let visible = markdown::visible_text(text);
    let headings: Vec<(MarkdownLine<'_>, MarkdownHeading<'_>)> = markdown::split_lines(&visible)
        .filter_map(|line| Some((line, markdown::parse_heading(line.text)?)))
        .collect();
    let Some(section) = headings.iter().position(|(_, heading)| is_clarifications_heading(heading)) else {
        let at = section_position(&headings, text.len());
        let made = format!("## {SECTION}{end}{end}{session}{end}{end}{bullet}{end}");
        return insert_lines(text, at, &made, LineSpacing::Blank);
    };
    let within =
        |(_, heading): &&(MarkdownLine<'_>, MarkdownHeading<'_>)| heading.level > headings[section].1.level;
    let ours = &headings[section..=section + headings[section + 1..].iter().take_while(within).count()];
    let after = |at: usize, headings: &[(MarkdownLine<'_>, MarkdownHeading<'_>)]| {
        headings.get(at + 1).map_or(text.len(), |(line, _)| line.start)
    };
    match ours.iter().position(|(_, heading)| is_session_heading(heading, today)) {
        Some(found) => {
            let is_new = text[ours[found].0.start..after(section + found, &headings)]
                .lines()
                .skip(1)
                .all(str::is_empty);
            let gap = if is_new { LineSpacing::Blank } else { LineSpacing::None };
            insert_lines(text, after(section + found, &headings), &format!("{bullet}{end}"), gap)
        }
        None => {
            let at = after(section + ours.len() - 1, &headings);
            insert_lines(text, at, &format!("{session}{end}{end}{bullet}{end}"), LineSpacing::Blank)
        }
    }
}

/// How many answers a spec has of this day.
pub(crate) fn count_clarifications(text: &str, today: &str) -> usize {
    let visible = markdown::visible_text(text);
    let (mut is_ours, mut is_today) = (false, false);
    let mut n_answers = 0;
    for line in markdown::split_lines(&visible) {
        match markdown::parse_heading(line.text) {
            Some(heading) if heading.level <= 2 => {
                (is_ours, is_today) = (is_clarifications_heading(&heading), false);
            }
            Some(heading) => is_today = is_ours && is_session_heading(&heading, today),
            None => n_answers += usize::from(is_today && line.text.trim_start().starts_with("- Q: ")),
        }
    }
    n_answers
}

fn is_clarifications_heading(heading: &MarkdownHeading<'_>) -> bool {
    heading.level == 2 && heading.title == SECTION
}

fn is_session_heading(heading: &MarkdownHeading<'_>, today: &str) -> bool {
    heading.level == 3 && heading.title.strip_prefix("Session").is_some_and(|rest| rest.trim() == today)
}

/// Where the section goes: before the scenarios, which are the first part behind the overview.
fn section_position(headings: &[(MarkdownLine<'_>, MarkdownHeading<'_>)], end: usize) -> usize {
    let parts = || headings.iter().filter(|(_, heading)| heading.level == 2);
    let is_named = |title: &str| title.starts_with("User Scenarios") || title.starts_with("Requirements");
    let named = parts().find(|(_, heading)| is_named(heading.title));
    named.or_else(|| parts().nth(1)).map_or(end, |(line, _)| line.start)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineSpacing {
    None,
    Blank,
}

/// Puts lines at a place where a line begins, behind the last one that is not blank.
fn insert_lines(text: &str, at: usize, lines: &str, gap: LineSpacing) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let before = text[..at].trim_end();
    let rest = &text[at..];
    let mut longer = before.to_owned();
    if !before.is_empty() {
        longer.push_str(end);
        longer.push_str(if gap == LineSpacing::Blank { end } else { "" });
    }
    longer.push_str(lines);
    if !rest.is_empty() {
        longer.push_str(end);
        longer.push_str(rest);
    }
    longer
}

/// Words that stay on their line, and do not look like the other half of it.
fn sanitize_answer(words: &str) -> String {
    let line = one_line(words).replace('→', "->").replace("[NEEDS CLARIFICATION", "[needs clarification");
    if line.matches('`').count() % 2 == 1 { line.replace('`', "'") } else { line }
}

#[cfg(test)]
mod tests;
