//! What has to be there before a step of the workflow, and the pages a step begins with. Facts from the disk only.

use std::fs;
use std::path::Path;

use crate::{
    Command, Feature, Page, Pages, Project, SpeckitError,
    scaffold::{Header, fill},
};

/// Something that a step needs, beside the folder of the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A plan that says something.
    Plan,
    /// A plan, even an empty one.
    PlanFile,
    /// A spec.
    Spec,
    /// A task list.
    Tasks,
}

/// Tells what a command needs, in the order in which it is looked for. `None` for those that need no feature.
pub fn needs_of(command: Command) -> Option<&'static [Need]> {
    match command {
        Command::Constitution | Command::Specify => None,
        Command::Clarify | Command::Plan => Some(&[Need::Spec]),
        Command::Checklist => Some(&[Need::Plan]),
        Command::Tasks => Some(&[Need::Plan, Need::Spec]),
        Command::Analyze | Command::Converge => Some(&[Need::Plan, Need::Spec, Need::Tasks]),
        Command::Implement | Command::TasksToIssues => Some(&[Need::Plan, Need::Tasks]),
    }
}

/// Checks that everything needed is there; the first that is not is the error.
pub fn check_needs(project: &Project, feature: &Feature, needs: &[Need]) -> Result<(), SpeckitError> {
    let shown = project.shown(&feature.dir);
    let unmet = |why: String, next| Err(SpeckitError::Unmet { why, next: Some(next) });
    if !feature.dir.is_dir() {
        return unmet(format!("the folder {shown} of the feature is not there"), Command::Specify);
    }
    feature.check_pages()?;
    for need in needs {
        let (path, next) = match need {
            Need::Plan | Need::PlanFile => (feature.plan(), Command::Plan),
            Need::Spec => (feature.spec(), Command::Specify),
            Need::Tasks => (feature.tasks(), Command::Tasks),
        };
        let shown = project.shown(&path);
        let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        match found {
            None => return unmet(format!("{shown} is not there"), next),
            Some(found) if *need == Need::Plan && found.len() == 0 => {
                return unmet(format!("{shown} is empty; fill it, or remove it"), next);
            }
            Some(_) => {}
        }
    }
    if needs.contains(&Need::Tasks) {
        feature.task_list()?;
    }
    Ok(())
}

/// Lists what was written beside spec and plan, in the order other programs list it.
pub fn docs(feature: &Feature) -> Vec<&'static str> {
    let has_contracts = feature.contracts().read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let docs = [
        ("research.md", feature.research().is_file()),
        ("data-model.md", feature.data_model().is_file()),
        ("contracts/", has_contracts),
        ("quickstart.md", feature.quickstart().is_file()),
    ];
    docs.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}

/// Begins the plan of a feature; says whether it is new. A plan that is there stays as it is.
pub fn setup_plan(
    project: &Project,
    feature: &Feature,
    now: &jiff::Zoned,
    pages: &Pages<'_>,
) -> Result<bool, SpeckitError> {
    if feature.page("plan.md")?.is_file() {
        return Ok(false);
    }
    let page = pages("plan-template")?;
    if page.text.is_empty() {
        let why = format!("the page template {} is empty; restore it, or remove it", page.name);
        return Err(SpeckitError::Invalid(why));
    }
    make_dir(project, &feature.dir)?;
    let date = now.date().to_string();
    let header = Header { name: &feature.name, date: &date, description: "" };
    Project::write_new(&feature.plan(), &fill(&page.text, header))
}

/// Checks what a task list needs and finds the page it begins as.
pub fn setup_tasks(project: &Project, feature: &Feature, pages: &Pages<'_>) -> Result<Page, SpeckitError> {
    check_needs(project, feature, &[Need::PlanFile, Need::Spec])?;
    pages("tasks-template")
}

/// Makes a feature's folder when it is missing, in the project only: a folder elsewhere is there, or was never meant.
fn make_dir(project: &Project, dir: &Path) -> Result<(), SpeckitError> {
    match dir.is_dir() {
        true => Ok(()),
        false => project.make_folder(dir).map(drop),
    }
}
