//! The rules for `spec.md`.

use std::collections::HashSet;

use super::common::{PageSection, check_sections, find_placeholders, parse_sections};
use super::problem::{LintProblem, first_problems};
use crate::markdown;
use crate::tasks::{find_priority, find_story_number};

/// Open questions that a finished spec may have.
pub(crate) const MARKERS_MAX: usize = 3;

const MARKER: &str = "[NEEDS CLARIFICATION";

const DEFAULT_SECTIONS: [&str; 3] = ["User Scenarios & Testing", "Requirements", "Success Criteria"];

/// Lists the problems in a spec made from this template.
pub(crate) fn check_spec(text: &str, template: &str) -> Vec<LintProblem> {
    let prose = markdown::prose_text(text);
    let mut problems = find_placeholders(text, template);
    check_sections(&prose, template, &DEFAULT_SECTIONS, &mut problems);
    check_markers(&prose, &mut problems);
    let template_has = |label: &str| template.trim().is_empty() || template.contains(label);
    if template_has("User Story") {
        check_stories(&prose, &mut problems);
    }
    for (id, section) in [("FR", "Functional Requirements"), ("SC", "Measurable Outcomes")] {
        if template_has(&format!("{id}-001")) {
            check_ids(&prose, id, section, &mut problems);
        }
    }
    check_leftovers(&prose, &mut problems);
    first_problems(problems)
}

/// Returns the user stories of a spec with their numbers.
pub(super) fn find_stories(prose: &str) -> Vec<(u32, PageSection<'_>)> {
    parse_sections(prose, 3)
        .into_iter()
        .filter_map(|section| Some((story_number(&section)?, section)))
        .collect()
}

fn story_number(section: &PageSection<'_>) -> Option<u32> {
    let lowercase = section.heading.title.to_lowercase();
    lowercase.contains("story").then(|| find_story_number(&lowercase)).flatten()
}

fn check_markers(prose: &str, problems: &mut Vec<LintProblem>) {
    let mut n_markers = 0;
    for line in markdown::split_lines(prose) {
        for (offset, _) in line.text.match_indices(MARKER) {
            n_markers += 1;
            let rest = &line.text[offset + MARKER.len()..];
            let question = rest.strip_prefix(':').map_or("", |rest| rest.split(']').next().unwrap_or(rest));
            if question.trim().is_empty() {
                let text = "an open point asks nothing; write [NEEDS CLARIFICATION: the question]";
                problems.push(LintProblem::at_line(line.number, text));
            }
        }
    }
    if n_markers > MARKERS_MAX {
        problems.push(LintProblem::for_page(format!(
            "there are {n_markers} open points; keep the {MARKERS_MAX} that matter most and settle the others \
             with what is usual, under Assumptions"
        )));
    }
}

fn check_stories(prose: &str, problems: &mut Vec<LintProblem>) {
    let stories = find_stories(prose);
    if stories.is_empty() {
        let text =
            "there is no story; add `### User Story 1 - Title (Priority: P1)` under User Scenarios & Testing";
        problems.push(LintProblem::for_page(text));
    }
    let mut numbers = HashSet::new();
    for (number, story) in stories {
        let mut report = |text: String| problems.push(LintProblem::at_line(story.line, text));
        if !numbers.insert(number) {
            report(format!("there are two stories with the number {number}; number them on"));
        }
        if find_priority(story.heading.title).is_none() {
            report(format!("story {number} has no priority; end its heading with (Priority: P{number})"));
        }
        for label in ["Why this priority", "Independent Test"] {
            if !has_labelled_text(&story, label) {
                report(format!("story {number} does not say **{label}**: …; add it"));
            }
        }
        let has_all = |text: &str| ["given", "when", "then"].iter().all(|word| text.contains(word));
        let scenarios = story.lines.iter().map(|line| line.text.to_lowercase()).collect::<Vec<_>>();
        // A scenario may span several lines.
        if !scenarios.windows(4).any(|lines| has_all(&lines.join(" "))) && !has_all(&last_lines(&scenarios)) {
            report(format!("story {number} has no scenario; add `1. **Given** …, **When** …, **Then** …`"));
        }
    }
}

