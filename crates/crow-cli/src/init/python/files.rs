//! A folder that is copied from, and out of which no link is followed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::write;

/// More is no configuration.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// More than anybody keeps there, and few enough to be done in a while.
const FILES_MAX: u64 = 100_000;
/// A skill has a few folders in one another; each costs some of the stack.
const LEVELS_MAX: usize = 8;
/// What the Python version told models of itself; none of it holds here.
const OWN_SKILL: &str = "skills/crow-cli";

/// A folder, where it really is.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// What became of a file or of the files of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// There was none.
    Missing,
    /// All of it came over.
    Whole,
    /// Some files came over, others did not.
    Left { n_others: u64, n_left: u64 },
    /// It was not to be had, and why.
    Refused(String),
}

impl Folder {
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: fs::canonicalize(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder around it.
    pub(super) fn around(&self) -> Option<Self> {
        Some(Self { path: self.path.parent()?.to_owned() })
    }

    /// Finds a file in it, through links that stay in it.
    pub(super) fn find(&self, path: &Path) -> io::Result<Option<PathBuf>> {
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
    pub(super) fn text(&self, name: &str) -> io::Result<String> {
        let path = self.find(Path::new(name))?.ok_or_else(|| io::Error::other("it is not there"))?;
        if fs::metadata(&path)?.len() > TEXT_BYTES_MAX {
            return Err(io::Error::other("it is too long"));
        }
        fs::read_to_string(path)
    }

    /// Copies a file into another folder, for its owner only.
    pub(super) fn copy(&self, name: &str, into: &Path) -> io::Result<Copied> {
        let source = match self.find(Path::new(name)) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(Copied::Missing),
            Err(error) => return Ok(Copied::Refused(error.to_string())),
        };
        Ok(if copy_new(&source, into, name)? {
            Copied::Whole
        } else {
            Copied::Left { n_others: 0, n_left: 1 }
        })
    }

    /// Copies a folder in it into another one; hidden files, such as the Python of a skill, and links stay behind.
    pub(super) fn copy_folder(&self, name: &str, into: &Path) -> io::Result<Copied> {
        let source = self.path.join(name);
        match fs::symlink_metadata(&source) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Ok(Copied::Refused("it is not a folder".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Copied::Missing),
            Err(error) => return Err(error),
        }
        let mut count = Count { n_copied: 0, n_left: 0 };
        count.copy(&source, &into.join(name), LEVELS_MAX)?;
        Ok(match count {
            Count { n_copied: 0, n_left: 0 } => Copied::Missing,
            Count { n_left: 0, .. } => Copied::Whole,
            Count { n_copied, n_left } => Copied::Left { n_others: n_copied, n_left },
        })
    }
}

struct Count {
    n_copied: u64,
    n_left: u64,
}

impl Count {
    fn copy(&mut self, from: &Path, to: &Path, levels: usize) -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || entry.path().ends_with(OWN_SKILL) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() && levels > 0 {
                self.copy(&entry.path(), &to.join(&name), levels - 1)?;
            } else if kind.is_file() && self.n_copied < FILES_MAX {
                write::folder(to)?;
                let is_new = copy_new(&entry.path(), to, name)?;
                self.n_copied += u64::from(is_new);
                self.n_left += u64::from(!is_new);
            } else {
                self.n_left += 1;
            }
        }
        Ok(())
    }
}

/// Copies a file to a name that nobody has; tells whether that was so.
fn copy_new(from: &Path, into: &Path, name: impl AsRef<Path>) -> io::Result<bool> {
    let mut copy = tempfile::NamedTempFile::new_in(into)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.as_file().sync_all()?;
    match copy.persist_noclobber(into.join(name)) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}
