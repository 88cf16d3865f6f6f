//! Checks that all pages have in common: sections and placeholders in brackets.

use std::collections::HashSet;

use super::problem::LintProblem;
use crate::markdown::{self, MarkdownHeading, MarkdownLine};

/// The beginnings of known placeholders, for pages whose template has changed since.
const KNOWN_PLACEHOLDERS: [&str; 24] = [
    "###",
    "e.g.",
    "FEATURE]",
    "FEATURE NAME]",
    "DATE]",
    "Brief Title]",
    "Title]",
    "initial state]",
    "action]",
    "expected outcome]",
    "boundary condition]",
    "error scenario]",
    "specific capability",
    "key interaction",
    "Entity 1]",
    "Entity 2]",
    "REMOVE IF UNUSED]",
    "CHECKLIST TYPE]",
    "Category 1]",
    "Category 2]",
    "endpoint]",
    "endpoint/feature]",
    "user journey]",
    "language]",
];

/// The length of a placeholder in a message.
const SHOWN_CHARS_MAX: usize = 60;

/// Brackets that templates use as labels.
const LABELS: [&str; 4] = ["P", "Story", "ID", "P?"];

/// A heading and its lines up to the next heading of the same or a higher level.
pub(super) struct PageSection<'a> {
    pub(super) heading: MarkdownHeading<'a>,
    /// The line of the heading.
    pub(super) line: usize,
    /// The lines below it, including subsections.
    pub(super) lines: Vec<MarkdownLine<'a>>,
}

impl PageSection<'_> {
    /// Its title without the template's remarks.
    pub(super) fn title(&self) -> &str {
        bare_title(self.heading.title)
    }

    /// Whether it has content other than blank lines, rules and headings.
    pub(super) fn is_filled(&self) -> bool {
        self.lines.iter().any(|line| {
            let text = line.text.trim();
            !text.is_empty()
                && markdown::parse_heading(text).is_none()
                && text.chars().any(|char| char != '-')
        })
    }
}

fn bare_title(title: &str) -> &str {
    title
        .split("*(")
        .next()
        .unwrap_or(title)
        .trim_end_matches(|char: char| !char.is_alphanumeric() && char != ')')
}

/// Returns the sections of one level.
pub(super) fn parse_sections(text: &str, level: usize) -> Vec<PageSection<'_>> {
    let mut sections: Vec<PageSection<'_>> = Vec::new();
    let mut in_section = false;
    for line in markdown::split_lines(text) {
        match markdown::parse_heading(line.text) {
            Some(heading) if heading.level == level => {
                sections.push(PageSection { heading, line: line.number, lines: Vec::new() });
                in_section = true;
            }
            Some(heading) if heading.level < level => in_section = false,
            Some(_) | None => {
                if let Some(section) = sections.last_mut().filter(|_| in_section) {
                    section.lines.push(line);
                }
            }
        }
    }
    sections
}

/// Adds the problems of required sections: those that the template marks as mandatory, or else the default ones.
pub(super) fn check_sections(
    text: &str,
    template: &str,
    default_names: &[&str],
    problems: &mut Vec<LintProblem>,
) {
    let page = parse_sections(text, 2);
    let template = parse_sections(template, 2);
    let mandatory = template.iter().filter(|section| section.heading.title.contains("(mandatory)"));
    let mandatory: Vec<&str> = mandatory.map(PageSection::title).collect();
    let template_titles: Vec<&str> = template.iter().map(PageSection::title).collect();
    let required: Vec<&str> = match (mandatory.is_empty(), template_titles.is_empty()) {
        (false, _) => mandatory,
        (true, false) => {
            default_names.iter().copied().filter(|name| template_titles.contains(name)).collect()
        }
        (true, true) => default_names.to_vec(),
    };
    for name in required {
        match page.iter().find(|section| section.title().eq_ignore_ascii_case(name)) {
            None => problems.push(LintProblem::for_page(format!(
                "the section `## {name}` is missing; add it and fill it"
            ))),
            Some(section) if !section.is_filled() => {
                problems.push(LintProblem::at_line(
                    section.line,
                    format!("the section {name} is empty; fill it"),
                ));
            }
            Some(_) => {}
        }
    }
}

