//! A project: the directory that contains `.specify/`, and its paths. Its content is untrusted, so file sizes are
//! limited, and links out of the project are not followed unless the user chose the path.

use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use tempfile::NamedTempFile;

use crow_files::{LinkPolicy, OpenOutcome};

use crate::{SpeckitError, confined_files, sanitize_text};

/// The largest pages in public projects have 200 KB.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The directory for Spec Kit's files.
pub(crate) const SPECIFY_DIR: &str = ".specify";

/// The variable with the root of the project, for use from another directory.
const INIT_DIR: &str = "SPECIFY_INIT_DIR";

/// The environment variables about projects. An empty variable counts as not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpeckitVariables {
    /// The root of the project.
    pub init_dir: Option<PathBuf>,
    /// The directory of the feature, relative to the root.
    pub feature_directory: Option<String>,
    /// The name of the feature, regardless of its directory.
    pub feature: Option<String>,
    /// Whether the project's pointer is not updated.
    pub no_persist: bool,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

impl SpeckitVariables {
    /// Reads the variables with the given function.
    pub fn from_env(read_variable: impl Fn(&str) -> Option<String>) -> Self {
        let read_variable = |name| read_variable(name).filter(|text| !text.is_empty());
        Self {
            init_dir: read_variable(INIT_DIR).map(PathBuf::from),
            feature_directory: read_variable("SPECIFY_FEATURE_DIRECTORY"),
            feature: read_variable("SPECIFY_FEATURE"),
            no_persist: read_variable("SPECIFY_FEATURE_NO_PERSIST")
                .is_some_and(|text| text == "1" || text == "true"),
            home: read_variable("HOME").map(PathBuf::from),
        }
    }
}

/// A project, identified by its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeckitProject {
    root: PathBuf,
}

impl SpeckitProject {
    /// Returns the project with this root, which may be empty.
    pub fn from_root(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Finds the current project: the one given by `init_dir`, or the nearest parent directory with a `.specify/`.
    pub fn find_project(cwd: &Path, init_dir: Option<&Path>) -> Result<Option<Self>, SpeckitError> {
        if let Some(dir) = init_dir {
            let root = fs::canonicalize(cwd.join(dir)).ok().filter(|root| root.is_dir());
            let root = root.ok_or_else(|| init_dir_error(dir, "which is not a directory"))?;
            return match is_project_root(&root)? {
                true => Ok(Some(Self::from_root(root))),
                false => Err(init_dir_error(dir, "which has no .specify/")),
            };
        }
        let cwd = fs::canonicalize(cwd).map_err(|error| SpeckitError::io(cwd, error))?;
        for root in cwd.ancestors() {
            if is_project_root(root)? {
                return Ok(Some(Self::from_root(root)));
            }
        }
        Ok(None)
    }

    /// The root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path in `.specify/`.
    pub fn specify_path(&self, relative_path: &str) -> PathBuf {
        self.root.join(SPECIFY_DIR).join(relative_path)
    }

    /// Returns the path of the constitution.
    pub fn constitution_path(&self) -> PathBuf {
        self.specify_path("memory/constitution.md")
    }

    /// Whether `.specify/` exists.
    pub fn is_initialized(&self) -> bool {
        self.root.join(SPECIFY_DIR).is_dir()
    }

    /// Returns the absolute form of a path relative to the root, without duplicate or trailing slashes.
    pub fn resolve_path(&self, path_text: impl AsRef<Path>) -> PathBuf {
        self.root.join(path_text).components().collect()
    }

    /// Whether a path is inside the project after resolving every link.
    pub fn contains_path(&self, path: &Path) -> bool {
        match (follow_links(path), follow_links(&self.root)) {
            (Some(path), Some(root)) => path.starts_with(root),
            (None, _) | (_, None) => false,
        }
    }

    /// Rejects a path that leads out of the project through a link.
    pub(crate) fn check_inside(&self, path: &Path) -> Result<(), SpeckitError> {
        match self.contains_path(path) {
            true => Ok(()),
            false => Err(SpeckitError::invalid_file(path, "a link in it leads out of the project")),
        }
    }

    /// Creates a directory of the project with its parents; returns whether it is new.
    pub(crate) fn create_dir(&self, path: &Path) -> Result<bool, SpeckitError> {
        self.check_inside(path)?;
        if path.is_dir() {
            return Ok(false);
        }
        fs::create_dir_all(path).map_err(|error| SpeckitError::io(path, error))?;
        Ok(true)
    }

    /// Formats a path relative to the root for display; paths outside the project are unchanged.
    pub fn display_path(&self, path: &Path) -> String {
        sanitize_text(&path.strip_prefix(&self.root).unwrap_or(path).display().to_string())
    }

    /// Returns a path relative to the root; paths outside the project are unchanged.
    pub(crate) fn relative_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).unwrap_or(path).to_owned()
    }

    /// Reads a whole file of the project, following links inside it; `None` if it does not exist.
    pub fn read_project_file(&self, path: &Path) -> Result<Option<String>, SpeckitError> {
        confined_files::read_file_in(self, &self.root, path)
    }

    /// Reads a whole file, following links anywhere; `None` if it does not exist.
    pub fn read_file(path: &Path) -> Result<Option<String>, SpeckitError> {
        read_opened(path, crow_files::open_guarded(path, LinkPolicy::Follow))
    }

    /// Reads a whole file by a resolved path without links; `None` if it does not exist.
    pub(crate) fn read_resolved(path: &Path) -> Result<Option<String>, SpeckitError> {
        read_opened(path, crow_files::open_resolved(path))
    }

    /// Replaces a file atomically; its directory must exist. Does not write through a link or replace one.
    pub fn write_file(path: &Path, text: &str) -> Result<(), SpeckitError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(SpeckitError::invalid_file(path, "it is not a file; move it away"));
            }
            // Other errors occur when it is written.
            Ok(_) | Err(_) => {}
        }
        let staged = stage_file(path, text)?;
        staged.persist(path).map(drop).map_err(|error| SpeckitError::io(path, error.error))
    }

    /// Writes a new file atomically; keeps an existing one and returns whether it is new.
    pub(crate) fn write_new_file(path: &Path, text: &str) -> Result<bool, SpeckitError> {
        match stage_file(path, text)?.persist_noclobber(path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => match path.is_file() {
                true => Ok(false),
                false => Err(SpeckitError::invalid_file(path, "it is not a file; move it away")),
            },
            Err(error) => Err(SpeckitError::io(path, error.error)),
        }
    }
}

