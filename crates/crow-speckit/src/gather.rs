//! What a prompt may speak of, read from the disk.

use std::path::Path;

use crate::{
    ChecklistFacts, ConstitutionFacts, ConstitutionState, Feature, FeatureFacts, LimitFacts, PageLoader,
    PathFacts, PhaseFacts, PromptFacts, SpeckitError, SpeckitProject, TaskList, TaskPhase, TasksFacts,
    WorkflowCommand, checklist, lint, list_docs, plain::is_safe_to_display,
};

/// Checklists that are read; a feature has a handful.
const CHECKLISTS_MAX: usize = 100;

/// Entries of their folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Bytes of all checklists of a feature; each that is known has fewer than 20 KB.
const CHECKLIST_BYTES_MAX: usize = 1024 * 1024;

/// How paths are spelled so that a model's tools find them.
pub type PathFormatter<'a> = dyn Fn(&Path) -> String + 'a;

/// What the limits of a step are.
#[derive(Debug, Clone, Copy)]
pub struct StepLimits {
    /// Questions to the person.
    pub questions: usize,
    /// Rounds of repair.
    pub repairs: usize,
}

/// Gathers the facts for a step.
pub fn gather_facts(
    project: &SpeckitProject,
    feature: Option<&Feature>,
    (command, args, limits): (WorkflowCommand, &str, StepLimits),
    (spelled, pages): (&PathFormatter<'_>, &PageLoader<'_>),
    today: &str,
) -> Result<PromptFacts, SpeckitError> {
    let mut facts = PromptFacts {
        command: command.to_string(),
        args: args.to_owned(),
        project_root: project.root().display().to_string(),
        constitution: constitution_facts(project)?,
        today: today.to_owned(),
        limits: LimitFacts {
            markers: lint::MARKERS_MAX,
            questions: limits.questions,
            repairs: limits.repairs,
        },
        paths: PathFacts { constitution: spelled(&project.constitution_path()), ..PathFacts::default() },
        ..PromptFacts::default()
    };
    facts.template = match command {
        WorkflowCommand::Checklist => pages("checklist-template")?.text,
        WorkflowCommand::Tasks => pages("tasks-template")?.text,
        WorkflowCommand::Constitution => pages("constitution-template")?.text,
        WorkflowCommand::Specify
        | WorkflowCommand::Clarify
        | WorkflowCommand::Plan
        | WorkflowCommand::Analyze
        | WorkflowCommand::Implement
        | WorkflowCommand::Converge
        | WorkflowCommand::TasksToIssues => String::new(),
    };
    let Some(feature) = feature else { return Ok(facts) };
    facts.feature = FeatureFacts {
        dir: spelled(&feature.dir),
        name: feature.name.clone(),
        number: crate::number::parse_folder_prefix(&feature.name).unwrap_or_default().to_owned(),
    };
    facts.paths = PathFacts {
        spec: spelled(&feature.spec_path()),
        plan: spelled(&feature.plan_path()),
        tasks: spelled(&feature.tasks_path()),
        research: spelled(&feature.research_path()),
        data_model: spelled(&feature.data_model_path()),
        quickstart: spelled(&feature.quickstart_path()),
        contracts: spelled(&feature.contracts_dir()),
        checklists: spelled(&feature.checklists_dir()),
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

/// Counts the review lists of a feature, by name.
pub fn checklist_facts(feature: &Feature) -> Result<Vec<ChecklistFacts>, SpeckitError> {
    let mut found = Vec::new();
    let Ok(entries) = feature.checklists_dir().read_dir() else { return Ok(found) };
    let entries = entries.take(ENTRIES_MAX).filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).take(CHECKLISTS_MAX).collect();
    names.sort();
    let mut n_bytes = 0;
    for name in names {
        // Left out, its boxes would count as done.
        if !is_safe_to_display(&name) {
            let why = "its name has characters that nobody can see; rename it";
            return Err(SpeckitError::broken(&feature.checklists_dir().join(&name), why));
        }
        let Some(text) = feature.read_page(&format!("checklists/{name}"))? else { continue };
        n_bytes += text.len();
        if n_bytes > CHECKLIST_BYTES_MAX {
            let why = format!("it has more than {CHECKLIST_BYTES_MAX} bytes of checklists; remove some");
            return Err(SpeckitError::broken(&feature.checklists_dir(), why));
        }
        let counts = checklist::count_items(&text);
        found.push(ChecklistFacts { name, total: counts.n_total, checked: counts.n_checked });
    }
    Ok(found)
}

fn task_list_facts(list: &TaskList) -> TasksFacts {
    let empty = |phase: &TaskPhase| PhaseFacts { title: phase.to_string(), total: 0, done: 0 };
    let mut phases: Vec<PhaseFacts> = list.phases.iter().map(empty).collect();
    for task in &list.tasks {
        if let Some(phase) = task.phase.and_then(|at| phases.get_mut(at)) {
            phase.total += 1;
            phase.done += usize::from(task.done);
        }
    }
    phases.retain(|phase| phase.total > 0);
    TasksFacts { total: list.tasks.len(), done: list.done_count(), phases, ..TasksFacts::default() }
}
