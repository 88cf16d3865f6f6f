//! A `tasks.md`: what it lists, read from every spelling seen in public projects, and the two changes that are made to it,
//! a tick and a new phase at its end. Text in, text out; knows no file.

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

/// Digits an id may have: with more it is no task's.
const ID_DIGITS: std::ops::RangeInclusive<usize> = 3..=9;

/// Tasks of one list; the longest seen in public projects has some 300.
const TASKS_MAX: usize = 5_000;

/// Phases of one list.
const PHASES_MAX: usize = 500;

/// Bytes of a line, which says what one person or model does next.
const LINE_BYTES_MAX: usize = 20_000;

/// Lines of one list, with all that is said between its tasks.
const LINES_MAX: usize = 50_000;

/// A task's id, such as `T012`, as it is spelled in the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(String);

impl TaskId {
    /// Reads an id; a small `t` will do.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['T', 't'])?;
        let is_id = ID_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_id.then(|| Self(format!("T{digits}")))
    }

    /// The id with this number; none if the number is too large for one.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::parse(&format!("T{number:03}"))
    }

    /// How it is spelled.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        // Nine digits always fit.
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
    /// Whether its box is ticked.
    pub done: bool,
    /// Whether it says `[P]`.
    pub parallel: bool,
    /// The numbers of the stories it says it belongs to.
    pub stories: Vec<u32>,
    /// Which of the list's phases it stands in.
    pub phase: Option<usize>,
    /// What is to be done: its first line, without id and labels.
    pub text: String,
    /// Where it stands, from 1.
    pub line: usize,
    /// The offset of the byte in its box.
    pub marker: usize,
}

/// What a phase is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhaseKind {
    /// Before everything.
    Setup,
    /// Before every story.
    Foundational,
    /// One user story.
    Story {
        /// Which.
        number: u32,
        /// The `1` of `P1`, where it is said.
        priority: Option<u32>,
    },
    /// After the stories.
    Polish,
    /// What the code turned out to lack.
    Convergence,
    /// Any other.
    Other,
}

/// A part of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPhase {
    /// Its number as it is spelled, such as `3` or `3.1`; some have none.
    pub number: Option<String>,
    /// Its title, without the number.
    pub title: String,
    /// What it is for.
    pub kind: PhaseKind,
    /// Where its heading stands, from 1.
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

/// What a box is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickState {
    /// Ticked.
    Ticked,
    /// Empty.
    Unticked,
}

/// Why a list was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TasksError {
    /// No task has the id.
    #[error("tasks.md has no task {0}; read it for the ids there are")]
    UnknownId(TaskId),
    /// Several tasks have the id.
    #[error("tasks.md has {id} twice, in lines {first_line} and {second_line}; give one of them another id")]
    DuplicateId {
        /// The id.
        id: TaskId,
        /// One line.
        first_line: usize,
        /// Another.
        second_line: usize,
    },
    /// A new task says nothing.
    #[error("new task {0} needs a text and a source")]
    EmptyGap(usize),
    /// There is no number left for a new task.
    #[error("tasks.md has no ids left after its highest; give that task a lower id")]
    NoIdsLeft,
    /// It has more than anybody can go through.
    #[error("tasks.md has more than {max} {unit}; split it")]
    TooLarge {
        /// How many there may be.
        max: usize,
        /// Of what.
        unit: &'static str,
    },
    /// What is added at the end would not be seen as tasks.
    #[error("tasks.md ends in a code block or a comment that is not closed; close it first")]
    UnclosedBlock,
}

impl TaskList {
    /// Reads a list that is to be worked on; one that is too large is refused.
    pub fn parse_checked(text: &str) -> Result<Self, TasksError> {
        let too_large = |max, unit| Err(TasksError::TooLarge { max, unit });
        if text.split('\n').any(|line| line.len() > LINE_BYTES_MAX) {
            return too_large(LINE_BYTES_MAX, "bytes in a line");
        }
        if bounded_prefix(text).len() < text.len() {
            return too_large(LINES_MAX, "lines");
        }
        // One more than may be is kept of each, to be seen here.
        let list = Self::parse(text);
        if list.tasks.len() > TASKS_MAX {
            return too_large(TASKS_MAX, "tasks");
        }
        if list.phases.len() > PHASES_MAX {
            return too_large(PHASES_MAX, "phases");
        }
        Ok(list)
    }

    /// Reads a list. What is in code blocks, comments and front matter is no task, and what is beyond the limits is not
    /// read.
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
                // A phase that says so counts before it has tasks.
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

    /// The phase a task stands in.
    pub fn phase_for(&self, task: &TaskItem) -> Option<&TaskPhase> {
        self.phases.get(task.phase?)
    }

    /// How many tasks are done.
    pub fn done_count(&self) -> usize {
        self.tasks.iter().filter(|task| task.done).count()
    }

    /// Tasks whose id an earlier one has.
    pub fn duplicate_tasks(&self) -> Vec<&TaskItem> {
        let mut seen = HashSet::new();
        self.tasks.iter().filter(|task| !seen.insert(&task.id)).collect()
    }

    /// The id behind the highest; none if there is no number left.
    pub fn next_id(&self) -> Option<TaskId> {
        let highest = self.tasks.iter().map(|task| task.id.number()).max().unwrap_or(0);
        TaskId::from_number(highest + 1)
    }

    /// The number behind the highest phase's.
    fn next_phase_number(&self) -> u32 {
        let major_number =
            |phase: &TaskPhase| phase.number.as_deref()?.split('.').next()?.parse::<u32>().ok();
        self.phases.iter().filter_map(major_number).max().unwrap_or(0).saturating_add(1)
    }

    /// Finds the stories whose heading does not say so in English, by what their tasks say.
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

/// As much of a text as is read: so many lines, none of which is too long.
fn bounded_prefix(text: &str) -> &str {
    let lines = text.split_inclusive('\n').take(LINES_MAX);
    let n_bytes = lines.map(str::len).take_while(|n_bytes| *n_bytes <= LINE_BYTES_MAX + 1).sum();
    text.get(..n_bytes).unwrap_or(text)
}

/// Ticks or empties one box, which changes one byte; a box that says so already stays as it is.
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
