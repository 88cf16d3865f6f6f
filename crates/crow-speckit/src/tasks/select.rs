//! Which tasks come next: of those that the person asked for, the next one, or the next few that may go side by side.

use std::collections::HashSet;

use super::{PhaseKind, TaskId, TaskItem, TaskList, find_paths, parse_digits, parse_story_label};

/// Words between the things that a scope names.
const BETWEEN: [&str; 9] = ["and", "then", "only", "just", "the", "task", "tasks", "user", "please"];

enum TaskSelector {
    Ids(u32, u32),
    Story(u32),
    Phases(String, String),
    Kind(PhaseKind),
}

impl TaskList {
    /// The open tasks that a scope such as `T003-T007, US1, phase 2` means, in their order; empty if those it means are
    /// done or not there. `None` where it says anything else: then it is for the model to read, and every open task is meant.
    pub fn select_tasks(&self, scope: &str) -> Option<Vec<TaskId>> {
        let named = parse_scope(scope)?;
        let is_meant = |task: &TaskItem| named.iter().any(|named| self.is_selected(task, named));
        Some(
            self.tasks
                .iter()
                .filter(|task| !task.done && is_meant(task))
                .map(|task| task.id.clone())
                .collect(),
        )
    }

    /// The next step among these tasks, or among all: one task, or the open `[P]` tasks of one phase that follow each other
    /// and name neither a common file nor each other. Empty when nothing is left.
    pub fn next_batch(&self, among: Option<&[TaskId]>) -> Vec<&TaskItem> {
        let among: Option<HashSet<&TaskId>> = among.map(|ids| ids.iter().collect());
        let is_among = |task: &&TaskItem| among.as_ref().is_none_or(|ids| ids.contains(&task.id));
        let mut open = self.tasks.iter().filter(|task| !task.done).filter(is_among);
        let Some(first) = open.next() else { return Vec::new() };
        let mut step = vec![first];
        let mut files: HashSet<&str> = find_paths(&first.text).collect();
        let mut ids: HashSet<&str> = HashSet::from([first.id.as_str()]);
        let mut is_open = first.parallel;
        while let Some(task) =
            open.next().filter(|task| is_open && task.parallel && task.phase == first.phase)
        {
            let named: Vec<&str> = find_paths(&task.text).collect();
            is_open = !named.iter().any(|file| files.contains(file))
                && !task.text.split(|char: char| !char.is_alphanumeric()).any(|word| ids.contains(word))
                && ids.insert(task.id.as_str());
            if is_open {
                files.extend(named);
                step.push(task);
            }
        }
        step
    }

    fn is_selected(&self, task: &TaskItem, named: &TaskSelector) -> bool {
        let phase = self.phase_for(task);
        match named {
            TaskSelector::Ids(first, last) => (*first..=*last).contains(&task.id.number()),
            TaskSelector::Story(story) => {
                let is_its_phase = matches!(phase.map(|phase| phase.kind),
                    Some(PhaseKind::Story { number, .. }) if number == *story);
                task.stories.contains(story) || task.stories.is_empty() && is_its_phase
            }
            TaskSelector::Kind(kind) => phase.is_some_and(|phase| phase.kind == *kind),
            TaskSelector::Phases(first, last) => {
                let number = phase.and_then(|phase| phase.number.as_deref()).unwrap_or_default();
                let major = |number: &str| parse_digits(number.split('.').next().unwrap_or(number));
                let is_part = number.strip_prefix(first.as_str()).is_some_and(|rest| rest.starts_with('.'));
                match (major(first), major(number), major(last)) {
                    (Some(first), Some(number), Some(last)) if first < last => {
                        (first..=last).contains(&number)
                    }
                    _ => number == first || is_part,
                }
            }
        }
    }
}

/// Reads a scope; `None` if it is empty or has a word that is no part of one.
fn parse_scope(scope: &str) -> Option<Vec<TaskSelector>> {
    let spaced: String =
        scope.to_lowercase().replace("..", "-").replace(['–', '—'], "-").replace(['[', ']'], " ");
    let spaced = spaced.replace(" - ", "-").replace(" to ", "-").replace(" through ", "-");
    let words: Vec<&str> = spaced
        .split(|char: char| char.is_whitespace() || ",;+&:".contains(char))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty() && !BETWEEN.contains(word))
        .collect();
    let mut named = Vec::new();
    let mut rest = words.as_slice();
    while let [first, after @ ..] = rest {
        let (found, after) = match (*first, after) {
            ("phase" | "phases", [number, after @ ..]) => {
                (parse_phases(number)?, parse_numbers(after, &mut named, parse_phases))
            }
            ("story" | "stories", [number, after @ ..]) => {
                (parse_story(number)?, parse_numbers(after, &mut named, parse_story))
            }
            ("setup", _) => (TaskSelector::Kind(PhaseKind::Setup), after),
            ("foundational" | "foundation", _) => (TaskSelector::Kind(PhaseKind::Foundational), after),
            ("polish", _) => (TaskSelector::Kind(PhaseKind::Polish), after),
            ("convergence", _) => (TaskSelector::Kind(PhaseKind::Convergence), after),
            (word, _) => {
                (parse_ids(word).or_else(|| parse_story_label(word).map(TaskSelector::Story))?, after)
            }
        };
        named.push(found);
        rest = after;
    }
    (!named.is_empty()).then_some(named)
}

/// Reads on while there are bare numbers, as in `phases 2, 3`.
fn parse_numbers<'a, 'b>(
    mut rest: &'a [&'b str],
    named: &mut Vec<TaskSelector>,
    read: fn(&str) -> Option<TaskSelector>,
) -> &'a [&'b str] {
    while let [number, after @ ..] = rest {
        let Some(found) = read(number) else { break };
        named.push(found);
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
