//! What is wrong with what a step left on disk, and what it came to.

use std::collections::BTreeMap;
use std::path::Path;

use crate::checklist::{check_checklist, check_markers};
use crate::clarifications::n_clarifications;
use crate::gather::constitution;
use crate::lint::{
    Problem, check_constitution, check_plan, check_quickstart, check_research, check_spec, check_tasks,
    spec_counts,
};
use crate::prompt::ConstitutionState;
use crate::{Command, Feature, Pages, Project, REQUIREMENTS, SpeckitError, TaskList, checklists, docs};

/// What stood on disk before a step, as far as it is held against what stands there after it.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    constitution: Option<String>,
    checklists: BTreeMap<String, String>,
    n_done: usize,
    is_late: bool,
}

impl Baseline {
    /// Takes down what stands there now.
    pub fn take(project: &Project, feature: Option<&Feature>) -> Result<Self, SpeckitError> {
        let mut before = Self { constitution: Project::read(&project.constitution())?, ..Self::default() };
        if let Some(feature) = feature {
            before.checklists = texts(feature)?;
            before.n_done = feature.task_list()?.n_done();
        }
        Ok(before)
    }

    /// Marks it as taken when the step had begun: what the step wrote before is in it, and cannot be told from what was there.
    #[must_use]
    pub fn late(self) -> Self {
        Self { is_late: true, constitution: None, ..self }
    }

    /// Says how many ticks are gone since then, as they are when a task list was written anew; `None` where none is.
    pub fn ticks_gone(&self, feature: &Feature) -> Result<Option<String>, SpeckitError> {
        let n_gone = self.n_done.saturating_sub(feature.task_list()?.n_done());
        Ok((n_gone > 0).then(|| {
            let n_done = self.n_done;
            format!(
                "tasks.md: {n_gone} of {n_done} ticks of the earlier list are gone; tick again what is done"
            )
        }))
    }
}

fn texts(feature: &Feature) -> Result<BTreeMap<String, String>, SpeckitError> {
    let mut texts = BTreeMap::new();
    for list in checklists(feature)? {
        if let Some(text) = Project::read(&feature.checklists().join(&list.name))? {
            texts.insert(list.name, text);
        }
    }
    Ok(texts)
}

/// Says what is wrong with what a step wrote, in words that a model can act on.
pub fn check(
    project: &Project,
    feature: Option<&Feature>,
    (command, before): (Command, &Baseline),
    pages: &Pages<'_>,
) -> Result<Vec<String>, SpeckitError> {
    let mut problems = Problems::default();
    if command == Command::Constitution {
        let text = Project::read(&project.constitution())?.unwrap_or_default();
        problems.of("constitution.md", check_constitution(before.constitution.as_deref(), &text));
    }
    let Some(feature) = feature else { return Ok(problems.0) };
    match command {
        Command::Specify | Command::Clarify => {
            let template = pages("spec-template")?.text;
            problems.of("spec.md", check_spec(&read(&feature.spec())?, &template));
            check_requirements(feature, before, &mut problems)?;
        }
        Command::Plan => {
            let template = pages("plan-template")?.text;
            problems.of("plan.md", check_plan(&read(&feature.plan())?, &template));
            problems.of("research.md", check_research(Project::read(&feature.research())?.as_deref()));
            problems.of("quickstart.md", check_quickstart(Project::read(&feature.quickstart())?.as_deref()));
        }
        Command::Checklist => {
            let (after, template) = (texts(feature)?, pages("checklist-template")?.text);
            let changed = after.iter().filter(|(name, text)| before.checklists.get(*name) != Some(text));
            let mut n_changed = 0;
            for (name, text) in changed.filter(|(name, _)| *name != REQUIREMENTS) {
                n_changed += 1;
                problems.of(
                    name,
                    check_checklist(before.checklists.get(name).map(String::as_str), text, &template),
                );
            }
            let is_written = before.is_late && after.keys().any(|name| *name != REQUIREMENTS);
            if n_changed == 0 && !is_written {
                problems.0.push("no checklist was written; write one file in checklists/".to_owned());
            }
        }
        Command::Tasks => {
            let template = pages("tasks-template")?.text;
            let spec = read(&feature.spec())?;
            problems.of("tasks.md", check_tasks(&read(&feature.tasks())?, &spec, &template));
        }
        Command::Constitution
        | Command::Analyze
        | Command::Implement
        | Command::Converge
        | Command::TasksToIssues => {}
    }
    Ok(problems.0)
}

