//! The configuration directory of the Python version. Copies and never moves, overwrites nothing, and follows no link
//! out of that directory. Must not know what the keys of a configuration mean to this version.

mod files;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crow_files::create_private_dir;
use crow_store::{DatabaseAddress, StoreError, copy_foreign_database};

use self::files::{CopyOutcome, SourceDirectory};
use crate::PYTHON_FORMAT;

/// The directory of later Python versions, below the home directory; earlier ones used ours.
const PYTHON_DIR: &str = ".agents/crow";
/// Its parent, which all of the user's agents share.
const SHARED_DIR: &str = ".agents";
const CONFIG_FILE: &str = "config.yaml";
const ENV_FILE: &str = ".env";
const DATABASE: &str = "crow.db";
/// Directories that are copied: prompts, and the images that messages in the database refer to.
const COPIED_DIRS: [&str; 2] = ["prompts", "images"];
const SKILLS: &str = "skills";
const INSTRUCTIONS: &str = "AGENTS.md";

/// Returns the Python version's directory below a home directory, if it has a configuration.
pub fn find_python_directory(home: &Path) -> Option<PathBuf> {
    let directory = home.join(PYTHON_DIR);
    directory.join(CONFIG_FILE).is_file().then_some(directory)
}

/// A configuration directory of the Python version.
#[derive(Debug)]
pub struct PythonDirectory {
    source: SourceDirectory,
    config_text: String,
}

/// Location of the old database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonDatabase {
    /// In the directory, existing or not.
    Inside(PathBuf),
    /// At a path that the configuration gives.
    Elsewhere(PathBuf),
    /// There is none, or it is on a server.
    Unknown,
}

/// The reason why a directory could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum PythonDirectoryError {
    #[error("could not open {}: {source}", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("could not read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write to {}: {source}", .path.display())]
    WriteDirectory { path: PathBuf, source: io::Error },
    #[error("could not write {}: {source}", .path.display())]
    WriteDatabase { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] io::Error),
}

impl PythonDirectory {
    /// Opens a directory and reads its configuration.
    pub fn open(path: &Path) -> Result<Self, PythonDirectoryError> {
        let source = SourceDirectory::open(path)
            .map_err(|source| PythonDirectoryError::Open { path: path.to_owned(), source })?;
        let config_text = source
            .read_text(CONFIG_FILE)
            .map_err(|source| PythonDirectoryError::Read { path: path.join(CONFIG_FILE), source })?;
        Ok(Self { source, config_text })
    }

    /// Returns the path without links.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Returns the text of the configuration.
    pub fn config_text(&self) -> &str {
        &self.config_text
    }

    /// Locates the database, which may have an address in the configuration.
    pub fn locate_database(&self, configured: Option<DatabaseAddress>) -> PythonDatabase {
        let path = match configured {
            Some(DatabaseAddress::File(path)) => path,
            Some(DatabaseAddress::Server { .. }) => return PythonDatabase::Unknown,
            None => self.path().join(DATABASE),
        };
        let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        match parent.zip(path.file_name()) {
            Some((parent, name)) if parent.starts_with(self.path()) => {
                PythonDatabase::Inside(parent.join(name))
            }
            None if path.starts_with(self.path()) => PythonDatabase::Inside(path),
            _ if path.exists() => PythonDatabase::Elsewhere(path),
            _ => PythonDatabase::Unknown,
        }
    }