/// Finds placeholders of the template that were not filled.
pub(crate) fn find_placeholders(text: &str, template: &str) -> Vec<LintProblem> {
    let template = markdown::prose_text(template);
    let template_brackets: HashSet<String> =
        find_brackets(&template).into_iter().map(|bracket| bracket.text).collect();
    let mut problems = Vec::new();
    for bracket in find_brackets(&markdown::prose_text(text)) {
        if template_brackets.contains(&bracket.text) || is_known_bracket(&bracket.text) {
            let display_text = truncate_text(&bracket.text);
            let text =
                format!("the placeholder {display_text} is still there; replace it, or remove its line");
            problems.push(LintProblem::at_line(bracket.line, text));
        }
    }
    for line in markdown::split_lines(text).filter(|line| line.text.contains("[###")) {
        problems.push(LintProblem::at_line(
            line.number,
            "the placeholder [###…] is still there; write the feature's name",
        ));
    }
    problems
}

fn truncate_text(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN_CHARS_MAX).map(|(index, _)| index);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}

fn is_known_bracket(bracket: &str) -> bool {
    let inner = bracket.strip_prefix('[').unwrap_or(bracket);
    let name = inner.strip_suffix(']').unwrap_or(inner);
    let is_token = name.contains('_') && is_all_caps(name);
    is_token || KNOWN_PLACEHOLDERS.iter().any(|known| inner.starts_with(known))
}

/// Whether a name is written like `PROJECT_NAME`.
pub(super) fn is_all_caps(name: &str) -> bool {
    name.len() >= 2
        && name.starts_with(|char: char| char.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

pub(super) struct BracketSpan {
    /// Includes the brackets and the path around them; on one line.
    pub(super) text: String,
    pub(super) line: usize,
}

/// Finds bracketed text that is not a link, checkbox or label. A bracket ends with its paragraph.
pub(super) fn find_brackets(prose: &str) -> Vec<BracketSpan> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut open_brackets = Vec::new();
    for line in markdown::split_lines(prose) {
        if line.text.trim().is_empty() || markdown::parse_bullet(line.text).is_some() {
            open_brackets.clear();
        }
        for (offset, byte) in line.text.bytes().enumerate().map(|(at, byte)| (line.start + at, byte)) {
            match byte {
                b'[' => open_brackets.push(offset),
                b']' => {
                    if let Some(start) = open_brackets.pop() {
                        // The outer bracket includes the inner one.
                        while spans.pop_if(|(inner_start, _)| *inner_start > start).is_some() {}
                        spans.push((start, offset + 1));
                    }
                }
                _ => {}
            }
        }
    }
    let mut lines = markdown::split_lines(prose).peekable();
    let mut number = 1;
    let mut brackets = Vec::new();
    for (start, end) in spans {
        while let Some(line) = lines.next_if(|line| line.start <= start) {
            number = line.number;
        }
        brackets.extend(bracket_text(prose, start, end).map(|text| BracketSpan { text, line: number }));
    }
    brackets
}

fn bracket_text(prose: &str, start: usize, end: usize) -> Option<String> {
    let (before, after) = (&prose[..start], &prose[end..]);
    let inner = prose[start + 1..end - 1].trim();
    let is_link = after.starts_with(['(', '[']) || before.ends_with([']', '!']);
    let is_definition = after.starts_with(':') && (before.is_empty() || before.ends_with('\n'));
    let is_label = inner.is_empty()
        || inner.eq_ignore_ascii_case("x")
        || inner.starts_with('^')
        || LABELS.contains(&inner)
        || inner.starts_with("NEEDS CLARIFICATION")
        || inner.contains('§')
        || crate::tasks::find_story_number(&inner.to_lowercase()).is_some() && inner.len() < 12;
    if is_link || is_definition || is_label {
        return None;
    }
    let is_path = |char: char| char.is_ascii_alphanumeric() || matches!(char, '/' | '_' | '.' | '-');
    let n_before = before.len() - before.trim_end_matches(is_path).len();
    let n_path = after.len() - after.trim_start_matches(is_path).len();
    let n_after = after[..n_path].trim_end_matches(['.', '-']).len();
    let full_text = &prose[start - n_before..end + n_after];
    Some(full_text.split_whitespace().collect::<Vec<_>>().join(" "))
}
