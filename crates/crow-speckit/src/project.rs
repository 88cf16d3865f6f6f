//! A project: the folder that has `.specify/`, and the places in it. Everything in it may come from a stranger, so files are
//! read up to a limit and nothing is followed out of the project that the person did not name.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::SpeckitError;

/// Files that people and models write for each other; the largest seen in public projects have 200 KB.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where a project keeps what Spec Kit knows of it.
pub(crate) const FOLDER: &str = ".specify";

/// A project, by its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The project with this root, whether or not there is anything in it yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it begins.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A place in `.specify/`.
    pub fn specify(&self, place: &str) -> PathBuf {
        self.root.join(FOLDER).join(place)
    }

    /// Where the ground rules are.
    pub fn constitution(&self) -> PathBuf {
        self.specify("memory/constitution.md")
    }

    /// Tells whether there is a `.specify/` already.
    pub fn is_begun(&self) -> bool {
        self.root.join(FOLDER).is_dir()
    }

    /// Spells a path of the project from its root, with slashes; others as they are.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Reads a file whole; `None` where there is none.
    pub fn read(path: &Path) -> Result<Option<String>, SpeckitError> {
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(SpeckitError::io(path, error)),
        };
        // A pipe would never end, and a device has no end.
        if !found.is_file() {
            return Err(SpeckitError::broken(path, "it is not a file"));
        }
        let mut text = String::new();
        let file = File::open(path).map_err(|error| SpeckitError::io(path, error))?;
        match file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text) {
            Ok(n_bytes) if n_bytes as u64 > FILE_BYTES_MAX => {
                Err(SpeckitError::broken(path, format!("it has more than {FILE_BYTES_MAX} bytes")))
            }
            Ok(_) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(SpeckitError::broken(path, "it is not UTF-8"))
            }
            Err(error) => Err(SpeckitError::io(path, error)),
        }
    }

    /// Replaces a file in one step, so that nobody ever reads half of it; its folder is there.
    pub fn write(path: &Path, text: &str) -> Result<(), SpeckitError> {
        let failed = |error| SpeckitError::io(path, error);
        let folder = path.parent().ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?;
        let mut temporary = tempfile::Builder::new().prefix(".crow-").tempfile_in(folder).map_err(failed)?;
        temporary.write_all(text.as_bytes()).map_err(failed)?;
        if let Ok(found) = fs::metadata(path) {
            temporary.as_file().set_permissions(found.permissions()).map_err(failed)?;
        } else {
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                temporary.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(failed)?;
            }
        }
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(path).map(drop).map_err(|error| failed(error.error))
    }
}
