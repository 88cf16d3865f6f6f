//! Features, which are directories with a spec, a plan and tasks, and the selection of the current one. Writes nothing.

mod dir_check;

use std::path::{Component, Path, PathBuf};

use crate::{
    SpeckitError, SpeckitProject, SpeckitVariables, SpecsRoot, WorkflowCommand,
    feature_pointer::read_pointer, git, numbering, project::follow_links, sanitize_text, specs_root,
};

pub(crate) use dir_check::{FeatureDirSource, check_feature_dir};

/// The number of names in an error message; `/speckit status` lists all of them.
const NAMES_LISTED_MAX: usize = 12;

/// The contents of a feature's directory.
const PAGES: [&str; 8] = [
    "spec.md",
    "plan.md",
    "tasks.md",
    "research.md",
    "data-model.md",
    "quickstart.md",
    "contracts",
    "checklists",
];

/// A feature has a few checklists.
const CHECKLISTS_CHECKED_MAX: usize = 1_000;

/// A feature, identified by its directory, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Its directory.
    pub dir: PathBuf,
    /// The name of the directory.
    pub name: String,
    /// The number in the name.
    pub number: Option<u64>,
}

impl Feature {
    /// Returns the feature of this directory.
    pub fn from_dir(dir: PathBuf) -> Self {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { number: numbering::parse_dir_number(&name), dir, name: sanitize_text(&name) }
    }

    /// The specification: requirements and their reasons.
    pub fn spec_path(&self) -> PathBuf {
        self.dir.join("spec.md")
    }

    /// The technical plan.
    pub fn plan_path(&self) -> PathBuf {
        self.dir.join("plan.md")
    }

    /// The task list.
    pub fn tasks_path(&self) -> PathBuf {
        self.dir.join("tasks.md")
    }

    /// The research for the plan.
    pub fn research_path(&self) -> PathBuf {
        self.dir.join("research.md")
    }

    /// The data model.
    pub fn data_model_path(&self) -> PathBuf {
        self.dir.join("data-model.md")
    }

    /// The instructions to try the feature.
    pub fn quickstart_path(&self) -> PathBuf {
        self.dir.join("quickstart.md")
    }

    /// The interfaces of the feature.
    pub fn contracts_dir(&self) -> PathBuf {
        self.dir.join("contracts")
    }

    /// The review checklists.
    pub fn checklists_dir(&self) -> PathBuf {
        self.dir.join("checklists")
    }

    /// Returns the path of a page, such as `checklists/ux.md`, unless a link leads out of the feature's directory. Call
    /// this right before each read or write, because a link may have been created in between.
    pub fn page_path(&self, name: &str) -> Result<PathBuf, SpeckitError> {
        let path = self.dir.join(name);
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(SpeckitError::invalid_file(&path, "it is not a page of the feature"));
        }
        match (follow_links(&path), follow_links(&self.dir)) {
            (Some(canonical), Some(dir)) if canonical.starts_with(&dir) && canonical != dir => Ok(path),
            (_, _) => Err(SpeckitError::invalid_file(
                &path,
                "a link in it leads out of the feature's directory; replace it with a file",
            )),
        }
    }

    /// Reads a whole page; `None` if it does not exist.
    pub fn read_page(&self, name: &str) -> Result<Option<String>, SpeckitError> {
        SpeckitProject::read_file(&self.page_path(name)?)
    }

    /// Checks every page that a step may read or write, as [`Feature::page_path`] does.
    pub(crate) fn check_pages(&self) -> Result<(), SpeckitError> {
        for name in PAGES {
            self.page_path(name)?;
        }
        let Ok(entries) = self.checklists_dir().read_dir() else { return Ok(()) };
        for entry in entries.filter_map(Result::ok).take(CHECKLISTS_CHECKED_MAX) {
            self.page_path(&format!("checklists/{}", entry.file_name().to_string_lossy()))?;
        }
        Ok(())
    }
}

/// Lists the features of the project by number, each once, even if several links lead to it.
pub fn list_features(project: &SpeckitProject, specs_root: &SpecsRoot) -> Result<Vec<Feature>, SpeckitError> {
    let mut features: Vec<Feature> = Vec::new();
    for root in specs_root::all_specs_roots(project, specs_root) {
        for name in numbering::list_dir_names(&[&root])? {
            let unresolved = root.join(name);
            let Some(dir) = follow_links(&unresolved) else { continue };
            if check_feature_dir(project, &unresolved, FeatureDirSource::Project, specs_root).is_err() {
                continue;
            }
            let relative =
                follow_links(project.root()).and_then(|root| Some(dir.strip_prefix(root).ok()?.to_owned()));
            let feature =
                Feature::from_dir(relative.map_or(unresolved, |relative| project.resolve_path(relative)));
            let is_feature =
                numbering::parse_dir_prefix(&feature.name).is_some() || feature.spec_path().is_file();
            if is_feature && !features.iter().any(|other| other.dir == feature.dir) {
                features.push(feature);
            }
        }
    }
    features.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    Ok(features)
}

/// The sources that select a feature, highest precedence first.
#[derive(Debug, Clone, Copy)]
pub struct FeatureSelector<'a> {
    /// The user's input: a number, a name, or a directory relative to the root.
    pub typed: Option<&'a str>,
    /// The feature of the session.
    pub session_dir: Option<&'a Path>,
    /// The environment variables.
    pub variables: &'a SpeckitVariables,
    /// The directory for features, in addition to the default ones.
    pub specs_root: &'a SpecsRoot,
}