/// Joins the last lines of a story, for stories shorter than a window.
fn last_lines(lines: &[String]) -> String {
    lines[lines.len().saturating_sub(4)..].join(" ")
}

fn has_labelled_text(story: &PageSection<'_>, label: &str) -> bool {
    let label_lowercase = label.to_lowercase();
    let mut lines =
        story.lines.iter().skip_while(|line| !line.text.to_lowercase().contains(&label_lowercase));
    let Some(first) = lines.next() else { return false };
    let line_lowercase = first.text.to_lowercase();
    let same_line_text = line_lowercase.split_once(&label_lowercase).map_or("", |(_, behind)| behind);
    let is_text = |text: &str| text.chars().any(char::is_alphanumeric);
    let next = lines.find(|line| !line.text.trim().is_empty());
    is_text(same_line_text)
        || next.is_some_and(|line| is_text(line.text) && !line.text.trim_start().starts_with("**"))
}

fn check_ids(prose: &str, id: &str, section: &str, problems: &mut Vec<LintProblem>) {
    let mut highest = 0;
    let mut numbers = HashSet::new();
    for line in markdown::split_lines(prose) {
        let Some(number) = markdown::parse_bullet(line.text).and_then(|item| requirement_number(item, id))
        else {
            continue;
        };
        if !numbers.insert(number) {
            problems.push(LintProblem::at_line(
                line.number,
                format!("{id}-{number:03} is there twice; number it on"),
            ));
        } else if number < highest {
            let text = format!("{id}-{number:03} comes after {id}-{highest:03}; ids go up");
            problems.push(LintProblem::at_line(line.number, text));
        }
        highest = highest.max(number);
    }
    if numbers.is_empty() {
        problems
            .push(LintProblem::for_page(format!("{section} has no `- **{id}-001**: …`; add at least one")));
    }
}

fn requirement_number(item: &str, id: &str) -> Option<u32> {
    let digits = item.trim_start_matches(['*', '_']).strip_prefix(id)?.strip_prefix('-')?;
    let end = digits.find(|char: char| !char.is_alphanumeric()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Finds sections without any content.
fn check_leftovers(prose: &str, problems: &mut Vec<LintProblem>) {
    let is_empty_value = |text: &str| {
        let trimmed = text.trim().trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase();
        matches!(trimmed.as_str(), "n/a" | "none" | "not applicable" | "nothing")
    };
    for section in parse_sections(prose, 2).into_iter().chain(parse_sections(prose, 3)) {
        let mut lines =
            section.lines.iter().filter(|line| line.text.chars().any(|char| !"-* \t".contains(char)));
        let first_two = (lines.next(), lines.next());
        if let (Some(line), None) = first_two
            && is_empty_value(line.text)
        {
            let text = format!("the section {} says nothing; remove it", section.title());
            problems.push(LintProblem::at_line(section.line, text));
        }
    }
}

/// Counts the parts of a spec in one line.
pub(crate) fn summarize_spec(text: &str) -> String {
    let prose = markdown::prose_text(text);
    let starts_with_id = |line: &markdown::MarkdownLine<'_>, id: &str| {
        let item = line.text.trim_start_matches(['-', '*', ' ']);
        item.strip_prefix(id).is_some_and(|rest| rest.starts_with('-'))
    };
    let n_ids = |id: &str| markdown::split_lines(&prose).filter(|line| starts_with_id(line, id)).count();
    format!(
        "{} user stories, {} requirements, {} success criteria, {} open points",
        find_stories(&prose).len(),
        n_ids("FR"),
        n_ids("SC"),
        prose.matches(MARKER).count()
    )
}
