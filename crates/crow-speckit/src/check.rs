//! Checks the files that a step wrote, and summarizes them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::checklist::{check_box_changes, check_checklist};
use crate::clarifications::count_clarifications;
use crate::fact_gathering::constitution_facts;
use crate::lint::{
    LintProblem, check_constitution, check_plan, check_quickstart, check_research, check_spec, check_tasks,
    summarize_spec,
};
use crate::prompt::ConstitutionState;
use crate::{
    Feature, PageLoader, REQUIREMENTS, SpeckitError, SpeckitProject, TaskList, WorkflowCommand,
    checklist_facts, list_docs,
};

/// The state of the files before a step, for comparison with the state after it.
#[derive(Debug, Clone, Default)]
pub struct StepBaseline {
    constitution: Option<String>,
    checklists: BTreeMap<String, String>,
    n_done: usize,
    is_late: bool,
}

impl StepBaseline {
    /// Records the current state.
    pub fn capture(project: &SpeckitProject, feature: Option<&Feature>) -> Result<Self, SpeckitError> {
        let mut baseline = Self {
            constitution: SpeckitProject::read_file(&project.constitution_path())?,
            ..Self::default()
        };
        if let Some(feature) = feature {
            baseline.checklists = read_checklists(feature)?;
            baseline.n_done = feature.read_task_list()?.done_count();
        }
        Ok(baseline)
    }

    /// Marks the state as recorded after the step began: what the step wrote before that cannot be told from what was
    /// there.
    #[must_use]
    pub fn mark_late(self) -> Self {
        Self { is_late: true, constitution: None, ..self }
    }

    /// Describes how many ticks were lost since then, as happens when a task list is rewritten; `None` if none were.
    pub fn describe_lost_ticks(&self, feature: &Feature) -> Result<Option<String>, SpeckitError> {
        let n_lost = self.n_done.saturating_sub(feature.read_task_list()?.done_count());
        Ok((n_lost > 0).then(|| {
            let n_done = self.n_done;
            format!(
                "tasks.md: {n_lost} of {n_done} ticks of the previous list were lost; tick completed tasks again"
            )
        }))
    }
}

fn read_checklists(feature: &Feature) -> Result<BTreeMap<String, String>, SpeckitError> {
    let mut texts = BTreeMap::new();
    for list in checklist_facts(feature)? {
        if let Some(text) = SpeckitProject::read_file(&feature.checklists_dir().join(&list.name))? {
            texts.insert(list.name, text);
        }
    }
    Ok(texts)
}

/// Lists the problems in what a step wrote, phrased so that a model can act on them.
pub fn check_step(
    project: &SpeckitProject,
    feature: Option<&Feature>,
    command: WorkflowCommand,
    baseline: &StepBaseline,
    pages: &PageLoader<'_>,
) -> Result<Vec<String>, SpeckitError> {
    let mut problems = ProblemList::default();
    if command == WorkflowCommand::Constitution {
        let text = SpeckitProject::read_file(&project.constitution_path())?.unwrap_or_default();
        problems.add_problems("constitution.md", check_constitution(baseline.constitution.as_deref(), &text));
    }
    let Some(feature) = feature else { return Ok(problems.0) };
    match command {
        WorkflowCommand::Specify | WorkflowCommand::Clarify => {
            let template = pages("spec-template")?.text;
            problems.add_problems("spec.md", check_spec(&read_or_empty(&feature.spec_path())?, &template));
            check_requirements(feature, baseline, &mut problems)?;
        }
        WorkflowCommand::Plan => {
            let template = pages("plan-template")?.text;
            problems.add_problems("plan.md", check_plan(&read_or_empty(&feature.plan_path())?, &template));
            problems.add_problems(
                "research.md",
                check_research(SpeckitProject::read_file(&feature.research_path())?.as_deref()),
            );
            problems.add_problems(
                "quickstart.md",
                check_quickstart(SpeckitProject::read_file(&feature.quickstart_path())?.as_deref()),
            );
        }
        WorkflowCommand::Checklist => {
            let (after, template) = (read_checklists(feature)?, pages("checklist-template")?.text);
            let changed = after.iter().filter(|(name, text)| baseline.checklists.get(*name) != Some(text));
            let mut n_changed = 0;
            for (name, text) in changed.filter(|(name, _)| *name != REQUIREMENTS) {
                n_changed += 1;
                problems.add_problems(
                    name,
                    check_checklist(baseline.checklists.get(name).map(String::as_str), text, &template),
                );
            }
            let is_written = baseline.is_late && after.keys().any(|name| *name != REQUIREMENTS);
            if n_changed == 0 && !is_written {
                problems.0.push("no checklist was written; write one file in checklists/".to_owned());
            }
        }
        WorkflowCommand::Tasks => {
            let template = pages("tasks-template")?.text;
            let spec = read_or_empty(&feature.spec_path())?;
            problems.add_problems(
                "tasks.md",
                check_tasks(&read_or_empty(&feature.tasks_path())?, &spec, &template),
            );
        }
        WorkflowCommand::Constitution
        | WorkflowCommand::Analyze
        | WorkflowCommand::Implement
        | WorkflowCommand::Converge
        | WorkflowCommand::TasksToIssues => {}
    }
    Ok(problems.0)
}

