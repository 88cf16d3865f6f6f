//! What Crow says of a step when it is over: facts from the disk, what is still wrong, what usually comes next.

use crow_core::{Handoff, TurnEnd};
use crow_speckit::{Command, Feature, Origin, SpeckitError, Task, TaskList, checklists};

use crate::speckit::ground::Ground;
use crate::speckit::implement::Progress;

/// Problems that are shown; the model was told of all.
const PROBLEMS_SHOWN: usize = 10;

/// Open tasks that a model is reminded of; it can read the list.
const TASKS_REMINDED: usize = 10;

/// Says what a step came to.
pub(super) fn summed_up(command: Command, came_to: &[String], problems: &[String]) -> String {
    let mut text = format!("\n**{command}**\n");
    for line in came_to {
        text.push_str(&format!("- {line}\n"));
    }
    if !problems.is_empty() {
        text.push_str("\nStill to be put right:\n");
        for problem in problems.iter().take(PROBLEMS_SHOWN) {
            text.push_str(&format!("- {problem}\n"));
        }
        let n_more = problems.len().saturating_sub(PROBLEMS_SHOWN);
        if n_more > 0 {
            text.push_str(&format!("- and {n_more} more\n"));
        }
    }
    text
}

/// Says what a run of tasks came to.
pub(super) fn implemented(
    progress: &Progress,
    list: &TaskList,
    (end, note): (&TurnEnd, Option<&str>),
) -> String {
    let (n_done, n_all) = (list.n_done(), list.tasks.len());
    let mut text = format!("\n**{}**\n- Done in this run: {}\n", Command::Implement, progress.done.len());
    text.push_str(&format!("- tasks.md: {n_done} of {n_all} done\n"));
    for (id, why) in &progress.failed {
        text.push_str(&format!("- {id} failed: {why}\n"));
    }
    if let Some(note) = note {
        text.push_str(&format!("- {note}\n"));
    }
    if n_done < n_all {
        let why = match end {
            _ if !progress.failed.is_empty() => "Mend that or the task list; the run",
            TurnEnd::Done => "The run",
            TurnEnd::Cancelled => "Stopped; the run",
            TurnEnd::OutputLimit => "The model's answer became too long; the run",
            TurnEnd::RequestLimit => "As many requests as one turn may have were made; the run",
            TurnEnd::Repeating => "The model made the same call over and over; the run",
            TurnEnd::Refused => "The model refused; the run",
            TurnEnd::Failed(_) => "The model could not be asked; the run",
        };
        text.push_str(&format!("\n{why} goes on with {} at the first open task.\n", Command::Implement));
    }
    text
}

/// The steps that come next, as a client offers them.
pub(super) fn handoffs(steps: &[Command]) -> Vec<Handoff> {
    let handoff = |step: &Command| Handoff {
        label: step.description().to_owned(),
        command: format!("speckit.{}", step.as_str()),
    };
    steps.iter().map(handoff).collect()
}

/// Spells them for a person.
pub(super) fn next_line(next: &[Handoff]) -> String {
    let names: Vec<String> = next.iter().map(|step| format!("`/{}`", step.command)).collect();
    if names.is_empty() { String::new() } else { format!("\nNext: {}\n", names.join(", ")) }
}

/// Says which feature a step is for, where that is not what everybody would think.
pub(super) fn on_origin(ground: &Ground, feature: &Feature, origin: Origin) -> Vec<String> {
    let shown = ground.project.shown(&feature.dir);
    match origin {
        Origin::Bound => {
            let pointer = crow_speckit::read_pointer(&ground.project).ok().flatten();
            let elsewhere =
                pointer.filter(|pointer| crow_tools::resolve(pointer) != crow_tools::resolve(&feature.dir));
            elsewhere.map_or_else(Vec::new, |pointer| {
                let pointer = ground.project.shown(&pointer);
                vec![format!("This session works on {shown}; the project points at {pointer} (`/speckit use` changes both).")]
            })
        }
        Origin::Branch => {
            vec![format!("Nothing says which feature is meant, so it is that of the branch: {shown}.")]
        }
        Origin::Only => vec![format!("Nothing says which feature is meant, so it is the only one: {shown}.")],
        Origin::Named | Origin::Variable | Origin::Pointer => Vec::new(),
    }
}

/// Says how far a feature is.
pub(super) fn stands(feature: &Feature) -> Result<String, SpeckitError> {
    let list = feature.task_list()?;
    let mut has: Vec<String> = Vec::new();
    has.extend(feature.spec().is_file().then(|| "spec".to_owned()));
    has.extend(feature.plan().is_file().then(|| "plan".to_owned()));
    if !list.tasks.is_empty() {
        has.push(format!("{} of {} tasks done", list.n_done(), list.tasks.len()));
    }
    let lists = checklists(feature)?;
    let n_open: usize = lists.iter().map(|list| list.total - list.checked).sum();
    if n_open > 0 {
        has.push(format!("{n_open} open checklist items"));
    }
    Ok(if has.is_empty() { "empty".to_owned() } else { has.join(", ") })
}

/// The step that a feature waits for.
pub(super) fn next_of(feature: &Feature) -> Option<Command> {
    if !feature.spec().is_file() {
        return Some(Command::Specify);
    }
    if !feature.plan().is_file() {
        return Some(Command::Plan);
    }
    let list = feature.task_list().ok()?;
    Some(match list.n_done() {
        _ if list.tasks.is_empty() => Command::Tasks,
        n_done if n_done < list.tasks.len() => Command::Implement,
        _ => Command::Converge,
    })
}

/// What the model is told of a feature that it no longer remembers.
pub(super) fn reminder(feature: &Feature, last: Option<Command>) -> Result<String, SpeckitError> {
    let list = feature.task_list()?;
    let last = last.map(|last| format!(" The last step was {last}.")).unwrap_or_default();
    let mut text = format!(
        "This session works on the feature in {}: {}.{last}\n",
        feature.dir.display(),
        stands(feature)?
    );
    let open: Vec<&Task> = list.tasks.iter().filter(|task| !task.done).collect();
    for task in open.iter().take(TASKS_REMINDED) {
        text.push_str(&format!("- open: {} {}\n", task.id, task.text));
    }
    let n_more = open.len().saturating_sub(TASKS_REMINDED);
    if n_more > 0 {
        text.push_str(&format!("- and {n_more} more open tasks\n"));
    }
    Ok(text)
}
