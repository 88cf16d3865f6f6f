//! Opening a file: its owner, its permissions, its format.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::{display_path, from_io, from_sqlite, python, python_import::import_python_database};
use crate::{StoreError, private_files};

/// `CROW`, in the header of every database of ours.
const APPLICATION_ID: i64 = 0x4352_4f57;
/// Each migrates a database from the previous format to its own index in this list.
const MIGRATIONS: [&str; 7] = [
    include_str!("../../migrations/sqlite/0001_sessions.sql"),
    include_str!("../../migrations/sqlite/0002_thought_level.sql"),
    include_str!("../../migrations/sqlite/0003_lasting.sql"),
    include_str!("../../migrations/sqlite/0004_tasks.sql"),
    include_str!("../../migrations/sqlite/0005_speckit.sql"),
    include_str!("../../migrations/sqlite/0006_asides.sql"),
    include_str!("../../migrations/sqlite/0007_templates.sql"),
];
/// The longest transaction of another process deletes a session.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Each time but the last, another process switched first; then there is nothing left to switch.
const SWITCHES_MAX: usize = 8;
/// Room for every statement of the store, so that each is compiled once.
const STATEMENTS_MAX: usize = 64;

/// Opens or creates the database at a path, in the format of this version.
pub(super) fn open_connection(path: &Path) -> Result<Connection, StoreError> {
    let is_new = ensure_file_exists(path)?;
    if !is_new {
        reject_foreign_file(path)?;
    }
    let in_path = |error| from_sqlite(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(in_path)?;
    if connection.is_readonly("main").map_err(in_path)? {
        return Err(StoreError::ReadOnly { database: display_path(path) });
    }
    connection.busy_timeout(BUSY_TIMEOUT).map_err(in_path)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    match detect_owner(&connection).map_err(in_path)? {
        FileOwner::Crow => {}
        FileOwner::Python => import_python_database(&mut connection, path)?,
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
    private_files::restrict_permissions(path).map_err(|error| from_io(path, &error))?;
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
                private_files::make_folder(directory).map_err(in_path)?;
            }
            match private_files::make_file(path) {
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
fn reject_foreign_file(path: &Path) -> Result<(), StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let owner = Connection::open_with_flags(immutable_uri(path), flags)
        .and_then(|connection| detect_owner(&connection));
    match owner {
        Ok(FileOwner::Crow | FileOwner::Python) => Ok(()),
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

/// The program that a database belongs to.
#[derive(PartialEq, Eq)]
enum FileOwner {
    Crow,
    Python,
    Other,
}

fn detect_owner(connection: &Connection) -> rusqlite::Result<FileOwner> {
    // In this order: another process may be creating the file, and its pages are written with its application ID.
    if read_pragma(connection, "page_count")? == 0
        || read_pragma(connection, "application_id")? == APPLICATION_ID
    {
        return Ok(FileOwner::Crow);
    }
    Ok(if python::is_python(connection)? { FileOwner::Python } else { FileOwner::Other })
}

/// Whether a database is ours, even if it is still empty.
pub(super) fn is_crow_database(connection: &Connection) -> rusqlite::Result<bool> {
    detect_owner(connection).map(|owner| owner == FileOwner::Crow)
}

/// Creates the tables of the newest format, from those of an older format or from nothing.
pub(super) fn make_tables(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let format = usize::try_from(schema_version(transaction)?).unwrap_or_default();
    for script in MIGRATIONS.iter().skip(format) {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)
}

/// The URI of a file that never changes.
pub(crate) fn immutable_uri(path: &Path) -> PathBuf {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// The number of migrations that were applied.
fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    read_pragma(connection, "user_version")
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
    private_files::make_file(&backup).map_err(in_backup)?;
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
