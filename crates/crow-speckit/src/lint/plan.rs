//! The rules for `plan.md` and the pages next to it.

use super::common::{PageSection, check_sections, find_placeholders, parse_sections};
use super::problem::{LintProblem, first_problems};
use crate::markdown;

const DEFAULT_SECTIONS: [&str; 4] =
    ["Summary", "Technical Context", "Constitution Check", "Project Structure"];

const FIELDS: [&str; 9] = [
    "Language/Version",
    "Primary Dependencies",
    "Storage",
    "Testing",
    "Target Platform",
    "Project Type",
    "Performance Goals",
    "Constraints",
    "Scale/Scope",
];

const OPEN_MARKER: &str = "NEEDS CLARIFICATION";

/// Lists the problems in a plan made from this template.
pub(crate) fn check_plan(text: &str, template: &str) -> Vec<LintProblem> {
    let prose = markdown::prose_text(text);
    let visible = markdown::visible_text(text);
    let mut problems = find_placeholders(text, template);
    check_sections(&visible, template, &DEFAULT_SECTIONS, &mut problems);
    check_open_markers(&prose, &mut problems);
    let template_has = |label: &str| template.trim().is_empty() || template.contains(label);
    for field in FIELDS.into_iter().filter(|field| template_has(field)) {
        check_field(&visible, field, &mut problems);
    }
    if template_has("Structure Decision") {
        check_field(&visible, "Structure Decision", &mut problems);
    }
    check_gate(&visible, &mut problems);
    for line in markdown::split_lines(text).filter(|line| is_option_line(line.text)) {
        let text = "a layout is still called an option; keep the one that was chosen, without the label";
        problems.push(LintProblem::at_line(line.number, text));
    }
    first_problems(problems)
}

/// Lists the problems in a `research.md`: each decision needs a rationale and alternatives.
pub(crate) fn check_research(text: Option<&str>) -> Vec<LintProblem> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return vec![LintProblem::for_page(
            "research.md is missing; write Decision, Rationale and Alternatives of each topic",
        )];
    };
    let prose = markdown::prose_text(text);
    let mut problems = Vec::new();
    check_open_markers(&prose, &mut problems);
    let mut decision: Option<ResearchDecision> = None;
    for line in markdown::split_lines(&prose) {
        let is_heading = markdown::parse_heading(line.text).is_some();
        let label = line.text.trim_start_matches(|char: char| "#-*_+ \t".contains(char)).to_lowercase();
        if label.starts_with("decision") && !label.starts_with("decisions") {
            let may_be_title = decision.as_ref().is_some_and(|decision| decision.may_be_title);
            if !may_be_title {
                problems.extend(decision.take().and_then(ResearchDecision::into_problem));
            }
            decision = Some(ResearchDecision {
                line: line.number,
                may_be_title: is_heading,
                has_rationale: false,
                has_alternatives: false,
            });
        } else if let Some(decision) = &mut decision {
            let (is_rationale, is_alternatives) =
                (label.starts_with("rationale"), label.starts_with("alternatives"));
            decision.has_rationale |= is_rationale;
            decision.has_alternatives |= is_alternatives;
            decision.may_be_title &= !(is_rationale || is_alternatives);
        }
    }
    match decision {
        Some(decision) => problems.extend(decision.into_problem()),
        None => {
            problems.push(LintProblem::for_page(
                "research.md has no decision; write `- Decision: …` for each topic",
            ));
        }
    }
    first_problems(problems)
}

/// Lists the problems in a `quickstart.md`.
pub(crate) fn check_quickstart(text: Option<&str>) -> Vec<LintProblem> {
    let is_present = text.is_some_and(|text| !text.trim().is_empty());
    let missing = LintProblem::for_page(
        "quickstart.md is missing; write how the feature is run and how one sees that it works",
    );
    if is_present { Vec::new() } else { vec![missing] }
}

/// A decision of the research that is being parsed.
struct ResearchDecision {
    line: usize,
    /// Whether it may be the title of the decision that follows.
    may_be_title: bool,
    has_rationale: bool,
    has_alternatives: bool,
}

impl ResearchDecision {
    fn into_problem(self) -> Option<LintProblem> {
        let missing = match (self.has_rationale, self.has_alternatives) {
            (true, true) => return None,
            (false, true) => "Rationale",
            (true, false) => "Alternatives considered",
            (false, false) => "Rationale and no Alternatives considered",
        };
        Some(LintProblem::at_line(
            self.line,
            format!("this decision has no {missing}; add what is missing below it"),
        ))
    }
}

