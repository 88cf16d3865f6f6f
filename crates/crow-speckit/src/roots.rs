//! Where features live: `specs/` as other programs make it, or `.specify/specs/` with a link of that name. Decides where a
//! new one goes; both places are read whatever is decided.

use std::path::{Path, PathBuf};

use crate::{SpeckitError, SpeckitProject, number, pointer::read_pointer, project::follow_links};

/// Where other programs keep features.
const OUTER: &str = "specs";
/// Where Crow keeps them in a project of its own.
const INNER: &str = ".specify/specs";

/// Where new features go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SpecsRoot {
    /// Where the others are; in a project without any, `.specify/specs`.
    #[default]
    Auto,
    /// `specs`, `.specify/specs`, or another folder, from the project's root.
    At(PathBuf),
}

impl SpecsRoot {
    /// Reads the setting: `auto`, or a folder.
    pub fn parse(setting: &str) -> Result<Self, SpeckitError> {
        match setting.trim_end_matches('/') {
            "" => {
                Err(SpeckitError::Invalid(format!("{setting:?} is no folder for specs; use auto or specs")))
            }
            "auto" => Ok(Self::Auto),
            folder => Ok(Self::At(PathBuf::from(folder))),
        }
    }
}

/// Whether a link named `specs` leads other programs to `.specify/specs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpecsLink {
    /// When nothing of that name is there.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Decides where a new feature goes, spelled without links.
pub fn resolve_specs_root(project: &SpeckitProject, setting: &SpecsRoot) -> Result<PathBuf, SpeckitError> {
    let chosen = match setting {
        SpecsRoot::At(folder) => project.resolve_path(folder),
        SpecsRoot::Auto => project.resolve_path(detect_specs_root(project)?),
    };
    let Some(real) = follow_links(&chosen).filter(|_| project.contains_path(&chosen)) else {
        return Err(SpeckitError::broken(
            &chosen,
            "a link in it leads out of the project; put a folder in its place, or set speckit.specs_root",
        ));
    };
    let is_spelled_anew =
        follow_links(project.root()).and_then(|root| Some(real.strip_prefix(root).ok()?.to_owned()));
    Ok(is_spelled_anew.map_or(chosen, |inside| project.resolve_path(inside)))
}

/// Every place with features: ours, the common one, and another that is set.
pub(crate) fn all_specs_roots(project: &SpeckitProject, setting: &SpecsRoot) -> Vec<PathBuf> {
    let mut roots = vec![project.resolve_path(INNER), project.resolve_path(OUTER)];
    match setting {
        SpecsRoot::Auto => {}
        SpecsRoot::At(folder) => roots.push(project.resolve_path(folder)),
    }
    let mut seen = Vec::new();
    roots.retain(|root| {
        let real = follow_links(root);
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    roots
}

fn detect_specs_root(project: &SpeckitProject) -> Result<&'static str, SpeckitError> {
    // A broken pointer says nothing of where the others are.
    let pointed = read_pointer(project).ok().flatten();
    if let Some(parent) = pointed.as_deref().and_then(Path::parent) {
        for root in [OUTER, INNER] {
            if parent == project.resolve_path(root) {
                return Ok(root);
            }
        }
    }
    for root in [OUTER, INNER] {
        let names = number::list_folder_names(&[project.resolve_path(root)])?;
        if names.iter().any(|name| number::parse_folder_prefix(name).is_some()) {
            return Ok(root);
        }
    }
    // The mark of a project that another program began.
    let is_theirs = project.specify_path("init-options.json").exists();
    Ok(if is_theirs { OUTER } else { INNER })
}

/// Makes the link `specs` for programs that look there only; gives what the person should know when it cannot be.
pub(crate) fn link_specs(project: &SpeckitProject, root: &Path, setting: SpecsLink) -> Option<String> {
    let outer = project.resolve_path(OUTER);
    if root != project.resolve_path(INNER) || follow_links(&outer).as_deref() == Some(root) {
        return None;
    }
    let blind =
        "programs that look only into specs/ do not see the features in .specify/specs/ and count from 001";
    if outer.symlink_metadata().is_ok() {
        return Some(format!("something else is named specs: {blind}"));
    }
    match setting {
        SpecsLink::Off => None,
        SpecsLink::Auto => create_symlink(Path::new(INNER), &outer)
            .err()
            .map(|error| format!("no link specs ({error}): {blind}")),
    }
}

#[cfg(unix)]
fn create_symlink(to: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn create_symlink(_to: &Path, _link: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
