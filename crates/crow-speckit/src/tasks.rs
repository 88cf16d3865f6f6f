//! A `tasks.md`: what it lists, read from every spelling seen in public projects, and the two changes that are made to it,
//! a tick and a new phase at its end. Text in, text out; knows no file.

mod append;
mod path;
mod select;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::markdown::{self, Heading};

pub use append::{Gap, GapKind, append_convergence};
pub(crate) use path::{has_path, paths};

/// Digits an id may have: with more it is no task's.
const ID_DIGITS: std::ops::RangeInclusive<usize> = 3..=9;

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
    pub fn of(number: u32) -> Option<Self> {
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
pub struct Task {
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
pub struct Phase {
    /// Its number as it is spelled, such as `3` or `3.1`; some have none.
    pub number: Option<String>,
    /// Its title, without the number.
    pub title: String,
    /// What it is for.
    pub kind: PhaseKind,
    /// Where its heading stands, from 1.
    pub line: usize,
}

impl fmt::Display for Phase {
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
    pub phases: Vec<Phase>,
    /// Its tasks, in order.
    pub tasks: Vec<Task>,
}

/// What a box is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Ticked.
    Yes,
    /// Empty.
    No,
}

/// Why a list was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TasksError {
    /// No task has the id.
    #[error("tasks.md has no task {0}; read it for the ids there are")]
    Unknown(TaskId),
    /// Several tasks have the id.
    #[error("tasks.md has {id} twice, in lines {first} and {second}; give one of them another id")]
    Twice {
        /// The id.
        id: TaskId,
        /// One line.
        first: usize,
        /// Another.
        second: usize,
    },
    /// A new task says nothing.
    #[error("new task {0} needs a text and a source")]
    Empty(usize),
    /// There is no number left for a new task.
    #[error("tasks.md has no ids left after its highest; give that task a lower id")]
    NoIdsLeft,
    /// What is added at the end would not be seen as tasks.
    #[error("tasks.md ends in a code block or a comment that is not closed; close it first")]
    Unclosed,
}

impl TaskList {
    /// Reads a list. What is in code blocks, comments and front matter is no task.
    pub fn parse(text: &str) -> Self {
        let visible = markdown::visible(text);
        let mut list = Self::default();
        let mut section: Option<Phase> = None;
        let mut phase = None;
        for line in markdown::lines(&visible) {
            if let Some(heading) = markdown::heading(line.text) {
                let found = phase_of(heading, line.number);
                if heading.level <= 2 || found.as_ref().is_some_and(|found| found.number.is_some()) {
                    section = found;
                    phase = None;
                }
                // A phase that says so counts before it has tasks.
                let is_said = starts_with_word(heading.title.trim_matches(MARKS), "phase");
                if is_said && section.as_ref().is_some_and(|section| section.number.is_some()) {
                    list.phases.extend(section.take());
                    phase = Some(list.phases.len() - 1);
                }
            } else if let Some(mut task) = task_of(line) {
                if let Some(section) = section.take() {
                    list.phases.push(section);
                    phase = Some(list.phases.len() - 1);
                }
                task.phase = phase;
                list.tasks.push(task);
            }
        }
        list.name_stories();
        list
    }

