//! Errors of SQLite and of the system as those of a database.

use std::{io, path::Path};

use rusqlite::ErrorCode;

use crate::StoreError;

/// Formats the path of a database for a message.
pub(super) fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// Classifies an error of SQLite.
pub(super) fn from_sqlite(path: &Path, source: &rusqlite::Error) -> StoreError {
    let (database, reason) = (display_path(path), source.to_string());
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { database },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { database },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { database },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { database },
        Some(ErrorCode::DiskFull) => StoreError::Full { database },
        Some(ErrorCode::SystemIoFailure) => StoreError::Disk { database, reason },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::CannotOpen { database, reason }
        }
        _ => StoreError::Failed { database, reason },
    }
}

/// Classifies an error of the system.
pub(super) fn from_io(path: &Path, error: &io::Error) -> StoreError {
    let database = display_path(path);
    let kind = error.kind();
    if kind == io::ErrorKind::ReadOnlyFilesystem {
        StoreError::ReadOnly { database }
    } else if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        StoreError::Full { database }
    } else {
        StoreError::CannotOpen { database, reason: error.to_string() }
    }
}
