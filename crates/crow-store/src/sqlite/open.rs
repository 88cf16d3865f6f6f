//! Opening a file: whose it is, who may read it, which format it has.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::{bring_over::import_python_database, display_path, from_io, from_sqlite, python};
use crate::{StoreError, private};

/// `CROW`, in the header of every database of ours.
const APPLICATION_ID: i64 = 0x4352_4f57;
/// Each brings a database from the format before it to its own place in this list.
const MIGRATIONS: [&str; 7] = [
    include_str!("../../migrations/sqlite/0001_sessions.sql"),
    include_str!("../../migrations/sqlite/0002_thought_level.sql"),
    include_str!("../../migrations/sqlite/0003_lasting.sql"),
    include_str!("../../migrations/sqlite/0004_tasks.sql"),
    include_str!("../../migrations/sqlite/0005_speckit.sql"),
    include_str!("../../migrations/sqlite/0006_asides.sql"),
    include_str!("../../migrations/sqlite/0007_templates.sql"),
];
/// The longest thing another process does in one transaction is to erase a session.
const BUSY: Duration = Duration::from_secs(5);
/// Each time but the last, another process switched first; then there is nothing left to switch.
const SWITCHES_MAX: usize = 8;
/// Room for every statement of the store, so that each is compiled once.
const STATEMENTS_MAX: usize = 64;

/// Opens the database at a path, or makes it, in the format of this version.
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
    connection.busy_timeout(BUSY).map_err(in_path)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    match detect_owner(&connection).map_err(in_path)? {
        FileOwner::Us => {}
        FileOwner::Python => import_python_database(&mut connection, path)?,
        FileOwner::Others => return Err(StoreError::OtherProgram { database: display_path(path) }),
    }
    let found = schema_version(&connection).map_err(in_path)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::Newer { database: display_path(path), found, known });
    }
    if found < known {
        migrate_schema(&mut connection, path)?;
    }
    configure_connection(&connection).map_err(in_path)?;
    private::restrict_permissions(path).map_err(|error| from_io(path, &error))?;
    Ok(connection)
}

/// Makes the folder and an empty file where they are missing; tells whether the file is still empty.
fn ensure_file_exists(path: &Path) -> Result<bool, StoreError> {
    let in_path = |error: io::Error| from_io(path, &error);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(StoreError::CannotOpen { database: display_path(path), why: "it is a folder".into() })
        }
        Ok(found) => Ok(found.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                private::make_folder(folder).map_err(in_path)?;
            }
            match private::make_file(path) {
                // Another process made it a moment ago.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
                made => made.map(|()| true).map_err(in_path),
            }
        }
        Err(error) => Err(in_path(error)),
    }
}

/// Looks at a file that is not empty without leaving a trace on it.
///
/// SQLite may finish another program's journal or leave files beside it when it merely reads, unless it is
/// told that nothing can change.
fn reject_foreign_file(path: &Path) -> Result<(), StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let looked = Connection::open_with_flags(immutable_uri(path), flags)
        .and_then(|connection| detect_owner(&connection));
    match looked {
        Ok(FileOwner::Us | FileOwner::Python) => Ok(()),
        // What the log still has was not looked at; opening it properly does.
        Ok(FileOwner::Others) if has_wal(path) => Ok(()),
        Ok(FileOwner::Others) => Err(StoreError::OtherProgram { database: display_path(path) }),
        // Another process may be growing ours at this moment; opening it properly tells.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(()),
        Err(error) => Err(from_sqlite(path, &error)),
    }
}

fn has_wal(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0)
}

/// Whose a database is.
#[derive(PartialEq, Eq)]
enum FileOwner {
    Us,
    Python,
    Others,
}

fn detect_owner(connection: &Connection) -> rusqlite::Result<FileOwner> {
    // In this order: another process may be making the file, and its pages come with its mark.
    if read_pragma(connection, "page_count")? == 0
        || read_pragma(connection, "application_id")? == APPLICATION_ID
    {
        return Ok(FileOwner::Us);
    }
    Ok(if python::is_python(connection)? { FileOwner::Python } else { FileOwner::Others })
}

/// Tells whether a database is ours, even if there is nothing in it yet.
pub(super) fn is_crow_database(connection: &Connection) -> rusqlite::Result<bool> {
    detect_owner(connection).map(|owner| owner == FileOwner::Us)
}

/// Makes the tables of the newest format out of those of the format found, or of nothing.
pub(super) fn make_tables(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let found = usize::try_from(schema_version(transaction)?).unwrap_or_default();
    for script in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)
}

/// Spells a path as the address of a file that never changes.
pub(crate) fn immutable_uri(path: &Path) -> PathBuf {
    let mut address = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address.push_str("?immutable=1");
    address.into()
}

fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// The number of migrations a database has seen.
fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    read_pragma(connection, "user_version")
}

/// Brings a database to the newest format in one transaction, behind a copy of what it was.
fn migrate_schema(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let in_path = |error| from_sqlite(path, &error);
    // From here on nobody writes, so the copy has everything.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_path)?;
    // Asked again inside: another process may have done it meanwhile.
    let found = schema_version(&transaction).map_err(in_path)?;
    if (1..MIGRATIONS.len() as i64).contains(&found) {
        back_up(path, found)?;
    }
    make_tables(&transaction).map_err(in_path)?;
    transaction.commit().map_err(in_path)
}

/// Copies a database of an older format beside itself.
fn back_up(path: &Path, format: i64) -> Result<(), StoreError> {
    let mut backup = path.as_os_str().to_owned();
    backup.push(format!(".format-{format}"));
    let backup = PathBuf::from(backup);
    let in_backup = |error: io::Error| from_io(&backup, &error);
    // One that is there was not finished, or is of a database that was put back since.
    match fs::remove_file(&backup) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(in_backup(error)),
        Ok(()) | Err(_) => {}
    }
    private::make_file(&backup).map_err(in_backup)?;
    let reader = Connection::open(path).map_err(|error| from_sqlite(path, &error))?;
    // It writes into a file that is there and empty.
    let copied = reader.execute("VACUUM INTO ?1", [display_path(&backup)]);
    copied.map_err(|error| from_sqlite(&backup, &error))?;
    fs::File::open(&backup).and_then(|file| file.sync_all()).map_err(in_backup)
}

/// `NORMAL` leaves the flushing of a commit to the system, which outlives us: a killed process loses
/// nothing, a loss of power loses the last moments but damages nothing.
fn configure_connection(connection: &Connection) -> rusqlite::Result<()> {
    // The mark of the first migration must be in the file itself, so only now.
    switch_to_wal(connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Erased means overwritten.
    connection.pragma_update(None, "secure_delete", true)
}

/// Switching to the log does not wait for others who do the same, so it waits by taking a turn at writing.
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
