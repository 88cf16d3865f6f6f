//! The prerequisites of a workflow step. Reads files only; knows no step.

use std::fs;

use crate::{Feature, SpeckitError, SpeckitProject, WorkflowCommand};

/// A document that a step needs; the step that creates it defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeaturePrerequisite {
    /// The file, relative to the feature's directory.
    pub(crate) page: &'static str,
    /// The step that creates it.
    pub(crate) creator: WorkflowCommand,
    /// Whether the file may be empty.
    pub(crate) may_be_empty: bool,
}

/// Checks all prerequisites; the first missing one is the error.
pub fn check_feature_prerequisites(
    project: &SpeckitProject,
    feature: &Feature,
    prerequisites: &[FeaturePrerequisite],
) -> Result<(), SpeckitError> {
    let missing =
        |reason: String, command| Err(SpeckitError::MissingPrerequisite { reason, command: Some(command) });
    if !feature.dir.is_dir() {
        let display_path = project.display_path(&feature.dir);
        return missing(
            format!("the feature's directory {display_path} does not exist"),
            WorkflowCommand::Specify,
        );
    }
    feature.check_pages()?;
    for FeaturePrerequisite { page, creator, may_be_empty } in prerequisites {
        let path = feature.dir.join(page);
        let display_path = project.display_path(&path);
        match fs::metadata(&path).ok().filter(fs::Metadata::is_file) {
            None => return missing(format!("{display_path} does not exist"), *creator),
            Some(metadata) if !may_be_empty && metadata.len() == 0 => {
                return missing(format!("{display_path} is empty; fill it, or remove it"), *creator);
            }
            Some(_) => {}
        }
    }
    if prerequisites.iter().any(|prerequisite| feature.dir.join(prerequisite.page) == feature.tasks_path()) {
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
