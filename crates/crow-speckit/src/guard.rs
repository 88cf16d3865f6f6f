//! Which files a command may write, and putting back what a shell wrote behind that. Knows no tool and no session.

mod aside;
mod reviewed;
mod snapshot;
mod watch;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::project::FOLDER;
use crate::{WorkflowCommand, number};

pub use snapshot::{GuardSnapshot, ProtectedChange, ProtectedChangeKind, SET_ASIDE};
pub use watch::{BackgroundWork, ChangeWatch};

/// Names of one folder that are looked at; behind so many there is nothing that a person made.
const NAMES_MAX: usize = 4096;

/// What a command may write. Paths count by where they lead: links and `..` change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteGuard {
    command: WorkflowCommand,
    root: PathBuf,
    feature: Option<PathBuf>,
}

impl WriteGuard {
    /// The guard of a command in a project; without a feature there is nothing of one to write.
    pub fn new(command: WorkflowCommand, project_root: &Path, feature_dir: Option<&Path>) -> Self {
        let real = |path: &Path| resolve_path(project_root, path).unwrap_or_else(|_| path.to_owned());
        Self { command, root: real(project_root), feature: feature_dir.map(real) }
    }

    /// Tells whether a path may be written; if not, why, in words for the model.
    pub fn may_write(&self, path: &Path) -> Result<(), String> {
        let path = resolve_path(&self.root, path)
            .map_err(|error| format!("{} leads nowhere that can be checked: {error}", path.display()))?;
        let command = self.command;
        let refused = |allowed: &str| {
            let shown = path.strip_prefix(&self.root).unwrap_or(&path).display();
            Err(format!("{command} writes {allowed}; {shown} stays as it is"))
        };
        let within = self.feature.as_ref().and_then(|feature| path.strip_prefix(feature).ok());
        let within = within.filter(|within| !within.as_os_str().is_empty());
        match command {
            WorkflowCommand::Constitution if path == self.constitution_path() => Ok(()),
            WorkflowCommand::Constitution => refused("the constitution only"),
            WorkflowCommand::Specify
            | WorkflowCommand::Clarify
            | WorkflowCommand::Plan
            | WorkflowCommand::Tasks => match within {
                Some(_) => Ok(()),
                None => refused("the feature's folder only"),
            },
            WorkflowCommand::Checklist => match within {
                Some(within)
                    if is_checklist(within) && !is_same_name(within, "checklists/requirements.md") =>
                {
                    Ok(())
                }
                Some(_) | None => refused("the feature's checklists only, and not requirements.md"),
            },
            WorkflowCommand::Analyze | WorkflowCommand::TasksToIssues => refused("no file"),
            WorkflowCommand::Converge => refused("no file; new tasks go through speckit_converge"),
            WorkflowCommand::Implement => match within {
                Some(within) if is_same_name(within, "tasks.md") => {
                    refused("no task list; report tasks with speckit_task")
                }
                Some(within) if is_same_name(within, "spec.md") || is_checklist(within) => {
                    refused("no spec and no checklist")
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    fn constitution_path(&self) -> PathBuf {
        self.root.join(FOLDER).join("memory/constitution.md")
    }

    /// Tells whether files that appear in protected places are nobody's but the command's.
    fn removes_new_files(&self) -> bool {
        matches!(self.command, WorkflowCommand::Checklist | WorkflowCommand::Implement)
    }

    /// The files that this command has no business with, and the folders of which each file is one.
    fn protected_paths(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let feature = |names: &[&str]| -> Vec<PathBuf> {
            self.feature.iter().flat_map(|feature| names.iter().map(|name| feature.join(name))).collect()
        };
        match self.command {
            WorkflowCommand::Constitution => (Vec::new(), vec![self.root.join(FOLDER).join("templates")]),
            WorkflowCommand::Specify
            | WorkflowCommand::Clarify
            | WorkflowCommand::Plan
            | WorkflowCommand::Tasks => (vec![self.constitution_path()], Vec::new()),
            WorkflowCommand::Checklist => {
                let mut files = feature(&["spec.md", "plan.md", "tasks.md", "checklists/requirements.md"]);
                files.push(self.constitution_path());
                (files, Vec::new())
            }
            WorkflowCommand::Analyze | WorkflowCommand::Converge | WorkflowCommand::TasksToIssues => {
                (vec![self.constitution_path()], self.feature.iter().cloned().collect())
            }
            WorkflowCommand::Implement => (feature(&["spec.md"]), feature(&["checklists"])),
        }
    }
}

impl WriteGuard {
    /// Returns the folders of the project's other features. `implement` writes code, which may be anywhere; no other step
    /// has any business there.
    fn other_feature_dirs(&self) -> Vec<PathBuf> {
        if self.command == WorkflowCommand::Implement {
            return Vec::new();
        }
        let roots = [self.root.join(FOLDER).join("specs"), self.root.join("specs")];
        let beside = self.feature.as_deref().and_then(Path::parent).map(Path::to_owned);
        let mut found = Vec::new();
        for root in roots.into_iter().chain(beside) {
            let Ok(names) = resolve_path(&self.root, &root).and_then(fs::read_dir) else { continue };
            let folders = names.take(NAMES_MAX).filter_map(Result::ok).filter(|name| {
                name.file_type().is_ok_and(|kind| kind.is_dir())
                    && (name
                        .file_name()
                        .to_str()
                        .is_some_and(|name| number::parse_folder_prefix(name).is_some())
                        || name.path().join("spec.md").is_file())
            });
            found.extend(folders.map(|name| name.path()));
        }
        let is_own = |path: &PathBuf| self.feature.as_ref().is_some_and(|feature| feature.starts_with(path));
        found.retain(|path| !is_own(path));
        found.sort();
        found.dedup();
        found
    }

    /// Returns the folder whose lists belong to their reviewers, in the step that adds to them.
    fn reviewed_dir(&self) -> Option<PathBuf> {
        let feature = self.feature.as_ref().filter(|_| self.command == WorkflowCommand::Checklist)?;
        Some(feature.join("checklists"))
    }
}

/// Compares as the most careless file system does.
fn is_same_name(path: &Path, name: &str) -> bool {
    path.to_str().is_some_and(|path| path.replace('\\', "/").eq_ignore_ascii_case(name))
}

fn is_checklist(within: &Path) -> bool {
    within.components().next().is_some_and(|first| is_same_name(Path::new(first.as_os_str()), "checklists"))
}

/// Where a path leads: every link on the way is followed, and what is not there yet counts by its name.
fn resolve_path(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut at = PathBuf::new();
    for component in root.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            Component::Prefix(_) | Component::RootDir => at.push(component),
            Component::Normal(name) => {
                at.push(name);
                match fs::symlink_metadata(&at) {
                    // A link that leads nowhere yet would be followed by whoever writes.
                    Ok(found) if found.is_symlink() => at = fs::canonicalize(&at)?,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests;
