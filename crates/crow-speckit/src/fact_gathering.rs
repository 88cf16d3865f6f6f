//! Collects the facts for a prompt from the files.

use std::path::Path;

use crate::{
    ChecklistFacts, ConstitutionFacts, ConstitutionState, Feature, FeatureFacts, LimitFacts, PageLoader,
    PathFacts, PhaseFacts, PromptFacts, SpeckitError, SpeckitProject, TaskFacts, TaskItem, TaskList,
    TaskPhase, TasksFacts, WorkflowCommand, checklist, lint, list_docs, safe_text::is_safe_to_display,
};

/// The number of checklists that are read; a feature has a few.
const CHECKLISTS_MAX: usize = 100;

/// The number of directory entries that are read.
const ENTRIES_MAX: usize = 10_000;

/// The total size of a feature's checklists; known ones have less than 20 KB each.
const CHECKLIST_BYTES_MAX: usize = 1024 * 1024;

/// Formats paths so that a model's tools can find them.
pub type PathFormatter<'a> = dyn Fn(&Path) -> String + 'a;

/// The limits of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepLimits {
    /// The number of questions to the user.
    pub questions: usize,
    /// The number of repair rounds.
    pub repairs: usize,
}

/// The input of a step.
#[derive(Debug, Clone, Copy)]
pub struct FactsInput<'a> {
    /// The command of the step.
    pub command: WorkflowCommand,
    /// The command's arguments, byte for byte.
    pub args: &'a str,
    /// The page template in the prompt.
    pub template: Option<&'static str>,
    /// The date, as `2026-11-22`.
    pub today: &'a str,
    /// The limits of the step.
    pub limits: StepLimits,
}

/// Collects the facts for a step.
pub fn gather_facts(
    project: &SpeckitProject,
    feature: Option<&Feature>,
    step: &FactsInput<'_>,
    format_path: &PathFormatter<'_>,
    pages: &PageLoader<'_>,
) -> Result<PromptFacts, SpeckitError> {
    let mut facts = PromptFacts {
        command: step.command.to_string(),
        args: step.args.to_owned(),
        project_root: project.root().display().to_string(),
        constitution: constitution_facts(project)?,
        today: step.today.to_owned(),
        limits: LimitFacts {
            markers: lint::MARKERS_MAX,
            questions: step.limits.questions,
            repairs: step.limits.repairs,
        },
        paths: PathFacts { constitution: format_path(&project.constitution_path()), ..PathFacts::default() },
        ..PromptFacts::default()
    };
    if let Some(template) = step.template {
        facts.template = pages(template)?.text;
    }
    let Some(feature) = feature else { return Ok(facts) };
    facts.feature = FeatureFacts {
        dir: format_path(&feature.dir),
        name: feature.name.clone(),
        number: crate::numbering::parse_dir_prefix(&feature.name).unwrap_or_default().to_owned(),
    };
    facts.paths = PathFacts {
        spec: format_path(&feature.spec_path()),
        plan: format_path(&feature.plan_path()),
        tasks: format_path(&feature.tasks_path()),
        research: format_path(&feature.research_path()),
        data_model: format_path(&feature.data_model_path()),
        quickstart: format_path(&feature.quickstart_path()),
        contracts: format_path(&feature.contracts_dir()),
        checklists: format_path(&feature.checklists_dir()),
        constitution: facts.paths.constitution,
    };
    facts.docs = list_docs(feature).into_iter().map(str::to_owned).collect();
    facts.checklists = checklist_facts(feature)?;
    facts.tasks = task_list_facts(&feature.read_task_list()?);
    Ok(facts)
}

pub(crate) fn constitution_facts(project: &SpeckitProject) -> Result<ConstitutionFacts, SpeckitError> {
    let Some(text) = project.read_project_file(&project.constitution_path())? else {
        return Ok(ConstitutionFacts::default());
    };
    let record = project.read_project_file(&project.specify_path("memory/.constitution-template.json"))?;
    let state = match lint::is_unfilled(&text, record.as_deref()) {
        true => ConstitutionState::Unfilled,
        false => ConstitutionState::Filled,
    };
    Ok(ConstitutionFacts { state, text })
}

/// Counts the items of a feature's checklists, sorted by name.
pub fn checklist_facts(feature: &Feature) -> Result<Vec<ChecklistFacts>, SpeckitError> {
    let mut checklists = Vec::new();
    let Ok(entries) = feature.checklists_dir().read_dir() else { return Ok(checklists) };
    let entries = entries.take(ENTRIES_MAX).filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).take(CHECKLISTS_MAX).collect();
    names.sort();
    let mut n_bytes = 0;
    for name in names {
        // Skipping it would make its items count as done.
        if !is_safe_to_display(&name) {
            let reason = "its name has invisible characters; rename it";
            return Err(SpeckitError::invalid_file(&feature.checklists_dir().join(&name), reason));
        }
        let Some(text) = feature.read_page(&format!("checklists/{name}"))? else { continue };
        n_bytes += text.len();
        if n_bytes > CHECKLIST_BYTES_MAX {
            let reason = format!("it has more than {CHECKLIST_BYTES_MAX} bytes of checklists; remove some");
            return Err(SpeckitError::invalid_file(&feature.checklists_dir(), reason));
        }
        let counts = checklist::count_items(&text);
        checklists.push(ChecklistFacts { name, total: counts.n_total, checked: counts.n_checked });
    }
    Ok(checklists)
}

fn task_list_facts(list: &TaskList) -> TasksFacts {
    let empty_phase = |phase: &TaskPhase| PhaseFacts { title: phase.to_string(), total: 0, done: 0 };
    let mut phases: Vec<PhaseFacts> = list.phases.iter().map(empty_phase).collect();
    for task in &list.tasks {
        if let Some(phase) = task.phase.and_then(|index| phases.get_mut(index)) {
            phase.total += 1;
            phase.done += usize::from(task.done);
        }
    }
    phases.retain(|phase| phase.total > 0);
    TasksFacts { total: list.tasks.len(), done: list.done_count(), phases, ..TasksFacts::default() }
}

/// Returns the facts about one task.
pub fn task_facts(list: &TaskList, task: &TaskItem) -> TaskFacts {
    TaskFacts {
        id: task.id.to_string(),
        text: task.text.clone(),
        phase: list.phase_for(task).map(ToString::to_string).unwrap_or_default(),
        stories: task.stories.iter().map(|story| format!("US{story}")).collect(),
    }
}
