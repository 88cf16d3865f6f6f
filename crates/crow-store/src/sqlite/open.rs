//! Opening a file: its owner, its permissions, its format.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::{
    errors::{display_path, from_io, from_sqlite},
    foreign_format::ForeignFormat,
    foreign_import::import_foreign_database,
    schema::{
        FileOwner, MIGRATIONS, SEARCH_INDEX_FORMAT, detect_owner, immutable_uri, make_tables, schema_version,
    },
    statements::SqliteTransaction,
};
use crate::{StoreError, database::index_missing_messages};

/// The longest transaction of another process deletes a session. Rewriting a large file takes longer, and is only begun
/// while no process works on a session.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Each time but the last, another process switched first; then there is nothing left to switch.
const SWITCHES_MAX: usize = 8;
/// Room for every statement of the store, so that each is compiled once.
pub(super) const STATEMENTS_MAX: usize = 64;

/// Options for opening a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SqliteOptions {
    /// A database in one of these formats is imported.
    pub(crate) foreign_formats: &'static [ForeignFormat],
    /// The time to wait for a file that another process has locked.
    pub(crate) lock_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { foreign_formats: &[], lock_timeout: LOCK_TIMEOUT }
    }
}

/// Opens or creates the database at a path, in the format of this version.
pub(super) fn open_connection(path: &Path, options: SqliteOptions) -> Result<Connection, StoreError> {
    let SqliteOptions { foreign_formats, lock_timeout } = options;
    let is_new = ensure_file_exists(path)?;
    if !is_new {
        reject_foreign_file(path, foreign_formats)?;
    }
    let in_path = |error| from_sqlite(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(in_path)?;
    if connection.is_readonly("main").map_err(in_path)? {
        return Err(StoreError::ReadOnly { database: display_path(path) });
    }
    connection.busy_timeout(lock_timeout).map_err(in_path)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    match detect_owner(&connection, foreign_formats).map_err(in_path)? {
        FileOwner::Crow => {}
        FileOwner::Known(format) => import_foreign_database(format, &mut connection, path)?,
        FileOwner::Other => return Err(StoreError::OtherProgram { database: display_path(path) }),
    }
    let format = schema_version(&connection).map_err(in_path)?;
    let known_format = MIGRATIONS.len() as i64;
    if format > known_format {
        return Err(StoreError::NewerFormat { database: display_path(path), format, known_format });
    }
    if format < known_format {
        migrate_schema(&mut connection, path)?;
    }
    configure_connection(&connection).map_err(in_path)?;
    crow_files::restrict_permissions(path).map_err(|error| from_io(path, &error))?;
    Ok(connection)
}

/// Creates the directory and an empty file if they are missing; returns whether the file is still empty.
fn ensure_file_exists(path: &Path) -> Result<bool, StoreError> {
    let in_path = |error: io::Error| from_io(path, &error);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            Err(StoreError::CannotOpen { database: display_path(path), reason: "it is a directory".into() })
        }
        Ok(metadata) => Ok(metadata.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(directory) = path.parent() {
                crow_files::create_private_dir(directory).map_err(in_path)?;
            }
            match crow_files::create_private_file(path) {
                // Another process created it a moment ago.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
                result => result.map(|()| true).map_err(in_path),
            }
        }
        Err(error) => Err(in_path(error)),
    }
}

/// Examines a file that is not empty without leaving a trace.
///
/// SQLite may finish another program's journal or leave files next to it when it merely reads, unless it is told that
/// nothing can change.
fn reject_foreign_file(path: &Path, foreign_formats: &[ForeignFormat]) -> Result<(), StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let owner = Connection::open_with_flags(immutable_uri(path), flags)
        .and_then(|connection| detect_owner(&connection, foreign_formats));
    match owner {
        Ok(FileOwner::Crow | FileOwner::Known(_)) => Ok(()),
        // The contents of the log were not examined; opening it properly does that.
        Ok(FileOwner::Other) if has_wal(path) => Ok(()),
        Ok(FileOwner::Other) => Err(StoreError::OtherProgram { database: display_path(path) }),
        // Another process may be growing our file at this moment; opening it properly shows.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(()),
        Err(error) => Err(from_sqlite(path, &error)),
    }
}

fn has_wal(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0)
}

/// Migrates a database to the newest format in one transaction, after a copy was made.
fn migrate_schema(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let in_path = |error| from_sqlite(path, &error);
    // From here on no other process writes, so the copy has everything.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_path)?;
    // Checked again inside: another process may have migrated it meanwhile.
    let format = schema_version(&transaction).map_err(in_path)?;
    if (1..MIGRATIONS.len() as i64).contains(&format) {
        back_up(path, format)?;
    }
    make_tables(&transaction).map_err(in_path)?;
    if (1..SEARCH_INDEX_FORMAT).contains(&format) {
        index_missing_messages(&mut SqliteTransaction { connection: &transaction, path })?;
    }
    transaction.commit().map_err(in_path)
}

/// Copies a database of an older format to a file next to it.
fn back_up(path: &Path, format: i64) -> Result<(), StoreError> {
    let mut backup = path.as_os_str().to_owned();
    backup.push(format!(".format-{format}"));
    let backup = PathBuf::from(backup);
    let in_backup = |error: io::Error| from_io(&backup, &error);
    // An existing copy is incomplete, or is of a database that was restored since.
    match fs::remove_file(&backup) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(in_backup(error)),
        Ok(()) | Err(_) => {}
    }
    crow_files::create_private_file(&backup).map_err(in_backup)?;
    let reader = Connection::open(path).map_err(|error| from_sqlite(path, &error))?;
    // It writes into an existing empty file.
    let copied = reader.execute("VACUUM INTO ?1", [display_path(&backup)]);
    copied.map_err(|error| from_sqlite(&backup, &error))?;
    fs::File::open(&backup).and_then(|file| file.sync_all()).map_err(in_backup)
}

/// `NORMAL` leaves flushing a commit to the system, which outlives the process: a killed process loses nothing, a
/// power failure loses the last moments but damages nothing.
fn configure_connection(connection: &Connection) -> rusqlite::Result<()> {
    // The application ID of the first migration must be in the file itself, so only now.
    switch_to_wal(connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // A statement is prepared once. Otherwise SQLite prepares it again whenever a value is bound on which its plan could
    // depend, which for each stored message takes as long as writing it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Deleted data is overwritten.
    connection.pragma_update(None, "secure_delete", true)
}

/// Switching to WAL does not wait for other processes that do the same, so it first acquires the write lock.
fn switch_to_wal(connection: &Connection) -> rusqlite::Result<()> {
    let switch = || connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    for _ in 0..SWITCHES_MAX {
        match switch() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
            }
            switched => return switched,
        }
    }
    switch()
}
