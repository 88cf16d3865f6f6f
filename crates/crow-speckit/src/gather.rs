//! What a prompt may speak of, read from the disk.

use std::path::Path;

use crate::{
    ChecklistFacts, Command, ConstitutionFacts, ConstitutionState, Facts, Feature, FeatureFacts, LimitFacts,
    Pages, PathFacts, Phase, PhaseFacts, Project, SpeckitError, TaskList, TasksFacts, checklist, docs, lint,
    plain::is_plain,
};

/// Checklists that are read; a feature has a handful.
const CHECKLISTS_MAX: usize = 100;

/// Entries of their folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Bytes of all checklists of a feature; each that is known has fewer than 20 KB.
const CHECKLIST_BYTES_MAX: usize = 1024 * 1024;

/// How paths are spelled so that a model's tools find them.
pub type Spelled<'a> = dyn Fn(&Path) -> String + 'a;

/// What the limits of a step are.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Questions to the person.
    pub questions: usize,
    /// Rounds of repair.
    pub repairs: usize,
}

/// Gathers the facts for a step.
pub fn gather(
    project: &Project,
    feature: Option<&Feature>,
    (command, args, limits): (Command, &str, Limits),
    (spelled, pages): (&Spelled<'_>, &Pages<'_>),
    today: &str,
) -> Result<Facts, SpeckitError> {
    let mut facts = Facts {
        command: command.to_string(),
        args: args.to_owned(),
        project_root: project.root().display().to_string(),
        constitution: constitution(project)?,
        today: today.to_owned(),
        limits: LimitFacts {
            markers: lint::MARKERS_MAX,
            questions: limits.questions,
            repairs: limits.repairs,
        },
        paths: PathFacts { constitution: spelled(&project.constitution()), ..PathFacts::default() },
        ..Facts::default()
    };
    facts.template = match command {
        Command::Checklist => pages("checklist-template")?.text,
        Command::Tasks => pages("tasks-template")?.text,
        Command::Constitution => pages("constitution-template")?.text,
        Command::Specify
        | Command::Clarify
        | Command::Plan
        | Command::Analyze
        | Command::Implement
        | Command::Converge
        | Command::TasksToIssues => String::new(),
    };
    let Some(feature) = feature else { return Ok(facts) };
    facts.feature = FeatureFacts {
        dir: spelled(&feature.dir),
        name: feature.name.clone(),
        number: crate::number::prefix_of(&feature.name).unwrap_or_default().to_owned(),
    };
    facts.paths = PathFacts {
        spec: spelled(&feature.spec()),
        plan: spelled(&feature.plan()),
        tasks: spelled(&feature.tasks()),
        research: spelled(&feature.research()),
        data_model: spelled(&feature.data_model()),
        quickstart: spelled(&feature.quickstart()),
        contracts: spelled(&feature.contracts()),
        checklists: spelled(&feature.checklists()),
        constitution: facts.paths.constitution,
    };
    facts.docs = docs(feature).into_iter().map(str::to_owned).collect();
    facts.checklists = checklists(feature)?;
    facts.tasks = tasks(&feature.task_list()?);
    Ok(facts)
}

pub(crate) fn constitution(project: &Project) -> Result<ConstitutionFacts, SpeckitError> {
    let Some(text) = project.read_own(&project.constitution())? else {
        return Ok(ConstitutionFacts::default());
    };
    let record = project.read_own(&project.specify("memory/.constitution-template.json"))?;
    let state = match lint::is_unfilled(&text, record.as_deref()) {
        true => ConstitutionState::Unfilled,
        false => ConstitutionState::Filled,
    };
    Ok(ConstitutionFacts { state, text })
}

/// Counts the review lists of a feature, by name.
pub fn checklists(feature: &Feature) -> Result<Vec<ChecklistFacts>, SpeckitError> {
    let mut found = Vec::new();
    let Ok(entries) = feature.checklists().read_dir() else { return Ok(found) };
    let entries = entries.take(ENTRIES_MAX).filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).take(CHECKLISTS_MAX).collect();
    names.sort();
    let mut n_bytes = 0;
    for name in names {
        // Left out, its boxes would count as done.
        if !is_plain(&name) {
            let why = "its name has characters that nobody can see; rename it";
            return Err(SpeckitError::broken(&feature.checklists().join(&name), why));
        }
        let Some(text) = feature.read(&format!("checklists/{name}"))? else { continue };
        n_bytes += text.len();
        if n_bytes > CHECKLIST_BYTES_MAX {
            let why = format!("it has more than {CHECKLIST_BYTES_MAX} bytes of checklists; remove some");
            return Err(SpeckitError::broken(&feature.checklists(), why));
        }
        let counts = checklist::counts(&text);
        found.push(ChecklistFacts { name, total: counts.n_total, checked: counts.n_checked });
    }
    Ok(found)
}

fn tasks(list: &TaskList) -> TasksFacts {
    let empty = |phase: &Phase| PhaseFacts { title: phase.to_string(), total: 0, done: 0 };
    let mut phases: Vec<PhaseFacts> = list.phases.iter().map(empty).collect();
    for task in &list.tasks {
        if let Some(phase) = task.phase.and_then(|at| phases.get_mut(at)) {
            phase.total += 1;
            phase.done += usize::from(task.done);
        }
    }
    phases.retain(|phase| phase.total > 0);
    TasksFacts { total: list.tasks.len(), done: list.n_done(), phases, ..TasksFacts::default() }
}
