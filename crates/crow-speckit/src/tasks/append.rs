//! What `/speckit.converge` adds to a list: one phase at its end.

use super::{TaskId, TaskList, TasksError};
use crate::sanitize_text;

/// Letters of a new task's text or source: it is one line, in a list that people read.
const WORDS_CHARS_MAX: usize = 1_000;

/// How the code differs from what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapKind {
    /// It is not there.
    Missing,
    /// Only some of it is there.
    Partial,
    /// Something else is there.
    Contradicts,
    /// Nobody asked for it.
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

/// What the code lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvergenceGap {
    /// What is to be done.
    pub text: String,
    /// What asks for it, such as `FR-003`.
    pub source: String,
    /// How the code differs.
    pub kind: GapKind,
    /// Whether it breaks a ground rule.
    pub is_critical: bool,
}

/// Adds a phase with a task for each gap, the critical ones first. What was there stays, to the byte; without gaps
/// nothing is added.
pub fn append_convergence(text: &str, gaps: &[ConvergenceGap]) -> Result<String, TasksError> {
    if gaps.is_empty() {
        return Ok(text.to_owned());
    }
    let list = TaskList::parse_checked(text)?;
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut longer = text.to_owned();
    if !text.is_empty() {
        longer.push_str(if text.ends_with('\n') { "" } else { end });
        longer.push_str(end);
    }
    longer.push_str(&format!("## Phase {}: Convergence{end}{end}", list.next_phase_number()));
    let first = list.next_id().ok_or(TasksError::NoIdsLeft)?.number();
    let (critical, others): (Vec<_>, Vec<_>) = gaps.iter().enumerate().partition(|(_, gap)| gap.is_critical);
    for (number, (at, gap)) in (first..).zip(critical.into_iter().chain(others)) {
        let id = TaskId::from_number(number).ok_or(TasksError::NoIdsLeft)?;
        longer.push_str(&format!("- [ ] {id} {}{end}", render_gap(gap).ok_or(TasksError::Empty(at + 1))?));
    }
    let n_seen = TaskList::parse_checked(&longer)?.tasks.len();
    if n_seen == list.tasks.len() + gaps.len() { Ok(longer) } else { Err(TasksError::Unclosed) }
}

fn render_gap(gap: &ConvergenceGap) -> Option<String> {
    let text = one_line(&gap.text);
    let source = one_line(&gap.source);
    if text.is_empty() || source.is_empty() {
        return None;
    }
    let is_unsaid = gap.is_critical && !text.starts_with("CRITICAL");
    let critical = if is_unsaid { "CRITICAL: " } else { "" };
    Some(format!("{critical}{text} per {source} ({})", gap.kind.as_str()))
}

/// Words as one line that hides nothing behind it.
pub(crate) fn one_line(words: &str) -> String {
    let shown: String = words.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let shown = sanitize_text(&shown);
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(WORDS_CHARS_MAX).collect();
    line.replace("<!--", "<! --").trim_end().to_owned()
}
