//! The user's answers about a spec, as they are stored in it. Text in, text out; accesses no files.

use crate::markdown::{self, MarkdownHeading, MarkdownLine};
use crate::tasks::one_line;

const SECTION: &str = "Clarifications";

/// Adds an answer to a spec under its date and creates missing headings. Nothing else changes.
pub fn add_clarification(text: &str, today: &str, question: &str, answer: &str) -> String {
    let line_ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let bullet = format!("- Q: {} → A: {}", sanitize_answer(question), sanitize_answer(answer));
    let session = format!("### Session {today}");
    let visible = markdown::visible_text(text);
    let headings: Vec<(MarkdownLine<'_>, MarkdownHeading<'_>)> = markdown::split_lines(&visible)
        .filter_map(|line| Some((line, markdown::parse_heading(line.text)?)))
        .collect();
    let Some(section) = headings.iter().position(|(_, heading)| is_clarifications_heading(heading)) else {
        let offset = section_position(&headings, text.len());
        let new_section = format!(
            "## {SECTION}{line_ending}{line_ending}{session}{line_ending}{line_ending}{bullet}{line_ending}"
        );
        return insert_lines(text, offset, &new_section, LineSpacing::Blank);
    };
    let is_subheading =
        |(_, heading): &&(MarkdownLine<'_>, MarkdownHeading<'_>)| heading.level > headings[section].1.level;
    let section_headings =
        &headings[section..=section + headings[section + 1..].iter().take_while(is_subheading).count()];
    let next_heading_start = |heading_index: usize, headings: &[(MarkdownLine<'_>, MarkdownHeading<'_>)]| {
        headings.get(heading_index + 1).map_or(text.len(), |(line, _)| line.start)
    };
    match section_headings.iter().position(|(_, heading)| is_session_heading(heading, today)) {
        Some(session_index) => {
            let is_new = text[section_headings[session_index].0.start
                ..next_heading_start(section + session_index, &headings)]
                .lines()
                .skip(1)
                .all(str::is_empty);
            let spacing = if is_new { LineSpacing::Blank } else { LineSpacing::None };
            insert_lines(
                text,
                next_heading_start(section + session_index, &headings),
                &format!("{bullet}{line_ending}"),
                spacing,
            )
        }
        None => {
            let offset = next_heading_start(section + section_headings.len() - 1, &headings);
            insert_lines(
                text,
                offset,
                &format!("{session}{line_ending}{line_ending}{bullet}{line_ending}"),
                LineSpacing::Blank,
            )
        }
    }
}

/// Counts the answers of a spec under this date.
pub(crate) fn count_clarifications(text: &str, today: &str) -> usize {
    let visible = markdown::visible_text(text);
    let (mut in_section, mut in_session) = (false, false);
    let mut n_answers = 0;
    for line in markdown::split_lines(&visible) {
        match markdown::parse_heading(line.text) {
            Some(heading) if heading.level <= 2 => {
                (in_section, in_session) = (is_clarifications_heading(&heading), false);
            }
            Some(heading) => in_session = in_section && is_session_heading(&heading, today),
            None => n_answers += usize::from(in_session && line.text.trim_start().starts_with("- Q: ")),
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

/// Returns the offset for the new section: before the scenarios, which follow the overview.
fn section_position(headings: &[(MarkdownLine<'_>, MarkdownHeading<'_>)], end: usize) -> usize {
    let level_2_headings = || headings.iter().filter(|(_, heading)| heading.level == 2);
    let is_anchor_title =
        |title: &str| title.starts_with("User Scenarios") || title.starts_with("Requirements");
    let anchor = level_2_headings().find(|(_, heading)| is_anchor_title(heading.title));
    anchor.or_else(|| level_2_headings().nth(1)).map_or(end, |(line, _)| line.start)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineSpacing {
    None,
    Blank,
}

/// Inserts lines at the start of a line, after the last line that is not blank.
fn insert_lines(text: &str, offset: usize, lines: &str, spacing: LineSpacing) -> String {
    let line_ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let before = text[..offset].trim_end();
    let rest = &text[offset..];
    let mut result = before.to_owned();
    if !before.is_empty() {
        result.push_str(line_ending);
        result.push_str(if spacing == LineSpacing::Blank { line_ending } else { "" });
    }
    result.push_str(lines);
    if !rest.is_empty() {
        result.push_str(line_ending);
        result.push_str(rest);
    }
    result
}

/// Makes an answer fit on its line without looking like the separator between question and answer.
fn sanitize_answer(text: &str) -> String {
    let line = one_line(text).replace('→', "->").replace("[NEEDS CLARIFICATION", "[needs clarification");
    if line.matches('`').count() % 2 == 1 { line.replace('`', "'") } else { line }
}

#[cfg(test)]
mod tests;
