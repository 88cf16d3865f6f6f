//! A folder that is copied from, and out of which no link is followed.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use super::write;

/// More is no configuration.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// More than anybody keeps there, and few enough to be done in a while.
const FILES_MAX: u64 = 100_000;
/// A skill has a few folders in one another; each costs some of the stack.
const LEVELS_MAX: usize = 8;
/// Files that could not be read and are named; more of them have the same reason.
const UNREAD_MAX: usize = 10;
/// Bytes copied at once.
const PIECE_LEN: usize = 64 * 1024;
/// What the Python version told models of itself; none of it holds here.
const OWN_SKILL: &str = "skills/crow-cli";

/// A folder, where it really is.
#[derive(Debug)]
pub(super) struct SourceFolder {
    path: PathBuf,
}

/// What became of a file or of the files of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CopyOutcome {
    /// There was none.
    Missing,
    /// All of it came over.
    Whole,
    /// Some files came over, others did not; some of those that cannot be read are named, with why.
    Left { n_others: u64, n_left: u64, unread: Vec<String> },
    /// It was not to be had, and why.
    Refused(String),
}

impl CopyOutcome {
    /// The one file was there before.
    pub(super) fn already_present() -> Self {
        Self::Left { n_others: 0, n_left: 1, unread: Vec::new() }
    }
}

impl SourceFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: fs::canonicalize(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder around it.
    pub(super) fn parent(&self) -> Option<Self> {
        Some(Self { path: self.path.parent()?.to_owned() })
    }

    /// Finds a file in it, through links that stay in it.
    pub(super) fn find_file(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let found = match fs::canonicalize(self.path.join(path)) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !found.starts_with(&self.path) {
            return Err(io::Error::other("it is a link out of the folder"));
        }
        if !found.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        Ok(Some(found))
    }

    /// Reads a file in it that must be there.
    pub(super) fn read_text(&self, name: &str) -> io::Result<String> {
        let path = self.find_file(Path::new(name))?.ok_or_else(|| io::Error::other("it is not there"))?;
        if fs::metadata(&path)?.len() > TEXT_BYTES_MAX {
            return Err(io::Error::other("it is too long"));
        }
        fs::read_to_string(path)
    }

    /// Copies a file into another folder, for its owner only. An error is one of that folder.
    pub(super) fn copy_file(&self, name: &str, into: &Path) -> io::Result<CopyOutcome> {
        let source = match self.find_file(Path::new(name)) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(CopyOutcome::Missing),
            Err(error) => return Ok(CopyOutcome::Refused(error.to_string())),
        };
        Ok(match copy_new_file(&source, into, name)? {
            FileCopyOutcome::New => CopyOutcome::Whole,
            FileCopyOutcome::ThereAlready => CopyOutcome::already_present(),
            FileCopyOutcome::Unread(why) => CopyOutcome::Refused(why.to_string()),
        })
    }

    /// Copies a folder in it into another one; hidden files, such as the Python of a skill, and links stay behind.
    /// An error is one of the other folder.
    pub(super) fn copy_folder(&self, name: &str, into: &Path) -> io::Result<CopyOutcome> {
        let source = self.path.join(name);
        match fs::symlink_metadata(&source) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Ok(CopyOutcome::Refused("it is not a folder".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CopyOutcome::Missing),
            Err(error) => return Ok(CopyOutcome::Refused(error.to_string())),
        }
        let mut count = CopyCount::default();
        count.copy_tree(&source, &into.join(name), LEVELS_MAX)?;
        Ok(match count {
            CopyCount { n_copied: 0, n_left: 0, .. } => CopyOutcome::Missing,
            CopyCount { n_left: 0, .. } => CopyOutcome::Whole,
            CopyCount { n_copied, n_left, unread } => {
                CopyOutcome::Left { n_others: n_copied, n_left, unread }
            }
        })
    }
}

#[derive(Debug, Default)]
struct CopyCount {
    n_copied: u64,
    n_left: u64,
    unread: Vec<String>,
}

impl CopyCount {
    fn copy_tree(&mut self, from: &Path, to: &Path, levels: usize) -> io::Result<()> {
        let entries = match fs::read_dir(from) {
            Ok(entries) => entries,
            Err(why) => {
                self.record_unread(from, &why);
                return Ok(());
            }
        };
        for entry in entries {
            let found = entry.and_then(|entry| Ok((entry.file_type()?, entry)));
            let (kind, entry) = match found {
                Ok(found) => found,
                Err(why) => {
                    self.record_unread(from, &why);
                    continue;
                }
            };
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || entry.path().ends_with(OWN_SKILL) {
                continue;
            }
            if kind.is_dir() && levels > 0 {
                self.copy_tree(&entry.path(), &to.join(&name), levels - 1)?;
            } else if kind.is_file() && self.n_copied < FILES_MAX {
                write::create_private_folder(to)?;
                match copy_new_file(&entry.path(), to, name)? {
                    FileCopyOutcome::New => self.n_copied += 1,
                    FileCopyOutcome::ThereAlready => self.n_left += 1,
                    FileCopyOutcome::Unread(why) => self.record_unread(&entry.path(), &why),
                }
            } else {
                self.n_left += 1;
            }
        }
        Ok(())
    }

    /// Counts what cannot be read.
    fn record_unread(&mut self, path: &Path, why: &io::Error) {
        self.n_left += 1;
        if self.unread.len() < UNREAD_MAX {
            self.unread.push(format!("{}: {why}", path.display()));
        }
    }
}

/// What became of a name in the new folder.
pub(super) enum FileCopyOutcome {
    New,
    /// Somebody has the name.
    ThereAlready,
    /// The original cannot be read.
    Unread(io::Error),
}

/// Copies a file to a name that nobody has, for its owner only; a script stays one. An error is one of the new folder.
pub(super) fn copy_new_file(from: &Path, into: &Path, name: impl AsRef<Path>) -> io::Result<FileCopyOutcome> {
    let opened = File::open(from).and_then(|source| Ok((source.metadata()?, source)));
    let (found, mut source) = match opened {
        Ok(opened) => opened,
        Err(why) => return Ok(FileCopyOutcome::Unread(why)),
    };
    let mut copy = tempfile::NamedTempFile::new_in(into)?;
    let mut piece = vec![0; PIECE_LEN];
    loop {
        match source.read(&mut piece) {
            Ok(0) => break,
            Ok(n_bytes) => copy.write_all(&piece[..n_bytes])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Ok(FileCopyOutcome::Unread(why)),
        }
    }
    keep_executable_bit(copy.as_file(), &found)?;
    copy.as_file().sync_all()?;
    match copy.persist_noclobber(into.join(name)) {
        Ok(_) => Ok(FileCopyOutcome::New),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(FileCopyOutcome::ThereAlready),
        Err(error) => Err(error.error),
    }
}

#[cfg(unix)]
fn keep_executable_bit(copy: &File, found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    match found.permissions().mode() & 0o111 {
        0 => Ok(()),
        _ => copy.set_permissions(fs::Permissions::from_mode(0o700)),
    }
}

#[cfg(not(unix))]
fn keep_executable_bit(_copy: &File, _found: &fs::Metadata) -> io::Result<()> {
    Ok(())
}
