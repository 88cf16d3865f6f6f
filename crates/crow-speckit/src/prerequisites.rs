//! The prerequisites of a workflow step, and the pages that a step starts with. Reads files only.

use std::fs;
use std::path::Path;

use crate::{
    Feature, PageLoader, PageTemplate, SpeckitError, SpeckitProject, WorkflowCommand,
    scaffold::{PageHeader, fill_header},
};

/// A prerequisite of a step, besides the feature's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeaturePrerequisite {
    /// A plan that is not empty.
    Plan,
    /// A plan, which may be empty.
    PlanFile,
    /// A spec.
    Spec,
    /// A task list.
    Tasks,
}

/// Checks all prerequisites; the first missing one is the error.
pub fn check_feature_prerequisites(
    project: &SpeckitProject,
    feature: &Feature,
    prerequisites: &[FeaturePrerequisite],
) -> Result<(), SpeckitError> {
    let display_path = project.display_path(&feature.dir);
    let missing =
        |reason: String, command| Err(SpeckitError::MissingPrerequisite { reason, command: Some(command) });
    if !feature.dir.is_dir() {
        return missing(
            format!("the feature's directory {display_path} does not exist"),
            WorkflowCommand::Specify,
        );
    }
    feature.check_pages()?;
    for prerequisite in prerequisites {
        let (path, command) = match prerequisite {
            FeaturePrerequisite::Plan | FeaturePrerequisite::PlanFile => {
                (feature.plan_path(), WorkflowCommand::Plan)
            }
            FeaturePrerequisite::Spec => (feature.spec_path(), WorkflowCommand::Specify),
            FeaturePrerequisite::Tasks => (feature.tasks_path(), WorkflowCommand::Tasks),
        };
        let display_path = project.display_path(&path);
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        match metadata {
            None => return missing(format!("{display_path} does not exist"), command),
            Some(metadata) if *prerequisite == FeaturePrerequisite::Plan && metadata.len() == 0 => {
                return missing(format!("{display_path} is empty; fill it, or remove it"), command);
            }
            Some(_) => {}
        }
    }
    if prerequisites.contains(&FeaturePrerequisite::Tasks) {
        feature.read_task_list()?;
    }
    Ok(())
}

/// Lists the documents next to spec and plan, in the order of other programs.
pub fn list_docs(feature: &Feature) -> Vec<&'static str> {
    let has_contracts = feature.contracts_dir().read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let docs = [
        ("research.md", feature.research_path().is_file()),
        ("data-model.md", feature.data_model_path().is_file()),
        ("contracts/", has_contracts),
        ("quickstart.md", feature.quickstart_path().is_file()),
    ];
    docs.into_iter().filter_map(|(name, exists)| exists.then_some(name)).collect()
}

/// Creates the plan of a feature; returns whether it is new. An existing plan is not changed.
pub fn setup_plan(
    project: &SpeckitProject,
    feature: &Feature,
    now: &jiff::Zoned,
    pages: &PageLoader<'_>,
) -> Result<bool, SpeckitError> {
    if feature.page_path("plan.md")?.is_file() {
        return Ok(false);
    }
    let template = pages("plan-template")?;
    if template.text.is_empty() {
        let reason = format!("the page template {} is empty; restore it, or remove it", template.name);
        return Err(SpeckitError::Invalid(reason));
    }
    create_dir(project, &feature.dir)?;
    let date = now.date().to_string();
    let header = PageHeader { name: &feature.name, date: &date, description: "" };
    SpeckitProject::write_new_file(&feature.plan_path(), &fill_header(&template.text, header))
}

/// Checks the prerequisites of a task list and returns its template.
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

/// Creates a feature's directory if it is missing, but only inside the project.
fn create_dir(project: &SpeckitProject, dir: &Path) -> Result<(), SpeckitError> {
    match dir.is_dir() {
        true => Ok(()),
        false => project.create_dir(dir).map(drop),
    }
}