fn read(path: &Path) -> Result<String, SpeckitError> {
    Ok(Project::read(path)?.unwrap_or_default())
}

/// Nothing but ticks may change in the list that every spec has, once it is there.
fn check_requirements(
    feature: &Feature,
    before: &Baseline,
    problems: &mut Problems,
) -> Result<(), SpeckitError> {
    let Some(old) = before.checklists.get(REQUIREMENTS) else { return Ok(()) };
    let new = Project::read(&feature.checklists().join(REQUIREMENTS))?.unwrap_or_default();
    problems.of(REQUIREMENTS, check_markers(old, &new));
    Ok(())
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn of(&mut self, file: &str, found: Vec<Problem>) {
        self.0.extend(found.into_iter().map(|problem| format!("{file}: {problem}")));
    }
}

/// Says what a step came to, from what stands on disk: a line each.
pub fn came_to(
    project: &Project,
    feature: Option<&Feature>,
    (command, today): (Command, &str),
) -> Result<Vec<String>, SpeckitError> {
    let mut lines = Vec::new();
    if command == Command::Constitution {
        let text = Project::read(&project.constitution())?.unwrap_or_default();
        let version = text.lines().rev().find(|line| line.contains("**Version**"));
        lines.push(format!(
            "{}: {}",
            project.shown(&project.constitution()),
            version.unwrap_or("no version line")
        ));
    }
    let Some(feature) = feature else { return Ok(lines) };
    lines.push(format!("Feature: {}", project.shown(&feature.dir)));
    match command {
        Command::Specify | Command::Clarify => {
            let spec = Project::read(&feature.spec())?.unwrap_or_default();
            lines.push(format!("spec.md: {}", spec_counts(&spec)));
            if command == Command::Clarify {
                lines.push(format!("Answers written down today: {}", n_clarifications(&spec, today)));
            }
            lines.extend(lists(feature)?);
        }
        Command::Plan => {
            let docs = docs(feature);
            lines.push(format!(
                "plan.md, {}",
                if docs.is_empty() { "nothing beside it".to_owned() } else { docs.join(", ") }
            ));
        }
        Command::Checklist => lines.extend(lists(feature)?),
        Command::Tasks
        | Command::Implement
        | Command::Converge
        | Command::Analyze
        | Command::TasksToIssues => {
            lines.push(of_tasks(&feature.task_list()?));
        }
        Command::Constitution => {}
    }
    lines.extend(unfilled_constitution(project)?);
    Ok(lines)
}

/// Says that the constitution still has the placeholders of its template, where it has.
pub fn unfilled_constitution(project: &Project) -> Result<Option<String>, SpeckitError> {
    let is_unfilled = constitution(project)?.state == ConstitutionState::Unfilled;
    Ok(is_unfilled.then(|| {
        let path = project.shown(&project.constitution());
        format!("{path}: not filled in, so no principle was checked ({} does that)", Command::Constitution)
    }))
}

fn lists(feature: &Feature) -> Result<Vec<String>, SpeckitError> {
    let lists = checklists(feature)?.into_iter();
    Ok(lists
        .map(|list| format!("checklists/{}: {} of {} checked", list.name, list.checked, list.total))
        .collect())
}

fn of_tasks(list: &TaskList) -> String {
    let n_parallel = list.tasks.iter().filter(|task| task.parallel).count();
    let n_phases = list
        .phases
        .iter()
        .enumerate()
        .filter(|(at, _)| list.tasks.iter().any(|task| task.phase == Some(*at)));
    format!(
        "tasks.md: {} tasks in {} phases, {} done, {n_parallel} marked [P]",
        list.tasks.len(),
        n_phases.count(),
        list.n_done()
    )
}

#[cfg(test)]
mod tests;
