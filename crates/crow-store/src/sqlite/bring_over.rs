//! Makes a database of the Python version into one of ours: in its place, in one transaction, behind a copy.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{SqliteTransaction, display_path, from_io, from_sqlite, open, python};
use crate::{StoreError, database::import_session, sql::SqlError};

/// Copies of one place that were never cleared away; nobody has more.
const COPIES_MAX: u32 = 100;

/// Brings everything over that has a place here. What was there stays beside it, as `NAME.python`.
pub(super) fn import_python_database(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let in_path = |error: rusqlite::Error| from_sqlite(path, &error);
    // Dropping a table would look for what belongs to each of its rows.
    connection.pragma_update(None, "foreign_keys", false).map_err(in_path)?;
    // From here on nobody writes, so the copy has everything.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_path)?;
    if open::is_crow_database(&transaction).map_err(in_path)? {
        // Another process was quicker.
        return Ok(());
    }
    let copy = copy_beside(path)?;
    let source = Connection::open(&copy).map_err(|error| from_sqlite(&copy, &error))?;
    drop_tables(&transaction).map_err(in_path)?;
    // Whatever number stood there was none of ours.
    transaction.pragma_update(None, "user_version", 0).map_err(in_path)?;
    open::make_tables(&transaction).map_err(in_path)?;
    let mut statements = SqliteTransaction { transaction: &transaction, path };
    let images = path.parent().map(|folder| folder.join("images")).unwrap_or_default();
    let mut n_brought = 0_u64;
    let read = python::read_sessions(&source, &images, |old| {
        n_brought += 1;
        import_session(&mut statements, &old).map_err(ImportError::ByUs)
    });
    let lost = read.map_err(|stopped| match stopped {
        ImportError::ByUs(fault) => StoreError::from(fault),
        ImportError::BySource(error) => from_sqlite(&copy, &error),
    })?;
    transaction.commit().map_err(in_path)?;
    tracing::warn!(n_brought, %lost, copy = %copy.display(), "sessions of the Python version came over");
    Ok(())
}

/// What ended the reading.
enum ImportError {
    ByUs(SqlError),
    BySource(rusqlite::Error),
}

impl From<rusqlite::Error> for ImportError {
    fn from(error: rusqlite::Error) -> Self {
        Self::BySource(error)
    }
}

/// Copies the database beside itself, flushed to the disk.
fn copy_beside(path: &Path) -> Result<PathBuf, StoreError> {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(".python");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = (1..=COPIES_MAX).map(named).find(|copy| !copy.exists());
    let Some(copy) = free else {
        let why = "too many copies of it stand beside it".to_owned();
        return Err(StoreError::CannotOpen { database: display_path(path), why });
    };
    let done = python::copy_locked(path, &copy).and_then(|()| {
        fs::File::open(&copy).and_then(|file| file.sync_all()).map_err(|error| from_io(&copy, &error))
    });
    if done.is_err() {
        // What is not whole is of no use; the error says more than the failure to remove it.
        let _ = fs::remove_file(&copy);
    }
    done.map(|()| copy)
}

/// Drops all that is there; a virtual table takes its own helpers along, so those go first.
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
