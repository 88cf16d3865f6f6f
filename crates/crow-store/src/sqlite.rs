//! SQLite: one file that needs nobody to run it. Only this module, with its folder, knows rusqlite.

mod bring_over;
mod claims;
mod open;
mod python;
mod salvage;
mod syncer;

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
};

use rusqlite::{
    Connection, ErrorCode, Row, ToSql, Transaction, TransactionBehavior,
    types::{ToSqlOutput, ValueRef},
};

pub(crate) use self::python::OldSession;
pub use self::python::copy_python_database;
pub use self::salvage::{SalvageReport, salvage_database};
use self::{claims::LeaseFiles, syncer::WalSyncer};
use crate::{
    StoreError,
    search::quote_word,
    sql::{
        DatabaseBackend, LeaseKey, RowCallback, SqlDialect, SqlError, SqlRow, SqlTransaction, SqlValue,
        SyncCallback, TransactionBody, TransactionKind,
    },
};

/// Findings of a check that a person reads; a file that is badly damaged has thousands.
const FINDINGS_MAX: usize = 20;

/// The names of placeholders.
const NAMES: [&str; 13] = ["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13"];

static DIALECT: SqlDialect = SqlDialect {
    index: "INSERT INTO message_search (rowid, text) VALUES ($1, $2)",
    // Weighing a word that stands in every message takes longer than a person waits, so the newest are weighed.
    search: "SELECT m.seq, m.data, m.input_tokens, m.output_tokens, m.session_id, m.created
             FROM (SELECT s.rowid AS id, s.rank AS weight
                   FROM message_search s JOIN messages m ON m.id = s.rowid
                   WHERE s.message_search MATCH $1 AND ($2 IS NULL OR m.session_id = $2)
                   ORDER BY s.rowid DESC LIMIT 5000) found
             JOIN messages m ON m.id = found.id
             ORDER BY found.weight LIMIT $3 OFFSET $4",
    // The index only marks words as gone; merging it drops them.
    tidy_index: Some("INSERT INTO message_search (message_search) VALUES ('optimize')"),
    indexed: |text| Cow::Borrowed(text),
    expression: |words| words.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" "),
};

/// An open file.
pub(crate) struct SqliteBackend {
    connection: Connection,
    path: PathBuf,
    claims: LeaseFiles,
    syncer: WalSyncer,
}

impl SqliteBackend {
    /// Opens the file, or makes it with its folder when there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::open_connection(path)?;
        let syncer = WalSyncer::start(path).map_err(|error| from_io(path, &error))?;
        Ok(Self { connection, path: path.to_path_buf(), claims: LeaseFiles::new(path), syncer })
    }

    /// Lets a test set limits that a machine would have.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn map_error<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| from_sqlite(&self.path, &error))
    }

    fn truncate_wal(&self) -> Result<(), StoreError> {
        self.map_error(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
    }
}

impl DatabaseBackend for SqliteBackend {
    fn run_transaction(
        &mut self,
        kind: TransactionKind,
        work: TransactionBody<'_>,
    ) -> Result<(), StoreError> {
        // A transaction that reads first and writes later fails at once when another process writes in between,
        // however patient we are; so it takes the lock at its start.
        let behavior = match kind {
            TransactionKind::Reads => TransactionBehavior::Deferred,
            TransactionKind::Writes => TransactionBehavior::Immediate,
        };
        let path = &self.path;
        let broken = |error: rusqlite::Error| from_sqlite(path, &error);
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(broken)?;
        work(&mut SqliteTransaction { transaction: &transaction, path })?;
        transaction.commit().map_err(broken)
    }

    fn acquire_lease(&mut self, right: &LeaseKey) -> Result<(), StoreError> {
        self.claims.acquire(right)
    }

    fn release_lease(&mut self, right: &LeaseKey) {
        self.claims.release(right);
    }

    fn sync(&mut self, done: SyncCallback) {
        self.syncer.sync(done);
    }

    fn purge_deleted(&mut self) -> Result<(), StoreError> {
        // What was erased stands in the log until that is emptied; a reader elsewhere only delays it.
        self.truncate_wal()
    }

