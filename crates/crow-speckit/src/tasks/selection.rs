//! Selects the next tasks: of those that the user asked for, the next one, or the next few that can run in parallel.

use std::collections::HashSet;

use super::{PhaseKind, TaskId, TaskItem, TaskList, find_paths, parse_digits, parse_story_label};

/// Words that a scope may contain between its parts.
const FILLER_WORDS: [&str; 9] = ["and", "then", "only", "just", "the", "task", "tasks", "user", "please"];

enum TaskSelector {
    Ids(u32, u32),
    Story(u32),
    Phases(String, String),
    Kind(PhaseKind),
}

impl TaskList {
    /// Returns the open tasks of a scope such as `T003-T007, US1, phase 2`, in order; empty if they are done or
    /// missing. `None` if the scope says anything else: then the model reads it, and every open task is selected.
    pub fn select_tasks(&self, scope: &str) -> Option<Vec<TaskId>> {
        let selectors = parse_scope(scope)?;
        let matches_scope =
            |task: &TaskItem| selectors.iter().any(|selector| self.is_selected(task, selector));
        Some(
            self.tasks
                .iter()
                .filter(|task| !task.done && matches_scope(task))
                .map(|task| task.id.clone())
                .collect(),
        )
    }

    /// Returns the next step among these tasks, or among all: one task, or consecutive open `[P]` tasks of one phase
    /// that share no file and do not mention each other. Empty if nothing is left.
    pub fn next_batch(&self, candidates: Option<&[TaskId]>) -> Vec<&TaskItem> {
        let candidates: Option<HashSet<&TaskId>> = candidates.map(|ids| ids.iter().collect());
        let is_candidate = |task: &&TaskItem| candidates.as_ref().is_none_or(|ids| ids.contains(&task.id));
        let mut open_tasks = self.tasks.iter().filter(|task| !task.done).filter(is_candidate);
        let Some(first) = open_tasks.next() else { return Vec::new() };
        let mut batch = vec![first];
        let mut files: HashSet<&str> = find_paths(&first.text).collect();
        let mut ids: HashSet<&str> = HashSet::from([first.id.as_str()]);
        let mut is_batch_open = first.parallel;
        while let Some(task) =
            open_tasks.next().filter(|task| is_batch_open && task.parallel && task.phase == first.phase)
        {
            let task_files: Vec<&str> = find_paths(&task.text).collect();
            is_batch_open = !task_files.iter().any(|file| files.contains(file))
                && !task.text.split(|char: char| !char.is_alphanumeric()).any(|word| ids.contains(word))
                && ids.insert(task.id.as_str());
            if is_batch_open {
                files.extend(task_files);
                batch.push(task);
            }
        }
        batch
    }

    fn is_selected(&self, task: &TaskItem, selector: &TaskSelector) -> bool {
        let phase = self.phase_for(task);
        match selector {
            TaskSelector::Ids(first, last) => (*first..=*last).contains(&task.id.number()),
            TaskSelector::Story(story) => {
                let is_story_phase = matches!(phase.map(|phase| phase.kind),
                    Some(PhaseKind::Story { number, .. }) if number == *story);
                task.stories.contains(story) || task.stories.is_empty() && is_story_phase
            }
            TaskSelector::Kind(kind) => phase.is_some_and(|phase| phase.kind == *kind),
            TaskSelector::Phases(first, last) => {
                let number = phase.and_then(|phase| phase.number.as_deref()).unwrap_or_default();
                let major_number = |number: &str| parse_digits(number.split('.').next().unwrap_or(number));
                let is_subphase =
                    number.strip_prefix(first.as_str()).is_some_and(|rest| rest.starts_with('.'));
                match (major_number(first), major_number(number), major_number(last)) {
                    (Some(first), Some(number), Some(last)) if first < last => {
                        (first..=last).contains(&number)
                    }
                    _ => number == first || is_subphase,
                }
            }
        }
    }
}

/// Parses a scope; `None` if it is empty or has an unknown word.
fn parse_scope(scope: &str) -> Option<Vec<TaskSelector>> {
    let normalized: String =
        scope.to_lowercase().replace("..", "-").replace(['–', '—'], "-").replace(['[', ']'], " ");
    let normalized = normalized.replace(" - ", "-").replace(" to ", "-").replace(" through ", "-");
    let words: Vec<&str> = normalized
        .split(|char: char| char.is_whitespace() || ",;+&:".contains(char))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty() && !FILLER_WORDS.contains(word))
        .collect();
    let mut selectors = Vec::new();
    let mut rest = words.as_slice();
    while let [first, after @ ..] = rest {
        let (selector, after) = match (*first, after) {
            ("phase" | "phases", [number, after @ ..]) => {
                (parse_phases(number)?, parse_numbers(after, &mut selectors, parse_phases))
            }
            ("story" | "stories", [number, after @ ..]) => {
                (parse_story(number)?, parse_numbers(after, &mut selectors, parse_story))
            }
            ("setup", _) => (TaskSelector::Kind(PhaseKind::Setup), after),
            ("foundational" | "foundation", _) => (TaskSelector::Kind(PhaseKind::Foundational), after),
            ("polish", _) => (TaskSelector::Kind(PhaseKind::Polish), after),
            ("convergence", _) => (TaskSelector::Kind(PhaseKind::Convergence), after),
            (word, _) => {
                (parse_ids(word).or_else(|| parse_story_label(word).map(TaskSelector::Story))?, after)
            }
        };
        selectors.push(selector);
        rest = after;
    }
    (!selectors.is_empty()).then_some(selectors)
}

/// Parses further bare numbers, as in `phases 2, 3`.
fn parse_numbers<'a, 'b>(
    mut rest: &'a [&'b str],
    selectors: &mut Vec<TaskSelector>,
    parse_number: fn(&str) -> Option<TaskSelector>,
) -> &'a [&'b str] {
    while let [number, after @ ..] = rest {
        let Some(selector) = parse_number(number) else { break };
        selectors.push(selector);
        rest = after;
    }
    rest
}

fn parse_phases(word: &str) -> Option<TaskSelector> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let is_number = |word: &str| {
        word.starts_with(|char: char| char.is_ascii_digit())
            && word.chars().all(|char| char.is_ascii_digit() || char == '.')
    };
    (is_number(first) && is_number(last)).then(|| TaskSelector::Phases(first.into(), last.into()))
}

fn parse_story(word: &str) -> Option<TaskSelector> {
    (!word.is_empty()).then(|| parse_digits(word)).flatten().map(TaskSelector::Story)
}

fn parse_ids(word: &str) -> Option<TaskSelector> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let first = TaskId::parse(first)?.number();
    let last = TaskId::parse(last).map(|id| id.number()).or_else(|| parse_digits(last))?;
    Some(TaskSelector::Ids(first, last))
}
