//! Copies files from a directory without following links out of it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use crow_files::create_private_dir;

/// A longer file is not a configuration.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// More than such a directory holds, and few enough to copy in reasonable time.
const FILES_MAX: u64 = 100_000;
/// A skill nests a few directories; each level uses stack.
const LEVELS_MAX: usize = 8;
/// Unreadable files that are listed; more usually have the same reason.
const UNREADABLE_MAX: usize = 10;
const BUFFER_LEN: usize = 64 * 1024;
/// The Python version's description of itself for models, which is wrong for this version.
const PYTHON_SKILL: &str = "skills/crow-cli";

/// A source directory, with its canonical path.
#[derive(Debug)]
pub(super) struct SourceDirectory {
    path: PathBuf,
}

/// Result of copying a file or the files of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CopyOutcome {
    Missing,
    Copied,
    /// Some files were copied, others were not; `unreadable` lists some of those that cannot be read, with the reason.
    Partial {
        n_copied: u64,
        n_skipped: u64,
        unreadable: Vec<String>,
    },
    /// Nothing was copied, for this reason.
    Skipped(String),
}

impl CopyOutcome {
    /// The single file already exists.
    pub(super) fn already_present() -> Self {
        Self::Partial { n_copied: 0, n_skipped: 1, unreadable: Vec::new() }
    }
}

impl SourceDirectory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: fs::canonicalize(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn parent(&self) -> Option<Self> {
        Some(Self { path: self.path.parent()?.to_owned() })
    }

    /// Finds a file, following links that stay inside the directory.
    pub(super) fn find_file(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let resolved = match fs::canonicalize(self.path.join(path)) {
            Ok(resolved) => resolved,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !resolved.starts_with(&self.path) {
            return Err(io::Error::other("it is a link out of the directory"));
        }
        if !resolved.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        Ok(Some(resolved))
    }

    /// Reads a file that must exist.
    pub(super) fn read_text(&self, name: &str) -> io::Result<String> {
        let path = self.find_file(Path::new(name))?.ok_or_else(|| io::Error::other("it does not exist"))?;
        if fs::metadata(&path)?.len() > TEXT_BYTES_MAX {
            return Err(io::Error::other("it is too long"));
        }
        fs::read_to_string(path)
    }

    /// Copies a file into `target_dir`, readable by its owner only. Errors are those of `target_dir`.
    pub(super) fn copy_file(&self, name: &str, target_dir: &Path) -> io::Result<CopyOutcome> {
        let source = match self.find_file(Path::new(name)) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(CopyOutcome::Missing),
            Err(error) => return Ok(CopyOutcome::Skipped(error.to_string())),
        };
        Ok(match copy_new_file(&source, target_dir, name)? {
            FileCopyOutcome::Copied => CopyOutcome::Copied,
            FileCopyOutcome::AlreadyExists => CopyOutcome::already_present(),
            FileCopyOutcome::Unreadable(error) => CopyOutcome::Skipped(error.to_string()),
        })
    }

    /// Copies a subdirectory into `target_dir` without hidden files, such as a skill's virtual environment, and without
    /// links. Errors are those of `target_dir`.
    pub(super) fn copy_dir(&self, name: &str, target_dir: &Path) -> io::Result<CopyOutcome> {
        let source = self.path.join(name);
        match fs::symlink_metadata(&source) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Ok(CopyOutcome::Skipped("it is not a directory".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CopyOutcome::Missing),
            Err(error) => return Ok(CopyOutcome::Skipped(error.to_string())),
        }
        let mut count = CopyCount::default();
        count.copy_tree(&source, &target_dir.join(name), LEVELS_MAX)?;
        Ok(match count {
            CopyCount { n_copied: 0, n_skipped: 0, .. } => CopyOutcome::Missing,
            CopyCount { n_skipped: 0, .. } => CopyOutcome::Copied,
            CopyCount { n_copied, n_skipped, unreadable } => {
                CopyOutcome::Partial { n_copied, n_skipped, unreadable }
            }
        })
    }
}

#[derive(Debug, Default)]
struct CopyCount {
    n_copied: u64,
    n_skipped: u64,
    unreadable: Vec<String>,
}

impl CopyCount {
    fn copy_tree(&mut self, source: &Path, target: &Path, levels: usize) -> io::Result<()> {
        let entries = match fs::read_dir(source) {
            Ok(entries) => entries,
            Err(error) => {
                self.record_unreadable(source, &error);
                return Ok(());
            }
        };
        for entry in entries {
            let entry_type = entry.and_then(|entry| Ok((entry.file_type()?, entry)));
            let (kind, entry) = match entry_type {
                Ok(entry_type) => entry_type,
                Err(error) => {
                    self.record_unreadable(source, &error);
                    continue;
                }
            };
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || entry.path().ends_with(PYTHON_SKILL) {
                continue;
            }
            if kind.is_dir() && levels > 0 {
                self.copy_tree(&entry.path(), &target.join(&name), levels - 1)?;
            } else if kind.is_file() && self.n_copied < FILES_MAX {
                create_private_dir(target)?;
                match copy_new_file(&entry.path(), target, name)? {
                    FileCopyOutcome::Copied => self.n_copied += 1,
                    FileCopyOutcome::AlreadyExists => self.n_skipped += 1,
                    FileCopyOutcome::Unreadable(error) => self.record_unreadable(&entry.path(), &error),
                }
            } else {
                self.n_skipped += 1;
            }
        }
        Ok(())
    }

    /// Counts an unreadable path.
    fn record_unreadable(&mut self, path: &Path, error: &io::Error) {
        self.n_skipped += 1;
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.push(format!("{}: {error}", path.display()));
        }
    }
}

/// Result of copying one file.
pub(super) enum FileCopyOutcome {
    Copied,
    AlreadyExists,
    /// The source cannot be read.
    Unreadable(io::Error),
}

/// Copies a file to an unused name, readable by its owner only; the executable bit is kept. Errors are those of
/// `target_dir`.
pub(super) fn copy_new_file(
    path: &Path,
    target_dir: &Path,
    name: impl AsRef<Path>,
) -> io::Result<FileCopyOutcome> {
    let opened = File::open(path).and_then(|source| Ok((source.metadata()?, source)));
    let (metadata, mut source) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(FileCopyOutcome::Unreadable(error)),
    };
    let mut copy = tempfile::NamedTempFile::new_in(target_dir)?;
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(n_bytes) => copy.write_all(&buffer[..n_bytes])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(FileCopyOutcome::Unreadable(error)),
        }
    }
    if crow_files::is_executable(&metadata) {
        crow_files::make_executable(copy.as_file())?;
    }
    copy.as_file().sync_all()?;
    match copy.persist_noclobber(target_dir.join(name)) {
        Ok(_) => Ok(FileCopyOutcome::Copied),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(FileCopyOutcome::AlreadyExists)
        }
        Err(error) => Err(error.error),
    }
}
