//! The entries of a directory, and the errors of reaching them, on every system.

use std::{
    ffi::OsString,
    fs::{File, Metadata},
    io,
};

/// One entry of a directory.
pub struct ListedEntry {
    pub name: OsString,
    pub kind: EntryKind,
}

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    File,
    /// A link, a device, a pipe or a socket.
    Other,
}

/// An entry that was opened for its metadata only.
pub(crate) struct InspectedEntry {
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

pub(crate) fn symlink_error() -> io::Error {
    io::Error::other("a link in its path is circular or was created just now")
}

pub(crate) fn unresolved_path_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the path is not resolved")
}