    /// The task with this id; the first of several.
    pub fn find(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    /// The phase a task stands in.
    pub fn phase(&self, task: &Task) -> Option<&Phase> {
        self.phases.get(task.phase?)
    }

    /// How many tasks are done.
    pub fn n_done(&self) -> usize {
        self.tasks.iter().filter(|task| task.done).count()
    }

    /// Tasks whose id an earlier one has.
    pub fn repeated(&self) -> Vec<&Task> {
        let mut seen = HashSet::new();
        self.tasks.iter().filter(|task| !seen.insert(&task.id)).collect()
    }

    /// The id behind the highest; none if there is no number left.
    pub fn next_id(&self) -> Option<TaskId> {
        let highest = self.tasks.iter().map(|task| task.id.number()).max().unwrap_or(0);
        TaskId::of(highest + 1)
    }

    /// The number behind the highest phase's.
    fn next_phase(&self) -> u32 {
        let major = |phase: &Phase| phase.number.as_deref()?.split('.').next()?.parse::<u32>().ok();
        self.phases.iter().filter_map(major).max().unwrap_or(0).saturating_add(1)
    }

    /// Finds the stories whose heading does not say so in English, by what their tasks say.
    fn name_stories(&mut self) {
        let mut said: HashMap<usize, HashSet<&[u32]>> = HashMap::new();
        for task in &self.tasks {
            if let Some(phase) = task.phase {
                said.entry(phase).or_default().insert(&task.stories);
            }
        }
        for (at, phase) in self.phases.iter_mut().enumerate() {
            let stories: Vec<&[u32]> = said.get(&at).into_iter().flatten().copied().collect();
            if let (PhaseKind::Other, [[number]]) = (phase.kind, stories.as_slice()) {
                phase.kind = PhaseKind::Story { number: *number, priority: priority_in(&phase.title) };
            }
        }
    }
}

/// Ticks or empties one box, which changes one byte; a box that says so already stays as it is.
pub fn flip(text: &str, id: &TaskId, done: Done) -> Result<String, TasksError> {
    let list = TaskList::parse(text);
    let mut found = list.tasks.iter().filter(|task| task.id == *id);
    let task = found.next().ok_or_else(|| TasksError::Unknown(id.clone()))?;
    if let Some(other) = found.next() {
        return Err(TasksError::Twice { id: id.clone(), first: task.line, second: other.line });
    }
    let mut flipped = text.to_owned();
    let marker = match done {
        Done::Yes => "X",
        Done::No => " ",
    };
    if task.done != (done == Done::Yes) {
        flipped.replace_range(task.marker..=task.marker, marker);
    }
    Ok(flipped)
}

fn task_of(line: markdown::Line<'_>) -> Option<Task> {
    let item = markdown::item(line.text)?;
    let (id, rest) = id_of(item.text)?;
    let mut task = Task {
        id,
        done: item.is_ticked,
        parallel: false,
        stories: Vec::new(),
        phase: None,
        text: String::new(),
        line: line.number,
        marker: line.start + item.marker,
    };
    task.text = read_labels(rest, &mut task);
    Some(task)
}

/// What people put around an id or a label.
const MARKS: [char; 3] = ['*', '_', '`'];

/// What people put behind an id.
const SEPARATORS: [char; 6] = [':', '.', '-', '–', '—', '：'];

/// Reads the id at the beginning of an item; gives what stands behind it.
fn id_of(item: &str) -> Option<(TaskId, &str)> {
    let inner = item.trim_start_matches(MARKS);
    let mark = &item[..item.len() - inner.len()];
    let (inner, is_boxed) = inner.strip_prefix('[').map_or((inner, false), |inner| (inner, true));
    let end = inner.find(|char: char| !char.is_alphanumeric()).unwrap_or(inner.len());
    let id = inner[..end].starts_with('T').then(|| TaskId::parse(&inner[..end])).flatten()?;
    let rest = if is_boxed { inner[end..].strip_prefix(']')? } else { &inner[end..] };
    let rest = rest.trim_start_matches(SEPARATORS);
    // Where the mark goes on behind the id, the labels are in bold too.
    let rest = if mark.is_empty() { rest } else { rest.strip_prefix(mark).unwrap_or(rest) };
    Some((id, rest.trim_start().trim_start_matches(SEPARATORS).trim_start()))
}

/// Reads the labels before a task's text; gives the text, with the labels that it does not know.
fn read_labels(rest: &str, task: &mut Task) -> String {
    let mut rest = rest;
    let mut kept = String::new();
    while let Some((label, after)) = label_of(rest) {
        match words_of(label) {
            Some(words) => {
                task.parallel |= words.contains(&Label::Parallel);
                task.stories.extend(words.iter().filter_map(|word| match word {
                    Label::Story(number) => Some(number),
                    Label::Parallel => None,
                }));
            }
            None => {
                kept.push_str(&rest[..rest.len() - after.len()]);
                kept.push(' ');
            }
        }
        rest = after.trim_start();
    }
    let text = rest.trim_start_matches(SEPARATORS).trim();
    // Half of a mark that went around the id as well.
    let is_half = text.matches("**").count() % 2 == 1;
    kept.push_str(&if is_half { text.replacen("**", "", 1) } else { text.to_owned() });
    kept.trim().to_owned()
}

/// The bracketed label at the beginning, and what stands behind it; a link is none.
fn label_of(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start_matches(MARKS);
    let mark = &text[..text.len() - inner.len()];
    let (label, after) = inner.strip_prefix('[')?.split_once(']')?;
    let after = after.strip_prefix(mark).unwrap_or(after);
    (!after.starts_with('(') && !label.contains('[')).then_some((label, after))
}

#[derive(PartialEq, Eq)]
enum Label {
    Parallel,
    Story(u32),
}

/// What a label says, such as `P` or `US1+US2`; none if it says anything else.
fn words_of(label: &str) -> Option<Vec<Label>> {
    let words = label.split(['+', ',', '/', '&', ' ']).filter(|word| !word.is_empty());
    let words: Option<Vec<Label>> = words
        .map(|word| match story_of(word) {
            Some(number) => Some(Label::Story(number)),
            None => word.eq_ignore_ascii_case("p").then_some(Label::Parallel),
        })
        .collect();
    words.filter(|words| !words.is_empty())
}

/// Reads `US1`.
fn story_of(word: &str) -> Option<u32> {
    let digits = word.get(..2).filter(|us| us.eq_ignore_ascii_case("us")).map(|_| &word[2..])?;
    number_of(digits.strip_prefix('-').unwrap_or(digits))
}

fn number_of(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Reads a heading as a phase: `Phase 3.1: Title`, `Fase 2 - Title`, or a title without a number.
fn phase_of(heading: Heading<'_>, line: usize) -> Option<Phase> {
    if heading.level == 1 && !starts_with_word(heading.title, "phase") {
        return None;
    }
    let title = heading.title.trim_matches(MARKS);
    let (number, rest) = match numbered(title) {
        // Deeper headings are the parts of a phase, unless they say that they are one.
        Some((word, number, rest)) if heading.level <= 2 || word.eq_ignore_ascii_case("phase") => {
            (Some(number.to_owned()), rest)
        }
        Some(_) | None => (None, title),
    };
    let title = rest.trim_start().trim_start_matches(SEPARATORS).trim().to_owned();
    Some(Phase { number, kind: kind_of(&title), title, line })
}

/// Takes a title such as `Phase 3.1: Setup` apart: the word, the number and the rest.
fn numbered(title: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = title.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    let end = rest.find(|char: char| !(char.is_ascii_digit() || char == '.')).unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    let is_one = number.starts_with(|char: char| char.is_ascii_digit());
    let rest = &rest[number.len()..];
    let is_whole = !rest.starts_with(char::is_alphanumeric);
    (is_one && is_whole && word.chars().all(char::is_alphabetic)).then_some((word, number, rest))
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn kind_of(title: &str) -> PhaseKind {
    let lower = title.to_lowercase();
    if lower.contains("convergence") {
        return PhaseKind::Convergence;
    }
    if let Some(number) = story_in(&lower) {
        return PhaseKind::Story { number, priority: priority_in(title) };
    }
    let kinds = [
        ("setup", PhaseKind::Setup),
        ("foundation", PhaseKind::Foundational),
        ("polish", PhaseKind::Polish),
        ("cross-cutting", PhaseKind::Polish),
    ];
    kinds.into_iter().find(|(word, _)| lower.contains(word)).map_or(PhaseKind::Other, |(_, kind)| kind)
}

/// The number in `user story 1` or `us1`.
pub(crate) fn story_in(lower: &str) -> Option<u32> {
    let words: Vec<&str> =
        lower.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let named = words.windows(2).find(|pair| pair[0] == "story").and_then(|pair| number_of(pair[1]));
    named.or_else(|| words.iter().find_map(|word| story_of(word)))
}

/// The `1` of a `P1`.
pub(crate) fn priority_in(title: &str) -> Option<u32> {
    let mut words = title.split(|char: char| !char.is_alphanumeric());
    words.find_map(|word| number_of(word.strip_prefix(['P', 'p'])?).filter(|number| *number > 0))
}

#[cfg(test)]
mod tests;