fn check_open_markers(prose: &str, problems: &mut Vec<LintProblem>) {
    for line in markdown::split_lines(prose).filter(|line| line.text.contains(OPEN_MARKER)) {
        // A heading or a note may mention the marker.
        if line.text.contains(&format!("[{OPEN_MARKER}")) || line.text.trim_end().ends_with(OPEN_MARKER) {
            let text = format!("{OPEN_MARKER} is still there; find it out, or decide it in research.md");
            problems.push(LintProblem::at_line(line.number, text));
        }
    }
}

fn check_field(visible: &str, field: &str, problems: &mut Vec<LintProblem>) {
    let label = format!("**{field}**");
    let mut lines = markdown::split_lines(visible).skip_while(|line| !line.text.contains(&label));
    let Some(line) = lines.next() else {
        problems.push(LintProblem::for_page(format!(
            "the field {label} is missing; add it with its value, or N/A"
        )));
        return;
    };
    let value = line.text.split_once(&label).map_or("", |(_, value)| value);
    let is_text = |text: &str| text.chars().any(char::is_alphanumeric);
    let has_value_on_next_line =
        lines.next().is_some_and(|line| is_text(line.text) && !line.text.starts_with(['#', '*']));
    if !is_text(value) && !has_value_on_next_line {
        problems.push(LintProblem::at_line(
            line.number,
            format!("the field {label} is empty; give its value, or N/A"),
        ));
    }
}

/// A failed gate needs a justification.
fn check_gate(visible: &str, problems: &mut Vec<LintProblem>) {
    let sections = parse_sections(visible, 2);
    let find_section = |name: &str| sections.iter().find(|section| section.title() == name);
    let Some(gate) = find_section("Constitution Check") else { return };
    let is_note = |text: &str| {
        let text = text.trim();
        text.is_empty() || text.starts_with("*GATE") || markdown::parse_heading(text).is_some()
    };
    if gate.lines.iter().all(|line| is_note(line.text)) {
        let text = "Constitution Check is not filled; say of each ground rule whether the plan keeps it (PASS or FAIL)";
        problems.push(LintProblem::at_line(gate.line, text));
    }
    let failed = gate.lines.iter().find(|line| !is_note(line.text) && is_failed_gate(line.text));
    let is_justified = find_section("Complexity Tracking").is_some_and(has_table_row);
    if let Some(line) = failed.filter(|_| !is_justified) {
        let text =
            "a gate failed without a reason; change the plan, or add a row under ## Complexity Tracking";
        problems.push(LintProblem::at_line(line.number, text));
    }
}

/// Whether a line says that a gate failed: as its result, not as a word of a rule such as “tests FAIL first”.
fn is_failed_gate(line: &str) -> bool {
    let lists_both_outcomes = line.contains("PASS/FAIL") || line.contains("PASS or FAIL");
    let is_outcome = |index: usize| {
        let before =
            line[..index].trim_end_matches(|char: char| !char.is_alphanumeric() && !":|-–—(".contains(char));
        before.is_empty() || before.ends_with([':', '|', '-', '–', '—', '('])
    };
    line.contains(['❌', '✗', '✘'])
        || !lists_both_outcomes && line.match_indices("FAIL").any(|(index, _)| is_outcome(index))
}

/// Whether a table has a row below its header with text in every cell.
fn has_table_row(section: &PageSection<'_>) -> bool {
    let rows = section.lines.iter().map(|line| line.text.trim()).filter(|line| line.starts_with('|'));
    let is_filled = |row: &str| {
        let mut cells = row.trim_matches('|').split('|');
        cells.all(|cell| cell.chars().any(char::is_alphanumeric))
    };
    rows.skip(1).any(is_filled)
}

fn is_option_line(line: &str) -> bool {
    let label = line.trim_start().trim_start_matches(['#', '*', '/', ' ']);
    let label = label.strip_prefix("[REMOVE IF UNUSED]").unwrap_or(label).trim_start();
    let number = label.strip_prefix("Option ").map(|rest| rest.split(':').next().unwrap_or(rest));
    number.is_some_and(|number| number.len() == 1 && label.contains(':'))
}
