//! A task list as the plan that a client draws. Text only; knows no client.

use std::collections::HashSet;

use crate::tasks::{PhaseKind, Task, TaskId, TaskList};

/// Entries from which on finished phases are folded: more than people look through.
const ENTRIES_MAX: usize = 60;

/// Letters of an entry: one line of a narrow panel, twice.
const ENTRY_CHARS_MAX: usize = 120;

/// How much an entry matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Others wait for it.
    High,
    /// Neither.
    Medium,
    /// It can wait.
    Low,
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not begun.
    Pending,
    /// At work.
    InProgress,
    /// Done.
    Completed,
}

/// A line of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What people read.
    pub text: String,
    /// How much it matters.
    pub priority: Priority,
    /// Where it stands.
    pub status: Status,
    /// Its task; none for a folded phase.
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

/// The whole plan. Where it is long, each finished phase is one entry.
pub fn plan_view(list: &TaskList, at_work: &[TaskId]) -> Vec<Entry> {
    let unfinished: HashSet<Option<usize>> =
        list.tasks.iter().filter(|task| !task.done).map(|task| task.phase).collect();
    let is_long = list.tasks.len() > ENTRIES_MAX;
    let mut entries = Vec::new();
    let mut folded = HashSet::new();
    for task in &list.tasks {
        match task.phase {
            Some(phase) if is_long && !unfinished.contains(&task.phase) => {
                if folded.insert(phase) {
                    entries.extend(folded_phase(list, phase));
                }
            }
            Some(_) | None => entries.push(entry(list, task, at_work)),
        }
    }
    entries
}

fn entry(list: &TaskList, task: &Task, at_work: &[TaskId]) -> Entry {
    let labels: Vec<String> = task.stories.iter().map(|story| format!("US{story}")).collect();
    let label = if labels.is_empty() { String::new() } else { format!("[{}] ", labels.join("+")) };
    let phase = list.phase(task);
    let kind = phase.map_or(PhaseKind::Other, |phase| phase.kind);
    Entry {
        text: cut(&format!("{} {label}{}", task.id, task.text)),
        priority: if task.text.contains("CRITICAL") { Priority::High } else { priority(kind, &task.stories) },
        status: match (task.done, at_work.contains(&task.id)) {
            (true, _) => Status::Completed,
            (false, true) => Status::InProgress,
            (false, false) => Status::Pending,
        },
        id: Some(task.id.clone()),
        phase: phase.map(ToString::to_string),
        stories: task.stories.clone(),
        parallel: task.parallel,
        line: task.line,
    }
}

fn folded_phase(list: &TaskList, at: usize) -> Option<Entry> {
    let phase = list.phases.get(at)?;
    let n_tasks = list.tasks.iter().filter(|task| task.phase == Some(at)).count();
    Some(Entry {
        text: cut(&format!("{phase} ({n_tasks}/{n_tasks})")),
        priority: priority(phase.kind, &[]),
        status: Status::Completed,
        id: None,
        phase: Some(phase.to_string()),
        stories: Vec::new(),
        parallel: false,
        line: phase.line,
    })
}

fn priority(kind: PhaseKind, stories: &[u32]) -> Priority {
    let of_story = |rank: u32| match rank {
        0 | 1 => Priority::High,
        2 => Priority::Medium,
        _ => Priority::Low,
    };
    match kind {
        PhaseKind::Setup | PhaseKind::Foundational => Priority::High,
        // Stories are numbered by their priority, where a heading does not say it.
        PhaseKind::Story { number, priority } => of_story(priority.unwrap_or(number)),
        PhaseKind::Polish => Priority::Low,
        PhaseKind::Convergence => Priority::Medium,
        PhaseKind::Other => stories.iter().min().map_or(Priority::Medium, |story| of_story(*story)),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= ENTRY_CHARS_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(ENTRY_CHARS_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
