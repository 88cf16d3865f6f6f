//! Which files a command may write, and restoring files that a shell changed anyway. Knows no tools and no sessions.

mod change_watch;
mod reviewed_checklists;
mod set_aside;
mod snapshot;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::project::SPECIFY_DIR;
use crate::steps::step_definition;
use crate::write_rules::{GuardedPath, ProtectedPath, WriteRules};
use crate::{WorkflowCommand, numbering};

pub use change_watch::{BackgroundWork, ChangeWatch};
pub use snapshot::{GuardSnapshot, ProtectedChange, ProtectedChangeKind, SET_ASIDE_DIR};

/// The number of entries read in one directory.
const NAMES_MAX: usize = 4096;

/// The files that a command may write. Paths are compared after resolving links and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteGuard {
    command: WorkflowCommand,
    root: PathBuf,
    feature_dir: Option<PathBuf>,
}

/// The paths that a command must not change.
struct ProtectedPaths {
    files: Vec<PathBuf>,
    /// Directories in which every file is protected.
    directories: Vec<PathBuf>,
}

impl WriteGuard {
    /// Creates the guard of a command; without a feature nothing of a feature may be written.
    pub fn new(command: WorkflowCommand, project_root: &Path, feature_dir: Option<&Path>) -> Self {
        let resolve = |path: &Path| resolve_path(project_root, path).unwrap_or_else(|_| path.to_owned());
        Self { command, root: resolve(project_root), feature_dir: feature_dir.map(resolve) }
    }

    /// Whether a path may be written; if not, an error with the reason for the model.
    pub fn may_write(&self, path: &Path) -> Result<(), String> {
        let path = resolve_path(&self.root, path)
            .map_err(|error| format!("{} leads nowhere that can be checked: {error}", path.display()))?;
        let command = self.command;
        let reject = |allowed: &str| {
            let relative = path.strip_prefix(&self.root).unwrap_or(&path).display();
            Err(format!("{command} writes {allowed}; {relative} stays as it is"))
        };
        let in_feature =
            self.feature_dir.as_ref().and_then(|feature_dir| path.strip_prefix(feature_dir).ok());
        let in_feature = in_feature.filter(|within| !within.as_os_str().is_empty());
        let target = GuardedPath { is_constitution: path == self.constitution_path(), in_feature };
        (self.rules().refuse)(&target).map_or(Ok(()), reject)
    }

    fn rules(&self) -> &'static WriteRules {
        &step_definition(self.command).writes
    }

    fn constitution_path(&self) -> PathBuf {
        self.root.join(SPECIFY_DIR).join("memory/constitution.md")
    }

    /// Whether new files in protected directories must be the command's.
    fn removes_new_files(&self) -> bool {
        self.rules().removes_new_files
    }

    /// Returns the protected files, and the directories whose files are all protected.
    fn protected_paths(&self) -> ProtectedPaths {
        let mut paths = ProtectedPaths { files: Vec::new(), directories: Vec::new() };
        for protected in self.rules().protected {
            match protected {
                ProtectedPath::Constitution => paths.files.push(self.constitution_path()),
                ProtectedPath::Templates => {
                    paths.directories.push(self.root.join(SPECIFY_DIR).join("templates"));
                }
                ProtectedPath::FeatureFile(name) => {
                    paths.files.extend(self.feature_dir.as_ref().map(|dir| dir.join(name)));
                }
                ProtectedPath::FeatureDirectory(name) => {
                    paths.directories.extend(self.feature_dir.as_ref().map(|dir| dir.join(name)));
                }
                ProtectedPath::Feature => paths.directories.extend(self.feature_dir.clone()),
            }
        }
        paths
    }
}

impl WriteGuard {
    /// Returns the directories of the project's other features, if they are protected.
    fn other_feature_dirs(&self) -> Vec<PathBuf> {
        if !self.rules().protects_other_features {
            return Vec::new();
        }
        let roots = [self.root.join(SPECIFY_DIR).join("specs"), self.root.join("specs")];
        let siblings_root = self.feature_dir.as_deref().and_then(Path::parent).map(Path::to_owned);
        let mut dirs = Vec::new();
        for root in roots.into_iter().chain(siblings_root) {
            let Ok(entries) = resolve_path(&self.root, &root).and_then(fs::read_dir) else { continue };
            let directories = entries.take(NAMES_MAX).filter_map(Result::ok).filter(|entry| {
                entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && (entry
                        .file_name()
                        .to_str()
                        .is_some_and(|name| numbering::parse_dir_prefix(name).is_some())
                        || entry.path().join("spec.md").is_file())
            });
            dirs.extend(directories.map(|entry| entry.path()));
        }
        let is_own_feature = |path: &PathBuf| {
            self.feature_dir.as_ref().is_some_and(|feature_dir| feature_dir.starts_with(path))
        };
        dirs.retain(|path| !is_own_feature(path));
        dirs.sort();
        dirs.dedup();
        dirs
    }

    /// Returns the directory of checklists that belong to reviewers, for the step that adds to them.
    fn reviewed_dir(&self) -> Option<PathBuf> {
        let feature = self.feature_dir.as_ref().filter(|_| self.rules().extends_checklists)?;
        Some(feature.join("checklists"))
    }
}

/// Resolves a path: follows every link and keeps components that do not exist yet.
fn resolve_path(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in root.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Prefix(_) | Component::RootDir => resolved.push(component),
            Component::Normal(name) => {
                resolved.push(name);
                match fs::symlink_metadata(&resolved) {
                    // Writing to a dangling link would create its target.
                    Ok(metadata) if metadata.is_symlink() => resolved = fs::canonicalize(&resolved)?,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests;
