//! A `tasks.md`: parses every format seen in public projects, and makes two kinds of change, ticking a task and
//! appending a phase. Text in, text out; accesses no files.

mod convergence;
mod file_paths;
mod parsing;
mod selection;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::markdown;

pub(crate) use convergence::one_line;
pub use convergence::{ConvergenceGap, GapKind, append_convergence};
pub(crate) use file_paths::{find_paths, has_path};
pub(crate) use parsing::{find_priority, find_story_number};
use parsing::{is_phase_heading, parse_digits, parse_phase, parse_story_label, parse_task};

/// The number of digits of an id.
const ID_DIGITS: std::ops::RangeInclusive<usize> = 3..=9;

/// The longest list seen in public projects has about 300 tasks.
const TASKS_MAX: usize = 5_000;

/// The number of phases in one list.
const PHASES_MAX: usize = 500;

/// The length of a line, which describes one task.
const LINE_BYTES_MAX: usize = 20_000;

/// The number of lines in one list, including the text between tasks.
const LINES_MAX: usize = 50_000;

/// A task's id, such as `T012`, as written in the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(String);

impl TaskId {
    /// Parses an id; a lower-case `t` is accepted.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['T', 't'])?;
        let is_id = ID_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_id.then(|| Self(format!("T{digits}")))
    }

    /// Returns the id with this number; `None` if the number is too large.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::parse(&format!("T{number:03}"))
    }

    /// The id as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // At most nine digits always fit.
        self.0[1..].parse().unwrap_or(u32::MAX)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A task of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskItem {
    /// Its id.
    pub id: TaskId,
    /// Whether its box is checked.
    pub done: bool,
    /// Whether it is marked `[P]`.
    pub parallel: bool,
    /// The numbers of its user stories.
    pub stories: Vec<u32>,
    /// The index of its phase.
    pub phase: Option<usize>,
    /// The first line of its description, without id and labels.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
    /// The offset of the byte in its box.
    pub marker: usize,
}

/// The kind of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseKind {
    /// Before everything else.
    Setup,
    /// Before every story.
    Foundational,
    /// One user story.
    Story {
        /// The step.
        number: u32,
        /// The `1` of `P1`, if given.
        priority: Option<u32>,
    },
    /// After the stories.
    Polish,
    /// Missing parts found in the code.
    Convergence,
    /// Any other.
    Other,
}

/// A phase of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPhase {
    /// Its number as written, such as `3` or `3.1`; optional.
    pub number: Option<String>,
    /// Its title, without the number.
    pub title: String,
    /// Its kind.
    pub kind: PhaseKind,
    /// The line of its heading, from 1.
    pub line: usize,
}

impl fmt::Display for TaskPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.number {
            Some(number) if self.title.is_empty() => write!(f, "Phase {number}"),
            Some(number) => write!(f, "Phase {number}: {}", self.title),
            None => f.write_str(&self.title),
        }
    }
}

/// A task list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    /// Its phases, in order.
    pub phases: Vec<TaskPhase>,
    /// Its tasks, in order.
    pub tasks: Vec<TaskItem>,
}

/// The state of a checkbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickState {
    /// Checked.
    Ticked,
    /// Unchecked.
    Unticked,
}

/// Why a list was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TasksError {
    /// No task has the id.
    #[error("tasks.md has no task {0}; read it for the existing ids")]
    UnknownId(TaskId),
    /// Several tasks have the id.
    #[error("tasks.md has {id} twice, in lines {first_line} and {second_line}; give one of them another id")]
    DuplicateId {
        /// The id.
        id: TaskId,
        /// The first line.
        first_line: usize,
        /// The second line.
        second_line: usize,
    },
    /// A new task has no text.
    #[error("new task {0} needs a text and a source")]
    EmptyGap(usize),
    /// There is no number left for a new task.
    #[error("tasks.md has no ids left after its highest; give that task a lower id")]
    NoIdsLeft,
    /// It exceeds a limit.
    #[error("tasks.md has more than {max} {unit}; split it")]
    TooLarge {
        /// The limit.
        max: usize,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// Appended tasks would not be visible.
    #[error("tasks.md ends in a code block or a comment that is not closed; close it first")]
    UnclosedBlock,
}

impl TaskList {
    /// Parses a list to work on; rejects a list that exceeds a limit.
    pub fn parse_checked(text: &str) -> Result<Self, TasksError> {
        let too_large = |max, unit| Err(TasksError::TooLarge { max, unit });
        if text.split('\n').any(|line| line.len() > LINE_BYTES_MAX) {
            return too_large(LINE_BYTES_MAX, "bytes in a line");
        }
        if bounded_prefix(text).len() < text.len() {
            return too_large(LINES_MAX, "lines");
        }
        // One more than the limit is parsed of each, to be detected here.
        let list = Self::parse(text);
        if list.tasks.len() > TASKS_MAX {
            return too_large(TASKS_MAX, "tasks");
        }
        if list.phases.len() > PHASES_MAX {
            return too_large(PHASES_MAX, "phases");
        }
        Ok(list)
    }

