//! A task list as the plan that a client draws. Text only; knows no client.

use std::collections::HashMap;

use crate::checklist::ChecklistCounts;
use crate::tasks::{PhaseKind, TaskId, TaskItem, TaskList};

/// Entries from which on what is done is folded: more than people look through.
const ENTRIES_MAX: usize = 60;

/// Letters of an entry: one line of a narrow panel, twice.
const ENTRY_CHARS_MAX: usize = 120;

/// How much an entry matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPlanPriority {
    /// Others wait for it.
    High,
    /// Neither.
    Medium,
    /// It can wait.
    Low,
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPlanStatus {
    /// Not begun.
    Pending,
    /// At work.
    InProgress,
    /// Done.
    Completed,
}

/// A line of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlanEntry {
    /// What people read.
    pub text: String,
    /// How much it matters.
    pub priority: TaskPlanPriority,
    /// Where it stands.
    pub status: TaskPlanStatus,
    /// Its task; none for what is done of a phase.
    pub id: Option<TaskId>,
    /// The phase it stands in, or is.
    pub phase: Option<String>,
    /// The stories it belongs to.
    pub stories: Vec<u32>,
    /// Whether it says `[P]`.
    pub parallel: bool,
    /// Where it stands in the list, from 1.
    pub line: usize,
}

/// The whole plan. Where it is long, what is done of each phase is one entry, so that it gets shorter as work goes on.
pub fn build_plan_view(list: &TaskList, in_progress: &[TaskId]) -> Vec<TaskPlanEntry> {
    let is_long = list.tasks.len() > ENTRIES_MAX;
    let mut counts: HashMap<Option<usize>, ChecklistCounts> = HashMap::new();
    for task in &list.tasks {
        let counts = counts.entry(task.phase).or_default();
        counts.n_total += 1;
        counts.n_checked += usize::from(task.done);
    }
    let mut entries = Vec::new();
    for task in &list.tasks {
        let counts = counts.remove(&task.phase).filter(|counts| is_long && counts.n_checked > 0);
        entries.extend(counts.map(|counts| folded_entry(list, task, counts)));
        if !(is_long && task.done) {
            entries.push(task_entry(list, task, in_progress));
        }
    }
    entries
}

fn task_entry(list: &TaskList, task: &TaskItem, in_progress: &[TaskId]) -> TaskPlanEntry {
    let labels: Vec<String> = task.stories.iter().map(|story| format!("US{story}")).collect();
    let label = if labels.is_empty() { String::new() } else { format!("[{}] ", labels.join("+")) };
    let phase = list.phase_for(task);
    let kind = phase.map_or(PhaseKind::Other, |phase| phase.kind);
    TaskPlanEntry {
        text: truncate_entry(&format!("{} {label}{}", task.id, task.text)),
        priority: if task.text.contains("CRITICAL") {
            TaskPlanPriority::High
        } else {
            phase_priority(kind, &task.stories)
        },
        status: match (task.done, in_progress.contains(&task.id)) {
            (true, _) => TaskPlanStatus::Completed,
            (false, true) => TaskPlanStatus::InProgress,
            (false, false) => TaskPlanStatus::Pending,
        },
        id: Some(task.id.clone()),
        phase: phase.map(ToString::to_string),
        stories: task.stories.clone(),
        parallel: task.parallel,
        line: task.line,
    }
}

/// What is done of a phase, of which this is the first task.
fn folded_entry(list: &TaskList, first: &TaskItem, counts: ChecklistCounts) -> TaskPlanEntry {
    let phase = list.phase_for(first);
    let name = phase.map_or_else(|| "Tasks without a phase".to_owned(), ToString::to_string);
    TaskPlanEntry {
        text: truncate_entry(&format!("{name} ({}/{})", counts.n_checked, counts.n_total)),
        priority: phase_priority(phase.map_or(PhaseKind::Other, |phase| phase.kind), &[]),
        status: TaskPlanStatus::Completed,
        id: None,
        phase: phase.map(ToString::to_string),
        stories: Vec::new(),
        parallel: false,
        line: phase.map_or(first.line, |phase| phase.line),
    }
}

fn phase_priority(kind: PhaseKind, stories: &[u32]) -> TaskPlanPriority {
    let story_priority = |rank: u32| match rank {
        0 | 1 => TaskPlanPriority::High,
        2 => TaskPlanPriority::Medium,
        _ => TaskPlanPriority::Low,
    };
    match kind {
        PhaseKind::Setup | PhaseKind::Foundational => TaskPlanPriority::High,
        // Stories are numbered by their priority, where a heading does not say it.
        PhaseKind::Story { number, priority } => story_priority(priority.unwrap_or(number)),
        PhaseKind::Polish => TaskPlanPriority::Low,
        PhaseKind::Convergence => TaskPlanPriority::Medium,
        PhaseKind::Other => {
            stories.iter().min().map_or(TaskPlanPriority::Medium, |story| story_priority(*story))
        }
    }
}

fn truncate_entry(text: &str) -> String {
    if text.chars().count() <= ENTRY_CHARS_MAX {
        return text.to_owned();
    }
    let truncated: String = text.chars().take(ENTRY_CHARS_MAX - 1).collect();
    format!("{}…", truncated.trim_end())
}

#[cfg(test)]
mod tests;
