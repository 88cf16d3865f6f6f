//! The files that a step creates before the model is called.

use std::path::PathBuf;

use crate::{CommandInvocation, Feature, PageLoader, SpeckitError, SpeckitProject, SpecsLink, SpecsRoot};

/// The input of a layout.
#[derive(Clone, Copy)]
pub struct LayoutRequest<'a> {
    /// The project.
    pub project: &'a SpeckitProject,
    /// The command with its arguments.
    pub invocation: &'a CommandInvocation,
    /// The feature of the step, if it needs one.
    pub feature: Option<&'a Feature>,
    /// The feature that the same command began before.
    pub begun_feature: Option<&'a Feature>,
    /// The short name of a new feature.
    pub short_name: Option<&'a str>,
    /// The directory of new features.
    pub specs_root: &'a SpecsRoot,
    /// Whether to create a link to that directory for other programs.
    pub specs_link: SpecsLink,
    /// Whether a new feature becomes that of the project.
    pub writes_pointer: bool,
    /// The time.
    pub now: &'a jiff::Zoned,
    /// The page templates.
    pub pages: &'a PageLoader<'a>,
}

/// The result of a layout.
#[derive(Debug, Default)]
pub struct StepLayout {
    /// The feature of the step.
    pub feature: Option<Feature>,
    /// The created files and directories.
    pub created: Vec<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A file that Crow wrote, with its content before and after.
#[derive(Debug)]
pub struct LayoutFile {
    /// The path.
    pub path: PathBuf,
    /// The content before.
    pub before: Option<String>,
    /// The content now.
    pub new_text: String,
}

/// Creates the files of a step; returns what was created, and the text files among it.
pub fn lay_out_step(
    lay_out: fn(&LayoutRequest<'_>) -> Result<StepLayout, SpeckitError>,
    request: &LayoutRequest<'_>,
) -> Result<(StepLayout, Vec<LayoutFile>), SpeckitError> {
    let pointer = request.project.specify_path("feature.json");
    let old_pointer = SpeckitProject::read_file(&pointer)?;
    let layout = lay_out(request)?;
    let mut files = Vec::new();
    for path in &layout.created {
        // Directories among them cannot be read.
        if let Ok(Some(new_text)) = SpeckitProject::read_file(path) {
            files.push(LayoutFile { path: path.clone(), before: None, new_text });
        }
    }
    let new_pointer = SpeckitProject::read_file(&pointer)?;
    if let Some(new_text) = new_pointer.filter(|now| old_pointer.as_ref() != Some(now)) {
        files.push(LayoutFile { path: pointer, before: old_pointer, new_text });
    }
    Ok((layout, files))
}
