//! Files that only one library of this process may open.
//!
//! A process loses its POSIX locks on a file when it closes any descriptor of it (`fcntl(2)`, advisory record
//! locking). SQLite keeps such locks for as long as a database is open. Without them another process that closes the
//! database removes the log, and what this process writes from then on is in a deleted file.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{PoisonError, RwLock},
};

#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags};

/// The file system and the number of each reserved file, once for each reservation.
static RESERVED: RwLock<Vec<(u64, u64)>> = RwLock::new(Vec::new());

/// Keeps a file from being opened by the functions of this crate, under any name, until it is dropped.
#[derive(Debug)]
pub struct FileReservation {
    identity: (u64, u64),
    /// Keeps the number of the file from becoming another's when the library has closed and removed it.
    #[cfg(target_os = "linux")]
    _path: fs::File,
}

impl FileReservation {
    /// Reserves an existing file.
    #[cfg(target_os = "linux")]
    pub fn of_file(path: &Path) -> io::Result<Self> {
        // The close of a descriptor with `O_PATH` ends no locks.
        let path = fs::File::from(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
        Ok(Self { identity: Self::reserve(&path.metadata()?), _path: path })
    }

    /// Reserves an existing file.
    #[cfg(not(target_os = "linux"))]
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Ok(Self { identity: Self::reserve(&fs::metadata(path)?) })
    }

    fn reserve(metadata: &Metadata) -> (u64, u64) {
        let identity = (metadata.dev(), metadata.ino());
        RESERVED.write().unwrap_or_else(PoisonError::into_inner).push(identity);
        identity
    }
}

impl Drop for FileReservation {
    fn drop(&mut self) {
        let mut reserved = RESERVED.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = reserved.iter().position(|identity| *identity == self.identity) {
            reserved.swap_remove(index);
        }
    }
}

/// Checks that a file that is about to be opened is not reserved.
pub(crate) fn check_unreserved(metadata: &Metadata) -> io::Result<()> {
    check_identity(|| Some((metadata.dev(), metadata.ino())))
}

/// Checks a file that has to be looked up only if there are reservations. One that is not found is not reserved.
pub(super) fn check_identity(look_up: impl FnOnce() -> Option<(u64, u64)>) -> io::Result<()> {
    let reserved = RESERVED.read().unwrap_or_else(PoisonError::into_inner);
    let is_reserved = !reserved.is_empty() && look_up().is_some_and(|identity| reserved.contains(&identity));
    match is_reserved {
        true => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "Crow has it open itself, and a second opening would break its locks",
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
