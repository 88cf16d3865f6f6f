//! Files that only one library of a process may open, on other systems. On Windows a lock belongs to a handle and not to
//! the process, so any handle may be closed.

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
};

/// Does nothing: locks are not lost when other handles of the file are closed.
#[derive(Debug)]
pub struct FileReservation;

impl FileReservation {
    /// Checks that the file exists.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|_| Self)
    }
}

/// Does nothing, as no file is reserved.
pub(crate) fn check_unreserved(_metadata: &Metadata) -> io::Result<()> {
    Ok(())
}
