//! Converts a task list into the plan that a client shows. Knows no clients.

use std::collections::HashMap;

use crate::checklist::ChecklistCounts;
use crate::tasks::{PhaseKind, TaskId, TaskItem, TaskList};

/// Longer lists are shortened by folding completed tasks.
const ENTRIES_MAX: usize = 60;

/// The length of an entry: two lines of a narrow panel.
const ENTRY_CHARS_MAX: usize = 120;

/// The priority of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPlanPriority {
    /// Others depend on it.
    High,
    /// Neither high nor low.
    Medium,
    /// It can wait.
    Low,
}

/// The status of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPlanStatus {
    /// Not started.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// An entry of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlanEntry {
    /// The displayed text.
    pub text: String,
    /// Its priority.
    pub priority: TaskPlanPriority,
    /// Shows the state of the workflow.
    pub status: TaskPlanStatus,
    /// Its task; `None` for the folded tasks of a phase.
    pub id: Option<TaskId>,
    /// Its phase.
    pub phase: Option<String>,
    /// The numbers of its user stories.
    pub stories: Vec<u32>,
    /// Whether it is marked `[P]`.
    pub parallel: bool,
    /// Its line in the list, from 1.
    pub line: usize,
}

/// Builds the whole plan. In long lists the completed tasks of each phase are one entry, so that the plan gets shorter
/// as work proceeds.
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

/// Builds the entry for the completed tasks of a phase, given its first task.
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
        // Stories are numbered by priority if a heading does not give one.
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
