//! What can go wrong with a database, told apart by what a person has to do about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use crow_core::SessionId;
use rusqlite::ErrorCode;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file holds something else.
    #[error("{path} is not a database; move it away or name another file")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by the Python version.
    #[error("{path} was written by the Python version of crow and was left untouched; name another file")]
    OldDatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is another program's database.
    #[error("{path} is the database of another program and was left untouched; name another file")]
    OtherProgram {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a later version.
    #[error("{path} has format {found} and this version of crow knows up to {known}; install a newer crow")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// The file is damaged.
    #[error("the database {path} is damaged; restore a backup, or move it away to start with an empty one")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder may not be written.
    #[error("the database {path} is read-only; make the file and its folder writable")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept the file locked for too long.
    #[error("the database {path} is locked by another process; wait for it or end it, then try again")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// There is no room left; what was stored before stands.
    #[error("there is no room left for the database {path}; free some disk space and try again")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The disk, or a limit of the system, refused a read or a write; what was stored before stands.
    #[error("the database {path} could not be read or written ({why}); check the disk and its free space")]
    Disk {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The file could not be opened or made.
    #[error("the database {path} cannot be opened ({why}); check the path and its permissions")]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Someone else wrote this place of the session first; load it again.
    #[error("session {session} was continued elsewhere at message {seq}; load it again")]
    OtherWriter {
        /// The session.
        session: SessionId,
        /// The place both wanted.
        seq: u64,
    },
    /// No such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A message cannot be read back, or is missing.
    #[error("message {seq} of session {session} cannot be read: {why}")]
    BadRow {
        /// The session.
        session: SessionId,
        /// The message's place.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A new session got a name that another has.
    #[error("there is a session {0} already; open a new one")]
    NameTaken(SessionId),
    /// The store was closed.
    #[error("the database is closed")]
    Closed,
    /// Anything else SQLite says.
    #[error("the database {path} failed: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts what SQLite said of a file.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::SystemIoFailure) => Self::Disk { path, why: source.to_string() },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::CannotOpen { path, why: source.to_string() }
            }
            _ => Self::Sqlite { path, source },
        }
    }

    /// Sorts what the system said of a file.
    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_path_buf();
        let kind = error.kind();
        if kind == io::ErrorKind::ReadOnlyFilesystem {
            Self::ReadOnly { path }
        } else if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            Self::Full { path }
        } else {
            Self::CannotOpen { path, why: error.to_string() }
        }
    }
}