    /// Parses a list. Code blocks, comments and front matter are ignored, as is everything beyond the limits.
    pub fn parse(text: &str) -> Self {
        let visible = markdown::visible_text(bounded_prefix(text));
        let mut list = Self::default();
        let mut section: Option<TaskPhase> = None;
        let mut phase = None;
        for line in markdown::split_lines(&visible) {
            if list.tasks.len() > TASKS_MAX || list.phases.len() > PHASES_MAX {
                break;
            }
            if let Some(heading) = markdown::parse_heading(line.text) {
                let parsed_phase = parse_phase(heading, line.number);
                if heading.level <= 2
                    || parsed_phase.as_ref().is_some_and(|parsed_phase| parsed_phase.number.is_some())
                {
                    section = parsed_phase;
                    phase = None;
                }
                // A heading that says “phase” counts before it has tasks.
                if is_phase_heading(heading)
                    && section.as_ref().is_some_and(|section| section.number.is_some())
                {
                    list.phases.extend(section.take());
                    phase = Some(list.phases.len() - 1);
                }
            } else if let Some(mut task) = parse_task(line) {
                if let Some(section) = section.take() {
                    list.phases.push(section);
                    phase = Some(list.phases.len() - 1);
                }
                task.phase = phase;
                list.tasks.push(task);
            }
        }
        list.infer_stories();
        list
    }

    /// Returns the phase of a task.
    pub fn phase_for(&self, task: &TaskItem) -> Option<&TaskPhase> {
        self.phases.get(task.phase?)
    }

    /// The number of completed tasks.
    pub fn done_count(&self) -> usize {
        self.tasks.iter().filter(|task| task.done).count()
    }

    /// Whether every task is completed.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.done)
    }

    /// Returns tasks whose id was used by an earlier one.
    pub fn duplicate_tasks(&self) -> Vec<&TaskItem> {
        let mut seen = HashSet::new();
        self.tasks.iter().filter(|task| !seen.insert(&task.id)).collect()
    }

    /// Returns the id after the highest; `None` if there is no number left.
    pub fn next_id(&self) -> Option<TaskId> {
        let highest = self.tasks.iter().map(|task| task.id.number()).max().unwrap_or(0);
        TaskId::from_number(highest + 1)
    }

    /// Returns the number after the highest phase.
    fn next_phase_number(&self) -> u32 {
        let major_number =
            |phase: &TaskPhase| phase.number.as_deref()?.split('.').next()?.parse::<u32>().ok();
        self.phases.iter().filter_map(major_number).max().unwrap_or(0).saturating_add(1)
    }

    /// Finds stories whose heading does not say so in English, by the labels of their tasks.
    fn infer_stories(&mut self) {
        let mut stories_by_phase: HashMap<usize, HashSet<&[u32]>> = HashMap::new();
        for task in &self.tasks {
            if let Some(phase) = task.phase {
                stories_by_phase.entry(phase).or_default().insert(&task.stories);
            }
        }
        for (index, phase) in self.phases.iter_mut().enumerate() {
            let stories: Vec<&[u32]> = stories_by_phase.get(&index).into_iter().flatten().copied().collect();
            if let (PhaseKind::Other, [[number]]) = (phase.kind, stories.as_slice()) {
                phase.kind = PhaseKind::Story { number: *number, priority: find_priority(&phase.title) };
            }
        }
    }
}

/// Returns the part of a text that is parsed: a limited number of lines, none of which is too long.
fn bounded_prefix(text: &str) -> &str {
    let lines = text.split_inclusive('\n').take(LINES_MAX);
    let n_bytes = lines.map(str::len).take_while(|n_bytes| *n_bytes <= LINE_BYTES_MAX + 1).sum();
    text.get(..n_bytes).unwrap_or(text)
}

/// Ticks or unticks one task, which changes one byte; a box in that state stays unchanged.
pub fn set_task_ticked(text: &str, id: &TaskId, state: TickState) -> Result<String, TasksError> {
    let list = TaskList::parse_checked(text)?;
    let mut matching = list.tasks.iter().filter(|task| task.id == *id);
    let task = matching.next().ok_or_else(|| TasksError::UnknownId(id.clone()))?;
    if let Some(duplicate) = matching.next() {
        return Err(TasksError::DuplicateId {
            id: id.clone(),
            first_line: task.line,
            second_line: duplicate.line,
        });
    }
    let mut updated = text.to_owned();
    let marker = match state {
        TickState::Ticked => "X",
        TickState::Unticked => " ",
    };
    if task.done != (state == TickState::Ticked) {
        updated.replace_range(task.marker..=task.marker, marker);
    }
    Ok(updated)
}

#[cfg(test)]
mod tests;
