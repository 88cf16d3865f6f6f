//! The phase that `/speckit.converge` appends to a list.

use super::{TaskId, TaskList, TasksError};
use crate::sanitize_text;

/// The length of a new task's text or source, which is part of one line.
const LINE_CHARS_MAX: usize = 1_000;

/// The difference between code and requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapKind {
    /// It is missing.
    Missing,
    /// It is partly there.
    Partial,
    /// It does something else.
    Contradicts,
    /// It was not requested.
    Unrequested,
}

impl GapKind {
    /// Its name in the list.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Partial => "partial",
            Self::Contradicts => "contradicts",
            Self::Unrequested => "unrequested",
        }
    }
}

/// A gap between code and requirements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvergenceGap {
    /// The task list.
    pub text: String,
    /// The requirement, such as `FR-003`.
    pub source: String,
    /// The kind of difference.
    pub kind: GapKind,
    /// Whether it violates the constitution.
    pub is_critical: bool,
}

/// Appends a phase with a task for each gap, the critical ones first. The existing text is unchanged; without gaps
/// nothing is appended.
pub fn append_convergence(text: &str, gaps: &[ConvergenceGap]) -> Result<String, TasksError> {
    if gaps.is_empty() {
        return Ok(text.to_owned());
    }
    let list = TaskList::parse_checked(text)?;
    let line_ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut updated = text.to_owned();
    if !text.is_empty() {
        updated.push_str(if text.ends_with('\n') { "" } else { line_ending });
        updated.push_str(line_ending);
    }
    updated
        .push_str(&format!("## Phase {}: Convergence{line_ending}{line_ending}", list.next_phase_number()));
    let first = list.next_id().ok_or(TasksError::NoIdsLeft)?.number();
    let (critical, other_gaps): (Vec<_>, Vec<_>) =
        gaps.iter().enumerate().partition(|(_, gap)| gap.is_critical);
    for (number, (index, gap)) in (first..).zip(critical.into_iter().chain(other_gaps)) {
        let id = TaskId::from_number(number).ok_or(TasksError::NoIdsLeft)?;
        updated.push_str(&format!(
            "- [ ] {id} {}{line_ending}",
            render_gap(gap).ok_or(TasksError::EmptyGap(index + 1))?
        ));
    }
    let n_tasks = TaskList::parse_checked(&updated)?.tasks.len();
    if n_tasks == list.tasks.len() + gaps.len() { Ok(updated) } else { Err(TasksError::UnclosedBlock) }
}

fn render_gap(gap: &ConvergenceGap) -> Option<String> {
    let text = one_line(&gap.text);
    let source = one_line(&gap.source);
    if text.is_empty() || source.is_empty() {
        return None;
    }
    let needs_critical_prefix = gap.is_critical && !text.starts_with("CRITICAL");
    let critical = if needs_critical_prefix { "CRITICAL: " } else { "" };
    Some(format!("{critical}{text} per {source} ({})", gap.kind.as_str()))
}

/// Makes a text a single line without hidden parts.
pub(crate) fn one_line(text: &str) -> String {
    let printable: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let printable = sanitize_text(&printable);
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(LINE_CHARS_MAX).collect();
    line.replace("<!--", "<! --").trim_end().to_owned()
}
