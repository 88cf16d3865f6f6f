//! What a prompt may speak of, read from the disk.

use std::path::Path;

use crate::{
    ChecklistFacts, Command, ConstitutionFacts, ConstitutionState, Facts, Feature, FeatureFacts, LimitFacts,
    Pages, PathFacts, PhaseFacts, Project, SpeckitError, TaskList, TasksFacts, checklist, docs, lint,
};

/// Checklists that are read; a feature has a handful.
const CHECKLISTS_MAX: usize = 100;

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
        | Command::Converge => String::new(),
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

fn constitution(project: &Project) -> Result<ConstitutionFacts, SpeckitError> {
    let Some(text) = Project::read(&project.constitution())? else { return Ok(ConstitutionFacts::default()) };
    let record = Project::read(&project.specify("memory/.constitution-template.json"))?;
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
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).take(CHECKLISTS_MAX).collect();
    names.sort();
    for name in names {
        let Some(text) = Project::read(&feature.checklists().join(&name))? else { continue };
        let counts = checklist::counts(&text);
        found.push(ChecklistFacts { name, total: counts.n_total, checked: counts.n_checked });
    }
    Ok(found)
}

fn tasks(list: &TaskList) -> TasksFacts {
    let phases = list.phases.iter().enumerate().map(|(at, phase)| {
        let in_it = || list.tasks.iter().filter(move |task| task.phase == Some(at));
        PhaseFacts {
            title: phase.to_string(),
            total: in_it().count(),
            done: in_it().filter(|task| task.done).count(),
        }
    });
    TasksFacts {
        total: list.tasks.len(),
        done: list.n_done(),
        phases: phases.filter(|phase| phase.total > 0).collect(),
        ..TasksFacts::default()
    }
}
