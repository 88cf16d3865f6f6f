//! Databases of other programs: how to recognise one, and how to read its sessions. Knows none of those programs.

use std::path::Path;

use rusqlite::Connection;

use crate::{ImportLosses, ImportedSession, StoreError};

/// A format of another program, whose sessions are imported when such a database is opened.
#[derive(Debug)]
pub struct ForeignFormat {
    /// The program, for the log.
    pub program: &'static str,
    /// The suffix of the copy that is kept.
    pub copy_suffix: &'static str,
    /// Whether the program wrote a database.
    pub recognizes: fn(&Connection) -> rusqlite::Result<bool>,
    /// Reads the sessions one at a time, parents before children; returns what could not be read.
    pub read_sessions: fn(ForeignDatabase<'_>, ImportedSessionSink<'_>) -> Result<ImportLosses, ImportError>,
}

/// An open database of another program.
#[derive(Debug, Clone, Copy)]
pub struct ForeignDatabase<'a> {
    pub connection: &'a Connection,
    /// The directory that it was found in, with the files that it refers to.
    pub directory: &'a Path,
}

/// Stores each session that is read.
pub type ImportedSessionSink<'a> = &'a mut dyn FnMut(ImportedSession) -> Result<(), StoreError>;

/// The error that ended an import.
#[derive(Debug)]
pub enum ImportError {
    /// The database of the other program cannot be read.
    Read(rusqlite::Error),
    /// A session cannot be stored.
    Write(StoreError),
}

impl From<rusqlite::Error> for ImportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error)
    }
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        Self::Write(error)
    }
}