/// Reads the text of an opened file. Pipes and devices have no end.
fn read_opened(path: &Path, open_result: io::Result<OpenOutcome>) -> Result<Option<String>, SpeckitError> {
    let file = match open_result.map_err(|error| SpeckitError::io(path, error))? {
        OpenOutcome::File(file, _) => file,
        OpenOutcome::Missing => return Ok(None),
        OpenOutcome::Other => return Err(SpeckitError::invalid_file(path, "it is not a file")),
    };
    let mut text = String::new();
    match file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text) {
        Ok(n_bytes) if n_bytes as u64 > FILE_BYTES_MAX => {
            Err(SpeckitError::invalid_file(path, format!("it has more than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(SpeckitError::invalid_file(path, "it is not UTF-8"))
        }
        Err(error) => Err(SpeckitError::io(path, error)),
    }
}

/// Writes the text to a temporary file in the same directory, with the permissions of the existing file.
fn stage_file(path: &Path, text: &str) -> Result<NamedTempFile, SpeckitError> {
    let io_error = |error| SpeckitError::io(path, error);
    let parent = path.parent().ok_or_else(|| io_error(ErrorKind::InvalidInput.into()))?;
    let mut staged = tempfile::Builder::new().prefix(".crow-").tempfile_in(parent).map_err(io_error)?;
    staged.write_all(text.as_bytes()).map_err(io_error)?;
    if let Some(metadata) = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file) {
        staged.as_file().set_permissions(metadata.permissions()).map_err(io_error)?;
    } else {
        crow_files::make_public(staged.as_file()).map_err(io_error)?;
    }
    staged.as_file().sync_all().map_err(io_error)?;
    Ok(staged)
}

/// Whether this directory, a path without links, is a project's root.
fn is_project_root(root: &Path) -> Result<bool, SpeckitError> {
    let specify_dir = root.join(SPECIFY_DIR);
    // Most directories have none, and none of a directory that cannot be accessed is a project.
    if fs::symlink_metadata(&specify_dir).is_err() {
        return Ok(false);
    }
    match fs::canonicalize(&specify_dir) {
        Ok(canonical) if !canonical.is_dir() => Err(SpeckitError::invalid_file(
            &specify_dir,
            "it is not a directory; move it away, or work in another directory",
        )),
        Ok(canonical) if !canonical.starts_with(root) => Err(SpeckitError::invalid_file(
            &specify_dir,
            "it is a link that leads out of the project; replace it with a directory",
        )),
        Ok(_) => Ok(true),
        Err(_) => Err(SpeckitError::invalid_file(
            &specify_dir,
            "it is a link that leads nowhere; replace it with a directory",
        )),
    }
}

fn init_dir_error(dir: &Path, reason: &str) -> SpeckitError {
    let dir = dir.display();
    SpeckitError::Invalid(format!(
        "{INIT_DIR} is {dir}, {reason}; set it to a directory with a .specify/, or unset it"
    ))
}

/// Follows the links of a path as far as it exists and appends the rest; `None` for a dangling link, because its target
/// is decided when it is created.
pub(crate) fn follow_links(path: &Path) -> Option<PathBuf> {
    for ancestor in path.ancestors() {
        match fs::canonicalize(ancestor) {
            Ok(mut canonical) => {
                for part in path.strip_prefix(ancestor).ok()?.components() {
                    match part {
                        Component::ParentDir => drop(canonical.pop()),
                        Component::Normal(name) => canonical.push(name),
                        Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
                    }
                }
                return Some(canonical);
            }
            Err(_) if fs::symlink_metadata(ancestor).is_ok_and(|metadata| metadata.is_symlink()) => {
                return None;
            }
            Err(_) => {}
        }
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::fixture::fixture_project;

    #[test]
    fn pipes_and_links_are_not_files() {
        let (_folder, project) = fixture_project(&[(".specify/memory/constitution.md", "rules")]);
        let pipe = project.root().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(SpeckitProject::read_file(&pipe).unwrap_err().to_string().ends_with("it is not a file"));
        assert!(SpeckitProject::write_file(&pipe, "").unwrap_err().to_string().contains("it is not a file"));
        assert!(
            crow_files::open_guarded_with(fs::File::options().append(true), &pipe, LinkPolicy::Reject)
                .is_ok()
        );
        let (inner, outer) = (project.root().join("inner"), project.root().join("outer"));
        std::os::unix::fs::symlink(project.constitution_path(), &inner).unwrap();
        std::os::unix::fs::symlink("/etc/hosts", &outer).unwrap();
        assert_eq!(project.read_project_file(&inner).unwrap().as_deref(), Some("rules"));
        assert!(project.read_project_file(&outer).is_err());
        assert!(SpeckitProject::write_file(&inner, "x").is_err());
        assert_eq!(
            SpeckitProject::read_file(&project.constitution_path()).unwrap().as_deref(),
            Some("rules")
        );
    }
}
