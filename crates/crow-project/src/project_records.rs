//! Records of the user's answers about projects: one JSON file per project in a subdirectory of the configuration
//! directory, readable by the user only. Blocks.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crow_files::{AllowedRoot, hash_content, list_names, read_bounded_text};

/// Projects that are listed; far more than any user has.
const PROJECTS_MAX: usize = 10_000;

/// One kind of record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProjectRecords<'a> {
    pub config_dir: &'a Path,
    /// The subdirectory.
    pub directory: &'static str,
    /// Larger files are not read.
    pub file_bytes_max: u64,
}

impl ProjectRecords<'_> {
    /// Returns the path of a project's record.
    pub(crate) fn path(&self, project: &Path) -> PathBuf {
        let name = hash_content(project.as_os_str().as_encoded_bytes());
        self.config_dir.join(self.directory).join(format!("{name}.json"))
    }

    /// Reads the record of a project; `None` if there is none, or the reason why it is invalid.
    pub(crate) fn read<T: DeserializeOwned>(&self, project: &Path) -> Result<Option<T>, String> {
        self.read_file(&self.path(project))
    }

    fn read_file<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, String> {
        let text = read_bounded_text(path, AllowedRoot::Anywhere, self.file_bytes_max)
            .map_err(|error| error.to_string())?;
        text.map(|text| serde_json::from_str(&text).map_err(|error| error.to_string())).transpose()
    }

    /// Replaces the record of a project atomically.
    pub(crate) fn write<T: Serialize>(&self, project: &Path, record: &T) -> io::Result<()> {
        let path = self.path(project);
        let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        crow_files::create_private_dir(directory)?;
        // Temporary files are readable by their owner only, and so is the renamed file.
        let mut temporary = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
        serde_json::to_writer(&mut temporary, record)?;
        temporary.flush()?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Removes the record of a project; returns whether there was one.
    pub(crate) fn remove(&self, project: &Path) -> io::Result<bool> {
        match fs::remove_file(self.path(project)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads all records, with the project that each one is about; an invalid file is an error in the list.
    pub(crate) fn list<T: DeserializeOwned>(&self, project: impl Fn(&T) -> &str) -> Vec<Result<T, String>> {
        let directory = self.config_dir.join(self.directory);
        let names = list_names(&directory, AllowedRoot::Anywhere, PROJECTS_MAX).into_iter();
        let files = names.filter(|name| name.ends_with(".json")).map(|name| directory.join(name));
        let read = files.filter_map(|file| {
            let describe_error = |reason: &str| format!("{}: {reason}", file.display());
            let record: T = match self.read_file(&file) {
                Ok(record) => record?,
                Err(reason) => return Some(Err(describe_error(&reason))),
            };
            // The file name is derived from the project: a copy under another name is invalid.
            let is_at_own_path = self.path(Path::new(project(&record))) == file;
            Some(if is_at_own_path { Ok(record) } else { Err(describe_error("it is about another project")) })
        });
        read.collect()
    }
}
