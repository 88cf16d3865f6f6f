//! Parts of the checks and summaries of steps: the files of a step, its baseline, the list of problems.

use std::collections::BTreeMap;
use std::path::Path;

use crate::checklist::check_box_changes;
use crate::fact_gathering::constitution_facts;
use crate::lint::{LintProblem, check_spec};
use crate::prompt::ConstitutionState;
use crate::{
    Feature, PageLoader, REQUIREMENTS, SpeckitError, SpeckitProject, WorkflowCommand, checklist_facts,
};

/// The files that a step worked on.
#[derive(Clone, Copy)]
pub struct StepFiles<'a> {
    /// The project.
    pub project: &'a SpeckitProject,
    /// The feature of the step.
    pub feature: Option<&'a Feature>,
    /// The state before the step.
    pub baseline: &'a StepBaseline,
    /// The page templates.
    pub pages: &'a PageLoader<'a>,
}

/// The state of the files before a step, for comparison with the state after it.
#[derive(Debug, Clone, Default)]
pub struct StepBaseline {
    pub(crate) constitution: Option<String>,
    pub(crate) checklists: BTreeMap<String, String>,
    n_done: usize,
    pub(crate) is_late: bool,
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

pub(crate) fn read_checklists(feature: &Feature) -> Result<BTreeMap<String, String>, SpeckitError> {
    let mut texts = BTreeMap::new();
    for list in checklist_facts(feature)? {
        if let Some(text) = SpeckitProject::read_file(&feature.checklists_dir().join(&list.name))? {
            texts.insert(list.name, text);
        }
    }
    Ok(texts)
}

pub(crate) fn read_or_empty(path: &Path) -> Result<String, SpeckitError> {
    Ok(SpeckitProject::read_file(path)?.unwrap_or_default())
}

/// Finds problems in the spec and its requirements checklist.
pub(crate) fn check_spec_page(files: &StepFiles<'_>, problems: &mut ProblemList) -> Result<(), SpeckitError> {
    let Some(feature) = files.feature else { return Ok(()) };
    let template = (files.pages)("spec-template")?.text;
    problems.add_problems("spec.md", check_spec(&read_or_empty(&feature.spec_path())?, &template));
    check_requirements(feature, files.baseline, problems)
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

/// The problems of a step, each with its file.
#[derive(Debug, Default)]
pub struct ProblemList(Vec<String>);

impl ProblemList {
    pub(crate) fn add_problems(&mut self, file: &str, problems: Vec<LintProblem>) {
        self.0.extend(problems.into_iter().map(|problem| format!("{file}: {problem}")));
    }

    pub(crate) fn add_line(&mut self, line: String) {
        self.0.push(line);
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.0
    }
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

pub(crate) fn checklist_lines(feature: &Feature) -> Result<Vec<String>, SpeckitError> {
    let lists = checklist_facts(feature)?.into_iter();
    Ok(lists
        .map(|list| format!("checklists/{}: {} of {} checked", list.name, list.checked, list.total))
        .collect())
}

/// Summarizes the task list.
pub(crate) fn summarize_tasks(files: &StepFiles<'_>, _today: &str) -> Result<Vec<String>, SpeckitError> {
    let Some(feature) = files.feature else { return Ok(Vec::new()) };
    let list = feature.read_task_list()?;
    let n_parallel = list.tasks.iter().filter(|task| task.parallel).count();
    let phases_with_tasks = list
        .phases
        .iter()
        .enumerate()
        .filter(|(phase_index, _)| list.tasks.iter().any(|task| task.phase == Some(*phase_index)));
    Ok(vec![format!(
        "tasks.md: {} in {}, {} done, {n_parallel} marked [P]",
        count_things(list.tasks.len(), "task"),
        count_things(phases_with_tasks.count(), "phase"),
        list.done_count()
    )])
}

fn count_things(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

#[cfg(test)]
mod tests;