    fn reclaim_space(&mut self) -> Result<(), StoreError> {
        self.map_error(self.connection.execute_batch("VACUUM"))?;
        self.truncate_wal()
    }

    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError> {
        let ask = |sql: &str, say: fn(&Row<'_>) -> rusqlite::Result<String>| {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([], say)?.take(FINDINGS_MAX).collect::<Result<Vec<_>, _>>()
        };
        let mut found = self.map_error(ask("PRAGMA quick_check", |row| row.get(0)))?;
        found.retain(|line| line != "ok");
        found.extend(self.map_error(ask("PRAGMA foreign_key_check", |row| {
            Ok(format!("a row of {} belongs to nothing", row.get::<_, String>(0)?))
        }))?);
        Ok(found)
    }

    fn is_lost(&mut self) -> bool {
        false
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let path = self.path;
        self.connection.close().map_err(|(_, error)| from_sqlite(&path, &error))
    }
}

struct SqliteTransaction<'a> {
    transaction: &'a Transaction<'a>,
    path: &'a Path,
}

impl SqliteTransaction<'_> {
    fn to_sql_error(&self, error: &rusqlite::Error) -> SqlError {
        let is_constraint = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
        let error = from_sqlite(self.path, error);
        if is_constraint { SqlError::Constraint(error) } else { SqlError::Other(error) }
    }

    fn prepare_statement(
        &self,
        sql: &str,
        values: &[SqlValue<'_>],
    ) -> rusqlite::Result<rusqlite::CachedStatement<'_>> {
        let mut statement = self.transaction.prepare_cached(sql)?;
        for (value, name) in values.iter().zip(NAMES) {
            if let Some(place) = statement.parameter_index(name)? {
                statement.raw_bind_parameter(place, value)?;
            }
        }
        Ok(statement)
    }
}

impl SqlTransaction for SqliteTransaction<'_> {
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError> {
        let done = self.prepare_statement(sql, values).and_then(|mut statement| statement.raw_execute());
        done.map(|n_rows| n_rows as u64).map_err(|error| self.to_sql_error(&error))
    }

    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        each: RowCallback<'_>,
    ) -> Result<(), SqlError> {
        let mut statement = self.prepare_statement(sql, values).map_err(|error| self.to_sql_error(&error))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.to_sql_error(&error))? {
            each(&SqliteRow { row, path: self.path })?;
        }
        Ok(())
    }

    fn dialect(&self) -> &'static SqlDialect {
        &DIALECT
    }
}

struct SqliteRow<'a> {
    row: &'a Row<'a>,
    path: &'a Path,
}

impl SqliteRow<'_> {
    fn read_value<'r, T>(
        &'r self,
        place: usize,
        read: impl FnOnce(ValueRef<'r>) -> rusqlite::types::FromSqlResult<T>,
    ) -> Result<T, SqlError> {
        let failed = |why: String| StoreError::Failed { database: display_path(self.path), why };
        let value = self.row.get_ref(place).map_err(|error| failed(error.to_string()))?;
        Ok(read(value).map_err(|error| failed(error.to_string()))?)
    }
}

impl SqlRow for SqliteRow<'_> {
    fn get_int(&self, place: usize) -> Result<Option<i64>, SqlError> {
        self.read_value(place, |value| value.as_i64_or_null())
    }

    fn get_text(&self, place: usize) -> Result<Option<&str>, SqlError> {
        self.read_value(place, |value| value.as_str_or_null())
    }

    fn get_bytes(&self, place: usize) -> Result<Option<&[u8]>, SqlError> {
        self.read_value(place, |value| value.as_blob_or_null())
    }
}

impl ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// Sorts what SQLite said of a file.
fn from_sqlite(path: &Path, source: &rusqlite::Error) -> StoreError {
    let (database, why) = (display_path(path), source.to_string());
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { database },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { database },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { database },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { database },
        Some(ErrorCode::DiskFull) => StoreError::Full { database },
        Some(ErrorCode::SystemIoFailure) => StoreError::Disk { database, why },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::CannotOpen { database, why },
        _ => StoreError::Failed { database, why },
    }
}

/// Sorts what the system said of a file.
fn from_io(path: &Path, error: &io::Error) -> StoreError {
    let database = display_path(path);
    let kind = error.kind();
    if kind == io::ErrorKind::ReadOnlyFilesystem {
        StoreError::ReadOnly { database }
    } else if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        StoreError::Full { database }
    } else {
        StoreError::CannotOpen { database, why: error.to_string() }
    }
}
