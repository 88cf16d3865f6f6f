//! Checklists: counting checked items and checking a model's changes. Text in, text out; accesses no files.

use std::collections::{HashMap, HashSet};

use crate::lint::{LintProblem, find_placeholders, first_problems};
use crate::markdown;

/// The checklist that every spec is reviewed with.
pub const REQUIREMENTS: &str = "requirements.md";

/// The percentage of new items that must reference a part of the spec.
const REFERENCED_PERCENT_MIN: usize = 80;

/// Bracketed labels that count as a reference.
const REFERENCES: [&str; 5] = ["Spec §", "Gap", "Ambiguity", "Conflict", "Assumption"];

/// The number of items of a checklist, and of those checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChecklistCounts {
    pub(crate) n_total: usize,
    pub(crate) n_checked: usize,
}

/// Counts the items of a checklist.
pub(crate) fn count_items(text: &str) -> ChecklistCounts {
    let visible = markdown::visible_text(text);
    let mut counts = ChecklistCounts::default();
    for item in markdown::split_lines(&visible).filter_map(|line| markdown::parse_checkbox(line.text)) {
        counts.n_total += 1;
        counts.n_checked += usize::from(item.is_ticked);
    }
    counts
}

/// Returns the number of the next item.
fn next_item_number(text: &str) -> u32 {
    let visible = markdown::visible_text(text);
    let numbers = markdown::split_lines(&visible)
        .filter_map(|line| item_number(markdown::parse_checkbox(line.text)?.text));
    numbers.max().unwrap_or(0).saturating_add(1)
}

/// Lists the problems in a reviewers' checklist after a model changed it: existing items must be unchanged, and new
/// items must be unchecked, numbered consecutively, reference the spec, and not be samples of the template.
pub(crate) fn check_checklist(before: Option<&str>, after: &str, template: &str) -> Vec<LintProblem> {
    let before = before.unwrap_or_default();
    // Reviewers may check boxes while the model writes.
    let Some(added_text) = clear_boxes(after)
        .strip_prefix(&clear_boxes(before))
        .map(|added_text| &after[after.len() - added_text.len()..])
    else {
        return vec![LintProblem::for_page(
            "what was in the checklist before has changed; put it back as it was and add new items below it",
        )];
    };
    let n_lines_before = before.lines().count();
    // References are written the same way in the template and in a list made from it.
    let template_without_references =
        REFERENCES.iter().fold(template.to_owned(), |bare, word| bare.replace(&format!("[{word}]"), ""));
    let mut problems = find_placeholders(after, &template_without_references);
    problems.retain(|problem| problem.line.is_none_or(|line| line > n_lines_before));
    let template = markdown::visible_text(template);
    let samples: HashSet<&str> = markdown::split_lines(&template)
        .filter_map(|line| Some(markdown::parse_checkbox(line.text)?.text))
        .collect();
    let mut expected = next_item_number(before);
    let (mut n_new, mut n_referenced) = (0, 0);
    let visible = markdown::visible_text(after);
    let before_len = after.len() - added_text.len();
    for line in markdown::split_lines(&visible).filter(|line| line.start >= before_len) {
        let Some(item) = markdown::parse_checkbox(line.text) else { continue };
        n_new += 1;
        n_referenced += usize::from(has_reference(item.text));
        if item.is_ticked {
            problems.push(LintProblem::at_line(
                line.number,
                "a new item is ticked; only a reviewer ticks, write `[ ]`",
            ));
        }
        if samples.contains(item.text) {
            problems
                .push(LintProblem::at_line(line.number, "this item is a sample of the template; replace it"));
        }
        match item_number(item.text) {
            Some(number) if number == expected => {}
            Some(_) | None => {
                problems.push(LintProblem::at_line(
                    line.number,
                    format!("this item has to begin with CHK{expected:03}"),
                ));
            }
        }
        expected = expected.saturating_add(1);
    }
    if n_new == 0 {
        problems.push(LintProblem::for_page("no item was added; add lines such as `- [ ] CHK001 …`"));
    } else if n_referenced * 100 < n_new * REFERENCED_PERCENT_MIN {
        problems.push(LintProblem::for_page(format!(
            "only {n_referenced} of {n_new} new items say what they are about; end at least \
             {REFERENCED_PERCENT_MIN} % of them with [Spec §…], [Gap], [Ambiguity], [Conflict] or [Assumption]"
        )));
    }
    first_problems(problems)
}

/// Lists the problems in [`REQUIREMENTS`] after a model edited it: only checkboxes may differ.
pub(crate) fn check_box_changes(before: &str, after: &str) -> Vec<LintProblem> {
    let (cleared_before, cleared_after) = (clear_boxes(before), clear_boxes(after));
    let mut lines_after = markdown::split_lines(&cleared_after);
    for line in markdown::split_lines(&cleared_before) {
        if lines_after.next().is_none_or(|other| other.text != line.text) {
            let text = format!("only boxes may change here; the line was: {}", line.text.trim());
            return vec![LintProblem::at_line(line.number, text)];
        }
    }
    match lines_after.next() {
        Some(line) => {
            vec![LintProblem::at_line(line.number, "only boxes may change here; remove what was added")]
        }
        None => Vec::new(),
    }
}

