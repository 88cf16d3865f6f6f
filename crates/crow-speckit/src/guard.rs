//! Which files a command may write, and putting back what a shell wrote behind that. Knows no tool and no session.

mod aside;
mod reviewed;
mod snapshot;
mod watch;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::project::FOLDER;
use crate::{Command, number};

pub use snapshot::{Change, SET_ASIDE, Snapshot, Touched};
pub use watch::{BackgroundWork, ChangeWatch};

/// Names of one folder that are looked at; behind so many there is nothing that a person made.
const NAMES_MAX: usize = 4096;

/// What a command may write. Paths count by where they lead: links and `..` change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    command: Command,
    root: PathBuf,
    feature: Option<PathBuf>,
}

impl Guard {
    /// The guard of a command in a project; without a feature there is nothing of one to write.
    pub fn new(command: Command, project_root: &Path, feature_dir: Option<&Path>) -> Self {
        let real = |path: &Path| resolved(project_root, path).unwrap_or_else(|_| path.to_owned());
        Self { command, root: real(project_root), feature: feature_dir.map(real) }
    }

    /// Tells whether a path may be written; if not, why, in words for the model.
    pub fn may_write(&self, path: &Path) -> Result<(), String> {
        let path = resolved(&self.root, path)
            .map_err(|error| format!("{} leads nowhere that can be checked: {error}", path.display()))?;
        let command = self.command;
        let refused = |allowed: &str| {
            let shown = path.strip_prefix(&self.root).unwrap_or(&path).display();
            Err(format!("{command} writes {allowed}; {shown} stays as it is"))
        };
        let within = self.feature.as_ref().and_then(|feature| path.strip_prefix(feature).ok());
        let within = within.filter(|within| !within.as_os_str().is_empty());
        match command {
            Command::Constitution if path == self.constitution() => Ok(()),
            Command::Constitution => refused("the constitution only"),
            Command::Specify | Command::Clarify | Command::Plan | Command::Tasks => match within {
                Some(_) => Ok(()),
                None => refused("the feature's folder only"),
            },
            Command::Checklist => match within {
                Some(within) if is_checklist(within) && !is_same(within, "checklists/requirements.md") => {
                    Ok(())
                }
                Some(_) | None => refused("the feature's checklists only, and not requirements.md"),
            },
            Command::Analyze | Command::TasksToIssues => refused("no file"),
            Command::Converge => refused("no file; new tasks go through speckit_converge"),
            Command::Implement => match within {
                Some(within) if is_same(within, "tasks.md") => {
                    refused("no task list; report tasks with speckit_task")
                }
                Some(within) if is_same(within, "spec.md") || is_checklist(within) => {
                    refused("no spec and no checklist")
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    fn constitution(&self) -> PathBuf {
        self.root.join(FOLDER).join("memory/constitution.md")
    }

    /// Tells whether files that appear in protected places are nobody's but the command's.
    fn removes_new(&self) -> bool {
        matches!(self.command, Command::Checklist | Command::Implement)
    }

    /// The files that this command has no business with, and the folders of which each file is one.
    fn protected(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let feature = |names: &[&str]| -> Vec<PathBuf> {
            self.feature.iter().flat_map(|feature| names.iter().map(|name| feature.join(name))).collect()
        };
        match self.command {
            Command::Constitution => (Vec::new(), vec![self.root.join(FOLDER).join("templates")]),
            Command::Specify | Command::Clarify | Command::Plan | Command::Tasks => {
                (vec![self.constitution()], Vec::new())
            }
            Command::Checklist => {
                let mut files = feature(&["spec.md", "plan.md", "tasks.md", "checklists/requirements.md"]);
                files.push(self.constitution());
                (files, Vec::new())
            }
            Command::Analyze | Command::Converge | Command::TasksToIssues => {
                (vec![self.constitution()], self.feature.iter().cloned().collect())
            }
            Command::Implement => (feature(&["spec.md"]), feature(&["checklists"])),
        }
    }
}

impl Guard {
    /// Returns the folders of the project's other features. `implement` writes code, which may be anywhere; no other step
    /// has any business there.
    fn other_features(&self) -> Vec<PathBuf> {
        if self.command == Command::Implement {
            return Vec::new();
        }
        let roots = [self.root.join(FOLDER).join("specs"), self.root.join("specs")];
        let beside = self.feature.as_deref().and_then(Path::parent).map(Path::to_owned);
        let mut found = Vec::new();
        for root in roots.into_iter().chain(beside) {
            let Ok(names) = resolved(&self.root, &root).and_then(fs::read_dir) else { continue };
            let folders = names.take(NAMES_MAX).filter_map(Result::ok).filter(|name| {
                name.file_type().is_ok_and(|kind| kind.is_dir())
                    && (name.file_name().to_str().is_some_and(|name| number::prefix_of(name).is_some())
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
    fn reviewed(&self) -> Option<PathBuf> {
        let feature = self.feature.as_ref().filter(|_| self.command == Command::Checklist)?;
        Some(feature.join("checklists"))
    }
}

/// Compares as the most careless file system does.
fn is_same(path: &Path, name: &str) -> bool {
    path.to_str().is_some_and(|path| path.replace('\\', "/").eq_ignore_ascii_case(name))
}

fn is_checklist(within: &Path) -> bool {
    within.components().next().is_some_and(|first| is_same(Path::new(first.as_os_str()), "checklists"))
}

/// Where a path leads: every link on the way is followed, and what is not there yet counts by its name.
fn resolved(root: &Path, path: &Path) -> io::Result<PathBuf> {
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
