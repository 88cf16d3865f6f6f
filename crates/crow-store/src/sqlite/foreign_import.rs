//! Converts a database of another program to ours: in place, in one transaction, after a copy was made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    errors::{display_path, from_io, from_sqlite},
    foreign_copy::copy_locked,
    foreign_format::{ForeignDatabase, ForeignFormat, ImportError},
    schema,
    statements::SqliteTransaction,
};
use crate::{StoreError, database::import_session};

/// Copies that were never removed; there are no more.
const COPIES_MAX: u32 = 100;

/// Imports everything that has a place here. The original is kept next to it, as `NAME.SUFFIX`.
pub(super) fn import_foreign_database(
    format: &ForeignFormat,
    connection: &mut Connection,
    path: &Path,
) -> Result<(), StoreError> {
    let in_path = |error: rusqlite::Error| from_sqlite(path, &error);
    // Dropping a table would check the foreign keys of each of its rows.
    connection.pragma_update(None, "foreign_keys", false).map_err(in_path)?;
    // From here on no other process writes, so the copy has everything.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_path)?;
    if schema::is_crow_database(&transaction).map_err(in_path)? {
        // Another process was first.
        return Ok(());
    }
    let copy = copy_beside(format, path)?;
    let source = Connection::open(&copy).map_err(|error| from_sqlite(&copy, &error))?;
    drop_tables(&transaction).map_err(in_path)?;
    // Any number there was not ours.
    transaction.pragma_update(None, "user_version", 0).map_err(in_path)?;
    schema::make_tables(&transaction).map_err(in_path)?;
    let mut statements = SqliteTransaction { connection: &transaction, path };
    let database =
        ForeignDatabase { connection: &source, directory: path.parent().unwrap_or_else(|| Path::new("")) };
    let mut n_imported = 0_u64;
    let read = (format.read_sessions)(database, &mut |session| {
        n_imported += 1;
        Ok(import_session(&mut statements, &session)?)
    });
    let losses = read.map_err(|error| match error {
        ImportError::Write(error) => error,
        ImportError::Read(error) => from_sqlite(&copy, &error),
    })?;
    transaction.commit().map_err(in_path)?;
    tracing::warn!(n_imported, %losses, copy = %copy.display(), "imported the sessions of {}", format.program);
    Ok(())
}

/// Copies the database to a file next to it, flushed to the disk.
fn copy_beside(format: &ForeignFormat, path: &Path) -> Result<PathBuf, StoreError> {
    let copy_path = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(format.copy_suffix);
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free_path = (1..=COPIES_MAX).map(copy_path).find(|copy| !copy.exists());
    let Some(copy) = free_path else {
        let reason = "there are too many copies of it next to it".to_owned();
        return Err(StoreError::CannotOpen { database: display_path(path), reason });
    };
    let result = copy_locked(format, path, &copy).and_then(|()| {
        fs::File::open(&copy).and_then(|file| file.sync_all()).map_err(|error| from_io(&copy, &error))
    });
    if result.is_err() {
        // An incomplete copy is useless; the error says more than a failure to remove it.
        let _ = fs::remove_file(&copy);
    }
    result.map(|()| copy)
}

/// Drops all tables; a virtual table drops its own helper tables, so those go first.
fn drop_tables(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for kind in ["sql LIKE 'CREATE VIRTUAL TABLE%'", "type = 'view'", "type = 'table'"] {
        let sql = format!(
            "SELECT type, name FROM sqlite_schema
             WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND {kind}"
        );
        let mut statement = transaction.prepare(&sql)?;
        let found =
            statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for (kind, name) in found.collect::<Result<Vec<_>, _>>()? {
            transaction.execute_batch(&format!("DROP {kind} \"{}\"", name.replace('"', "\"\"")))?;
        }
    }
    Ok(())
}