/// The result of comparing the reviewers' part of a checklist.
#[derive(Debug, PartialEq, Eq)]
pub enum ReviewOutcome {
    /// It is unchanged.
    Unchanged,
    /// Checkboxes were changed. Contains the text with the old boxes restored and those of new items cleared.
    BoxesRestored(String),
    /// A line was removed or changed.
    Broken,
}

/// Compares a reviewed checklist with the text that replaced it. Added lines are allowed.
pub fn compare_reviewed(before: &str, after: &str) -> ReviewOutcome {
    let Some(pairs) = pair_lines(before, after) else { return ReviewOutcome::Broken };
    let (visible_before, visible_after) = (markdown::visible_text(before), markdown::visible_text(after));
    let boxes_before: Vec<Option<ItemBox>> = markdown::split_lines(&visible_before).map(parse_box).collect();
    let mut text = after.to_owned();
    for (index, line) in markdown::split_lines(&visible_after).enumerate() {
        let Some(box_after) = parse_box(line) else { continue };
        let box_before =
            pairs.get(&index).and_then(|index_before| boxes_before.get(*index_before).copied().flatten());
        let is_ticked = box_before.is_some_and(|box_before| box_before.is_ticked);
        if is_ticked != box_after.is_ticked {
            text.replace_range(box_after.offset..=box_after.offset, if is_ticked { "x" } else { " " });
        }
    }
    if text == after { ReviewOutcome::Unchanged } else { ReviewOutcome::BoxesRestored(text) }
}

/// Applies the boxes that a user changed in a checklist to which a model has added items; `None` if the user changed
/// more than boxes.
pub(crate) fn adopt_boxes(current: &str, reviewed_from: &str, reviewed: &str) -> Option<String> {
    if clear_boxes(reviewed_from) != clear_boxes(reviewed) {
        return None;
    }
    let pairs = pair_lines(current, reviewed)?;
    let (visible_current, visible_reviewed) =
        (markdown::visible_text(current), markdown::visible_text(reviewed));
    let current_boxes: Vec<Option<ItemBox>> =
        markdown::split_lines(&visible_current).map(parse_box).collect();
    let mut text = current.to_owned();
    for (at, line) in markdown::split_lines(&visible_reviewed).enumerate() {
        let current_box = pairs.get(&at).and_then(|kept| current_boxes.get(*kept).copied().flatten());
        if let (Some(kept), Some(now)) = (current_box, parse_box(line)) {
            text.replace_range(kept.offset..=kept.offset, if now.is_ticked { "x" } else { " " });
        }
    }
    Some(text)
}

#[derive(Debug, Clone, Copy)]
struct ItemBox {
    /// The offset of the byte between the brackets in the text.
    offset: usize,
    is_ticked: bool,
}

fn parse_box(line: markdown::MarkdownLine<'_>) -> Option<ItemBox> {
    let item = markdown::parse_checkbox(line.text)?;
    Some(ItemBox { offset: line.start + item.marker, is_ticked: item.is_ticked })
}

/// Maps each line of the new text to the equal line of the old one, ignoring boxes, in order; `None` if a line is
/// missing or is hidden by new markup around it. Empty lines are ignored.
fn pair_lines(before: &str, after: &str) -> Option<HashMap<usize, usize>> {
    let (before, after) = (clear_boxes(before), clear_boxes(after));
    let (visible_before, visible_after) = (markdown::visible_text(&before), markdown::visible_text(&after));
    let mut after = whole_lines(&after, &visible_after).enumerate();
    let mut pairs = HashMap::new();
    let lines_before =
        whole_lines(&before, &visible_before).enumerate().filter(|(_, (line, _))| !line.is_empty());
    for (index_before, line) in lines_before {
        let (index, _) = after.find(|(_, other)| *other == line)?;
        pairs.insert(index, index_before);
    }
    Some(pairs)
}

/// The lines of a text without line endings, each with its visible part.
fn whole_lines<'a>(text: &'a str, visible: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    // Hidden bytes are spaces, including a byte order mark.
    let visible = markdown::split_lines(visible).map(|line| line.text.trim());
    markdown::split_lines(text).map(|line| line.text.trim_end()).zip(visible)
}

/// Returns the text with every box cleared.
fn clear_boxes(text: &str) -> String {
    let visible = markdown::visible_text(text);
    let mut cleared = text.to_owned();
    for line in markdown::split_lines(&visible) {
        if let Some(item) = markdown::parse_checkbox(line.text) {
            let offset = line.start + item.marker;
            cleared.replace_range(offset..=offset, " ");
        }
    }
    cleared
}

/// Parses the number of an item that begins with `CHK001`.
pub(crate) fn item_number(item: &str) -> Option<u32> {
    let digits = item.trim_start_matches(['*', '`']).strip_prefix("CHK")?;
    let end = digits.find(|char: char| !char.is_alphanumeric()).unwrap_or(digits.len());
    let is_id = end >= 3 && digits[..end].bytes().all(|byte| byte.is_ascii_digit());
    is_id.then(|| digits[..end].parse().ok()).flatten()
}

fn has_reference(item: &str) -> bool {
    let labels = item.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    labels.into_iter().any(|(label, _)| REFERENCES.iter().any(|word| label.contains(word)))
}

#[cfg(test)]
mod tests;