    /// Copies everything but the configuration to `target` and reports each result to `log`.
    pub fn copy_files(
        &self,
        database: &PythonDatabase,
        target: &Path,
        log: &mut impl io::Write,
    ) -> Result<(), PythonDirectoryError> {
        let source = &self.source;
        let failed = |source| PythonDirectoryError::WriteDirectory { path: target.to_owned(), source };
        create_private_dir(target).map_err(failed)?;
        report_copy(log, ENV_FILE, &source.copy_file(ENV_FILE, target).map_err(failed)?)?;
        for name in COPIED_DIRS {
            report_copy(log, name, &source.copy_dir(name, target).map_err(failed)?)?;
        }
        // The files that the Python version shared with other agents.
        let parent = source.parent().filter(|around| around.path().ends_with(SHARED_DIR));
        for directory in [Some(source), parent.as_ref()].into_iter().flatten() {
            report_copy(log, SKILLS, &directory.copy_dir(SKILLS, target).map_err(failed)?)?;
            report_copy(log, INSTRUCTIONS, &directory.copy_file(INSTRUCTIONS, target).map_err(failed)?)?;
        }
        match database {
            PythonDatabase::Inside(path) => {
                report_copy(log, DATABASE, &copy_database(source, path, target)?)?;
            }
            PythonDatabase::Elsewhere(path) => {
                writeln!(log, "note: the sessions stay in {}, as configured in db_uri", path.display())?;
            }
            PythonDatabase::Unknown => {}
        }
        Ok(())
    }
}

/// Copies the database under its default name.
fn copy_database(
    source: &SourceDirectory,
    path: &Path,
    target: &Path,
) -> Result<CopyOutcome, PythonDirectoryError> {
    let target_file = target.join(DATABASE);
    let original = match source.find_file(path) {
        Ok(Some(original)) => original,
        Ok(None) => return Ok(CopyOutcome::Missing),
        Err(error) => return Ok(CopyOutcome::Skipped(error.to_string())),
    };
    if fs::symlink_metadata(&target_file).is_ok() {
        return Ok(CopyOutcome::already_present());
    }
    let failed = |source| PythonDirectoryError::WriteDatabase { path: target_file.clone(), source };
    let copy = tempfile::NamedTempFile::new_in(target).map_err(failed)?;
    match copy_foreign_database(&PYTHON_FORMAT, &original, copy.path()) {
        Ok(()) => {}
        Err(error @ (StoreError::OtherProgram { .. } | StoreError::NotADatabase { .. })) => {
            return Ok(CopyOutcome::Skipped(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    copy.persist_noclobber(&target_file).map_err(|error| failed(error.error))?;
    Ok(CopyOutcome::Copied)
}

/// Comments out the lines of a configuration that give one of these keys.
pub fn comment_out_keys(text: &str, keys: &[&str]) -> String {
    let mut is_value = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let key = line.split_once(':').map(|(key, _)| key.trim_end().trim_matches(['"', '\'']));
        // A long value continues on indented lines.
        is_value = key.is_some_and(|key| keys.contains(&key)) || (is_value && line.starts_with([' ', '\t']));
        if is_value { format!("# {line}") } else { line.to_owned() }
    });
    lines.collect()
}

fn report_copy(log: &mut impl io::Write, name: &str, outcome: &CopyOutcome) -> io::Result<()> {
    match outcome {
        CopyOutcome::Missing => Ok(()),
        CopyOutcome::Copied => writeln!(log, "imported {name}"),
        CopyOutcome::Partial { n_copied: 0, n_skipped: 1, unreadable } if unreadable.is_empty() => {
            writeln!(log, "note: {name} already exists and is unchanged")
        }
        CopyOutcome::Partial { n_copied, n_skipped, unreadable } => {
            let n_files = n_copied + n_skipped;
            writeln!(log, "imported {n_copied} of the {n_files} files of {name}")?;
            for reason in unreadable {
                writeln!(log, "note: skipped {reason}")?;
            }
            match *n_skipped > unreadable.len() as u64 {
                true if unreadable.is_empty() => {
                    writeln!(log, "note: the others already exist or are links")
                }
                true => writeln!(log, "note: others already exist, are links, or cannot be read either"),
                false => Ok(()),
            }
        }
        CopyOutcome::Skipped(reason) => writeln!(log, "note: {name} was skipped: {reason}"),
    }
}