/// The source that selected the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureOrigin {
    /// By the user's input.
    Typed,
    /// By the session.
    Session,
    /// By the environment.
    Variable,
    /// By the project's pointer.
    Pointer,
    /// By the current branch.
    Branch,
    /// There is only one feature.
    Only,
}

/// Returns the selected feature and how it was selected.
pub fn resolve_feature(
    project: &SpeckitProject,
    selector: FeatureSelector<'_>,
) -> Result<(Feature, FeatureOrigin), SpeckitError> {
    if let Some(typed) = selector.typed {
        return Ok((find_named_feature(project, typed, selector.specs_root)?, FeatureOrigin::Typed));
    }
    if let Some(dir) =
        selector.session_dir.map(|dir| project.resolve_path(dir)).filter(|dir| dir.symlink_metadata().is_ok())
    {
        check_feature_dir(
            project,
            &dir,
            FeatureDirSource::for_session_dir(project, &dir),
            selector.specs_root,
        )
        .map_err(|reason| {
            SpeckitError::invalid_file(&dir, reason.to_message("select another with /speckit use"))
        })?;
        return Ok((Feature::from_dir(dir), FeatureOrigin::Session));
    }
    if let Some(path_text) = &selector.variables.feature_directory {
        let dir = project.resolve_path(path_text);
        check_feature_dir(project, &dir, FeatureDirSource::Person, selector.specs_root).map_err(
            |reason| {
                SpeckitError::invalid_file(
                    &dir,
                    reason.to_message("set SPECIFY_FEATURE_DIRECTORY to another directory"),
                )
            },
        )?;
        return Ok((Feature::from_dir(dir), FeatureOrigin::Variable));
    }
    if let Some(dir) = read_pointer(project)? {
        check_feature_dir(project, &dir, FeatureDirSource::Project, selector.specs_root).map_err(
            |reason| {
                SpeckitError::invalid_file(
                    &project.specify_path("feature.json"),
                    reason.to_pointer_message(&dir),
                )
            },
        )?;
        return Ok((Feature::from_dir(dir), FeatureOrigin::Pointer));
    }
    infer_feature(project, selector.specs_root)
}

/// Infers the feature of a project without a pointer, such as a fresh clone.
fn infer_feature(
    project: &SpeckitProject,
    specs_root: &SpecsRoot,
) -> Result<(Feature, FeatureOrigin), SpeckitError> {
    let mut features = list_features(project, specs_root)?;
    let branch = git::current_branch(project.root());
    let prefix = branch.as_deref().and_then(|branch| numbering::parse_dir_prefix(branch.rsplit('/').next()?));
    if let Some(prefix) = prefix {
        let name_prefix = format!("{prefix}-");
        let matching: Vec<&Feature> =
            features.iter().filter(|feature| feature.name.starts_with(&name_prefix)).collect();
        match matching.as_slice() {
            [] => {}
            [feature] => return Ok(((*feature).clone(), FeatureOrigin::Branch)),
            several => {
                return Err(ambiguous_feature_error(
                    "several features match the branch",
                    several.iter().copied(),
                ));
            }
        }
    }
    match features.len() {
        0 => Err(SpeckitError::MissingPrerequisite {
            reason: "the project has no feature yet".to_owned(),
            command: Some(WorkflowCommand::Specify),
        }),
        1 => Ok((features.remove(0), FeatureOrigin::Only)),
        _ => Err(ambiguous_feature_error("no feature is selected", features.iter())),
    }
}

/// Finds the feature that the user typed: a directory relative to the root, a name, or a number.
fn find_named_feature(
    project: &SpeckitProject,
    typed: &str,
    specs_root: &SpecsRoot,
) -> Result<Feature, SpeckitError> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Err(SpeckitError::Invalid(
            "no feature was given; use its number, name or directory".to_owned(),
        ));
    }
    let features = list_features(project, specs_root)?;
    if let Some(feature) = features.iter().find(|feature| feature.name == typed) {
        return Ok(feature.clone());
    }
    if let Ok(number) = numbering::parse_number(typed) {
        let matching: Vec<&Feature> =
            features.iter().filter(|feature| feature.number == Some(number)).collect();
        match matching.as_slice() {
            [] => {}
            [feature] => return Ok((*feature).clone()),
            several => {
                return Err(ambiguous_feature_error(
                    "several features have this number",
                    several.iter().copied(),
                ));
            }
        }
    }
    let dir = project.resolve_path(typed);
    if dir.is_dir() {
        check_feature_dir(project, &dir, FeatureDirSource::Person, specs_root)
            .map_err(|reason| SpeckitError::invalid_file(&dir, reason.to_message("choose another")))?;
        return Ok(Feature::from_dir(dir));
    }
    Err(ambiguous_feature_error(&format!("there is no feature {typed:?}"), features.iter()))
}

fn ambiguous_feature_error<'a>(reason: &str, features: impl Iterator<Item = &'a Feature>) -> SpeckitError {
    let names: Vec<&str> = features.map(|feature| feature.name.as_str()).collect();
    let n_more = names.len().saturating_sub(NAMES_LISTED_MAX);
    let listed = names.iter().take(NAMES_LISTED_MAX).copied().collect::<Vec<_>>().join(", ");
    let suffix = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    let advice = match names.as_slice() {
        [] => "create one with /speckit.specify".to_owned(),
        _ => format!("select one with /speckit use or --feature: {listed}{suffix}"),
    };
    SpeckitError::Invalid(format!("{reason}; {advice}"))
}

#[cfg(test)]
mod tests;
