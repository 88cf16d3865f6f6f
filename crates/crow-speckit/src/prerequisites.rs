//! What has to be there before a step of the workflow, and the pages a step begins with. Facts from the disk only.

use std::fs;
use std::path::Path;

use crate::{
    Feature, PageLoader, PageTemplate, SpeckitError, SpeckitProject, WorkflowCommand,
    scaffold::{PageHeader, fill_header},
};

/// Something that a step needs, beside the folder of the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeaturePrerequisite {
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
pub fn prerequisites_for(command: WorkflowCommand) -> Option<&'static [FeaturePrerequisite]> {
    match command {
        WorkflowCommand::Constitution | WorkflowCommand::Specify => None,
        WorkflowCommand::Clarify | WorkflowCommand::Plan => Some(&[FeaturePrerequisite::Spec]),
        WorkflowCommand::Checklist => Some(&[FeaturePrerequisite::Plan]),
        WorkflowCommand::Tasks => Some(&[FeaturePrerequisite::Plan, FeaturePrerequisite::Spec]),
        WorkflowCommand::Analyze | WorkflowCommand::Converge => {
            Some(&[FeaturePrerequisite::Plan, FeaturePrerequisite::Spec, FeaturePrerequisite::Tasks])
        }
        WorkflowCommand::Implement | WorkflowCommand::TasksToIssues => {
            Some(&[FeaturePrerequisite::Plan, FeaturePrerequisite::Tasks])
        }
    }
}

/// Checks that everything needed is there; the first that is not is the error.
pub fn check_feature_prerequisites(
    project: &SpeckitProject,
    feature: &Feature,
    needs: &[FeaturePrerequisite],
) -> Result<(), SpeckitError> {
    let shown = project.display_path(&feature.dir);
    let unmet = |why: String, next| Err(SpeckitError::Unmet { why, next: Some(next) });
    if !feature.dir.is_dir() {
        return unmet(format!("the folder {shown} of the feature is not there"), WorkflowCommand::Specify);
    }
    feature.check_pages()?;
    for need in needs {
        let (path, next) = match need {
            FeaturePrerequisite::Plan | FeaturePrerequisite::PlanFile => {
                (feature.plan_path(), WorkflowCommand::Plan)
            }
            FeaturePrerequisite::Spec => (feature.spec_path(), WorkflowCommand::Specify),
            FeaturePrerequisite::Tasks => (feature.tasks_path(), WorkflowCommand::Tasks),
        };
        let shown = project.display_path(&path);
        let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        match found {
            None => return unmet(format!("{shown} is not there"), next),
            Some(found) if *need == FeaturePrerequisite::Plan && found.len() == 0 => {
                return unmet(format!("{shown} is empty; fill it, or remove it"), next);
            }
            Some(_) => {}
        }
    }
    if needs.contains(&FeaturePrerequisite::Tasks) {
        feature.read_task_list()?;
    }
    Ok(())
}

/// Lists what was written beside spec and plan, in the order other programs list it.
pub fn list_docs(feature: &Feature) -> Vec<&'static str> {
    let has_contracts = feature.contracts_dir().read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let docs = [
        ("research.md", feature.research_path().is_file()),
        ("data-model.md", feature.data_model_path().is_file()),
        ("contracts/", has_contracts),
        ("quickstart.md", feature.quickstart_path().is_file()),
    ];
    docs.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}

/// Begins the plan of a feature; says whether it is new. A plan that is there stays as it is.
pub fn setup_plan(
    project: &SpeckitProject,
    feature: &Feature,
    now: &jiff::Zoned,
    pages: &PageLoader<'_>,
) -> Result<bool, SpeckitError> {
    if feature.page_path("plan.md")?.is_file() {
        return Ok(false);
    }
    let page = pages("plan-template")?;
    if page.text.is_empty() {
        let why = format!("the page template {} is empty; restore it, or remove it", page.name);
        return Err(SpeckitError::Invalid(why));
    }
    create_dir(project, &feature.dir)?;
    let date = now.date().to_string();
    let header = PageHeader { name: &feature.name, date: &date, description: "" };
    SpeckitProject::write_new_file(&feature.plan_path(), &fill_header(&page.text, header))
}

/// Checks what a task list needs and finds the page it begins as.
pub fn setup_tasks(
    project: &SpeckitProject,
    feature: &Feature,
    pages: &PageLoader<'_>,
) -> Result<PageTemplate, SpeckitError> {
    check_feature_prerequisites(
        project,
        feature,
        &[FeaturePrerequisite::PlanFile, FeaturePrerequisite::Spec],
    )?;
    pages("tasks-template")
}

/// Makes a feature's folder when it is missing, in the project only: a folder elsewhere is there, or was never meant.
fn create_dir(project: &SpeckitProject, dir: &Path) -> Result<(), SpeckitError> {
    match dir.is_dir() {
        true => Ok(()),
        false => project.create_folder(dir).map(drop),
    }
}