fn read_or_empty(path: &Path) -> Result<String, SpeckitError> {
    Ok(SpeckitProject::read_file(path)?.unwrap_or_default())
}

/// Only checkboxes may change in the requirements checklist once it exists.
fn check_requirements(
    feature: &Feature,
    baseline: &StepBaseline,
    problems: &mut ProblemList,
) -> Result<(), SpeckitError> {
    let Some(old) = baseline.checklists.get(REQUIREMENTS) else { return Ok(()) };
    let new = SpeckitProject::read_file(&feature.checklists_dir().join(REQUIREMENTS))?.unwrap_or_default();
    problems.add_problems(REQUIREMENTS, check_box_changes(old, &new));
    Ok(())
}

#[derive(Default)]
struct ProblemList(Vec<String>);

impl ProblemList {
    fn add_problems(&mut self, file: &str, problems: Vec<LintProblem>) {
        self.0.extend(problems.into_iter().map(|problem| format!("{file}: {problem}")));
    }
}

/// Summarizes the result of a step from the files, one line each.
pub fn summarize_step(
    project: &SpeckitProject,
    feature: Option<&Feature>,
    command: WorkflowCommand,
    today: &str,
) -> Result<Vec<String>, SpeckitError> {
    let mut lines = Vec::new();
    if command == WorkflowCommand::Constitution {
        let text = SpeckitProject::read_file(&project.constitution_path())?.unwrap_or_default();
        let version = text.lines().rev().find(|line| line.contains("**Version**"));
        lines.push(format!(
            "{}: {}",
            project.display_path(&project.constitution_path()),
            version.unwrap_or("no version line")
        ));
    }
    let Some(feature) = feature else { return Ok(lines) };
    lines.push(format!("Feature: {}", project.display_path(&feature.dir)));
    match command {
        WorkflowCommand::Specify | WorkflowCommand::Clarify => {
            let spec = SpeckitProject::read_file(&feature.spec_path())?.unwrap_or_default();
            lines.push(format!("spec.md: {}", summarize_spec(&spec)));
            if command == WorkflowCommand::Clarify {
                lines.push(format!("Answers recorded today: {}", count_clarifications(&spec, today)));
            }
            lines.extend(checklist_lines(feature)?);
        }
        WorkflowCommand::Plan => {
            let docs = list_docs(feature);
            lines.push(format!(
                "plan.md, {}",
                if docs.is_empty() { "no other documents".to_owned() } else { docs.join(", ") }
            ));
        }
        WorkflowCommand::Checklist => lines.extend(checklist_lines(feature)?),
        WorkflowCommand::Tasks
        | WorkflowCommand::Implement
        | WorkflowCommand::Converge
        | WorkflowCommand::Analyze
        | WorkflowCommand::TasksToIssues => {
            lines.push(tasks_line(&feature.read_task_list()?));
        }
        WorkflowCommand::Constitution => {}
    }
    lines.extend(unfilled_constitution_note(project)?);
    Ok(lines)
}

/// Returns a note if the constitution still has the placeholders of its template.
pub fn unfilled_constitution_note(project: &SpeckitProject) -> Result<Option<String>, SpeckitError> {
    let is_unfilled = constitution_facts(project)?.state == ConstitutionState::Unfilled;
    Ok(is_unfilled.then(|| {
        let path = project.display_path(&project.constitution_path());
        format!(
            "{path}: not filled in, so no principle was checked ({} fills it in)",
            WorkflowCommand::Constitution
        )
    }))
}

fn checklist_lines(feature: &Feature) -> Result<Vec<String>, SpeckitError> {
    let lists = checklist_facts(feature)?.into_iter();
    Ok(lists
        .map(|list| format!("checklists/{}: {} of {} checked", list.name, list.checked, list.total))
        .collect())
}

fn tasks_line(list: &TaskList) -> String {
    let n_parallel = list.tasks.iter().filter(|task| task.parallel).count();
    let phases_with_tasks = list
        .phases
        .iter()
        .enumerate()
        .filter(|(phase_index, _)| list.tasks.iter().any(|task| task.phase == Some(*phase_index)));
    format!(
        "tasks.md: {} tasks in {} phases, {} done, {n_parallel} marked [P]",
        list.tasks.len(),
        phases_with_tasks.count(),
        list.done_count()
    )
}

#[cfg(test)]
mod tests;
