//! The directories of features: `specs/` like other programs, or `.specify/specs/` with a link named `specs`. Decides
//! where a new feature goes; both are always read.

use std::path::{Path, PathBuf};

use crate::{SpeckitError, SpeckitProject, feature_pointer::read_pointer, numbering, project::follow_links};

/// The directory that other programs use.
const PUBLIC_ROOT: &str = "specs";
/// The directory that Crow uses in new projects.
const CROW_ROOT: &str = ".specify/specs";

/// The directory for new features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SpecsRoot {
    /// Next to existing features; in a project without any, `.specify/specs`.
    #[default]
    Auto,
    /// `specs`, `.specify/specs`, or another directory, relative to the project's root.
    Path(PathBuf),
}

impl SpecsRoot {
    /// Parses the setting: `auto` or a directory.
    pub fn parse(setting: &str) -> Result<Self, SpeckitError> {
        match setting.trim_end_matches('/') {
            "" => Err(SpeckitError::Invalid(format!(
                "{setting:?} is not a directory for specs; use auto or specs"
            ))),
            "auto" => Ok(Self::Auto),
            directory => Ok(Self::Path(PathBuf::from(directory))),
        }
    }
}

/// Whether to create a link named `specs` to `.specify/specs` for other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpecsLink {
    /// If the name is free.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Returns the directory for new features, with links resolved.
pub fn resolve_specs_root(project: &SpeckitProject, setting: &SpecsRoot) -> Result<PathBuf, SpeckitError> {
    let configured = match setting {
        SpecsRoot::Path(directory) => project.resolve_path(directory),
        SpecsRoot::Auto => project.resolve_path(detect_specs_root(project)?),
    };
    let Some(canonical) = follow_links(&configured).filter(|_| project.contains_path(&configured)) else {
        return Err(SpeckitError::invalid_file(
            &configured,
            "a link in it leads out of the project; replace it with a directory, or set speckit.specs_root",
        ));
    };
    let canonical_relative =
        follow_links(project.root()).and_then(|root| Some(canonical.strip_prefix(root).ok()?.to_owned()));
    Ok(canonical_relative.map_or(configured, |relative| project.resolve_path(relative)))
}

/// Lists every directory with features: the two default ones and the configured one.
pub(crate) fn all_specs_roots(project: &SpeckitProject, setting: &SpecsRoot) -> Vec<PathBuf> {
    let mut roots = vec![project.resolve_path(CROW_ROOT), project.resolve_path(PUBLIC_ROOT)];
    match setting {
        SpecsRoot::Auto => {}
        SpecsRoot::Path(directory) => roots.push(project.resolve_path(directory)),
    }
    let mut seen = Vec::new();
    roots.retain(|root| {
        let canonical = follow_links(root);
        let is_new = !seen.contains(&canonical);
        seen.push(canonical);
        is_new
    });
    roots
}

fn detect_specs_root(project: &SpeckitProject) -> Result<&'static str, SpeckitError> {
    // A broken pointer says nothing about other features.
    let pointed_dir = read_pointer(project).ok().flatten();
    if let Some(parent) = pointed_dir.as_deref().and_then(Path::parent) {
        for root in [PUBLIC_ROOT, CROW_ROOT] {
            if parent == project.resolve_path(root) {
                return Ok(root);
            }
        }
    }
    for root in [PUBLIC_ROOT, CROW_ROOT] {
        let names = numbering::list_dir_names(&[project.resolve_path(root)])?;
        if names.iter().any(|name| numbering::parse_dir_prefix(name).is_some()) {
            return Ok(root);
        }
    }
    // Written when another program initializes a project.
    let is_spec_kit_project = project.specify_path("init-options.json").exists();
    Ok(if is_spec_kit_project { PUBLIC_ROOT } else { CROW_ROOT })
}

/// Creates the link `specs` for programs that look only there; returns a note for the user if that is not possible.
pub(crate) fn link_specs(project: &SpeckitProject, root: &Path, setting: SpecsLink) -> Option<String> {
    let public_root = project.resolve_path(PUBLIC_ROOT);
    if root != project.resolve_path(CROW_ROOT) || follow_links(&public_root).as_deref() == Some(root) {
        return None;
    }
    let consequence =
        "programs that look only into specs/ do not see the features in .specify/specs/ and count from 001";
    if public_root.symlink_metadata().is_ok() {
        return Some(format!("another file is named specs: {consequence}"));
    }
    match setting {
        SpecsLink::Off => None,
        SpecsLink::Auto => crow_files::create_link(Path::new(CROW_ROOT), &public_root)
            .err()
            .map(|error| format!("the link specs could not be created ({error}): {consequence}")),
    }
}
