//! SQLite: a file without a server. Only this module, with its directory, uses rusqlite.

mod lease_files;
mod open;
mod python;
mod python_import;
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
use self::{lease_files::LeaseFiles, syncer::WalSyncer};
use crate::{
    StoreError,
    search::quote_word,
    sql::{
        DatabaseBackend, LeaseKey, RowCallback, SqlDialect, SqlError, SqlRow, SqlTransaction, SqlValue,
        SyncCallback, TransactionBody, TransactionKind,
    },
};

/// The findings of a check that users read; a badly damaged file has thousands.
const FINDINGS_MAX: usize = 20;

/// The names of placeholders.
const PLACEHOLDERS: [&str; 13] =
    ["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13"];

static DIALECT: SqlDialect = SqlDialect {
    index_sql: "INSERT INTO message_search (rowid, text) VALUES ($1, $2)",
    // Ranking a word that is in every message takes too long, so only the newest are ranked.
    search_sql: "SELECT m.seq, m.data, m.input_tokens, m.output_tokens, m.session_id, m.created
             FROM (SELECT s.rowid AS id, s.rank AS weight
                   FROM message_search s JOIN messages m ON m.id = s.rowid
                   WHERE s.message_search MATCH $1 AND ($2 IS NULL OR m.session_id = $2)
                   ORDER BY s.rowid DESC LIMIT 5000) found
             JOIN messages m ON m.id = found.id
             ORDER BY found.weight LIMIT $3 OFFSET $4",
    // The index only marks words as deleted; merging drops them.
    tidy_index_sql: Some("INSERT INTO message_search (message_search) VALUES ('optimize')"),
    index_text: |text| Cow::Borrowed(text),
    search_expression: |words| words.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" "),
};

/// An open file.
pub(crate) struct SqliteBackend {
    connection: Connection,
    path: PathBuf,
    leases: LeaseFiles,
    syncer: WalSyncer,
}

impl SqliteBackend {
    /// Opens the file, or creates it with its directory.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::open_connection(path)?;
        let syncer = WalSyncer::start(path).map_err(|error| from_io(path, &error))?;
        Ok(Self { connection, path: path.to_path_buf(), leases: LeaseFiles::new(path), syncer })
    }

    /// Sets limits that a machine would have.
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
        // whatever the timeout; so it takes the lock at its start.
        let behavior = match kind {
            TransactionKind::Read => TransactionBehavior::Deferred,
            TransactionKind::Write => TransactionBehavior::Immediate,
        };
        let path = &self.path;
        let map_error = |error: rusqlite::Error| from_sqlite(path, &error);
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(map_error)?;
        work(&mut SqliteTransaction { transaction: &transaction, path })?;
        transaction.commit().map_err(map_error)
    }

    fn acquire_lease(&mut self, key: &LeaseKey) -> Result<(), StoreError> {
        self.leases.acquire(key)
    }

    fn release_lease(&mut self, key: &LeaseKey) {
        self.leases.release(key);
    }

    fn sync(&mut self, on_synced: SyncCallback) {
        self.syncer.sync(on_synced);
    }

    fn purge_deleted(&mut self) -> Result<(), StoreError> {
        // Erased data is in the log until that is truncated; a reader elsewhere only delays it.
        self.truncate_wal()
    }

    fn reclaim_space(&mut self) -> Result<(), StoreError> {
        self.map_error(self.connection.execute_batch("VACUUM"))?;
        self.truncate_wal()
    }

    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError> {
        let query_findings = |sql: &str, say: fn(&Row<'_>) -> rusqlite::Result<String>| {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([], say)?.take(FINDINGS_MAX).collect::<Result<Vec<_>, _>>()
        };
        let mut findings = self.map_error(query_findings("PRAGMA quick_check", |row| row.get(0)))?;
        findings.retain(|line| line != "ok");
        findings.extend(self.map_error(query_findings("PRAGMA foreign_key_check", |row| {
            Ok(format!("a row of {} has no parent", row.get::<_, String>(0)?))
        }))?);
        Ok(findings)
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
        for (value, name) in values.iter().zip(PLACEHOLDERS) {
            if let Some(index) = statement.parameter_index(name)? {
                statement.raw_bind_parameter(index, value)?;
            }
        }
        Ok(statement)
    }
}

impl SqlTransaction for SqliteTransaction<'_> {
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError> {
        let result = self.prepare_statement(sql, values).and_then(|mut statement| statement.raw_execute());
        result.map(|n_rows| n_rows as u64).map_err(|error| self.to_sql_error(&error))
    }

    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        on_row: RowCallback<'_>,
    ) -> Result<(), SqlError> {
        let mut statement = self.prepare_statement(sql, values).map_err(|error| self.to_sql_error(&error))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.to_sql_error(&error))? {
            on_row(&SqliteRow { row, path: self.path })?;
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
        index: usize,
        read: impl FnOnce(ValueRef<'r>) -> rusqlite::types::FromSqlResult<T>,
    ) -> Result<T, SqlError> {
        let to_error = |reason: String| StoreError::Failed { database: display_path(self.path), reason };
        let value = self.row.get_ref(index).map_err(|error| to_error(error.to_string()))?;
        Ok(read(value).map_err(|error| to_error(error.to_string()))?)
    }
}

impl SqlRow for SqliteRow<'_> {
    fn get_int(&self, index: usize) -> Result<Option<i64>, SqlError> {
        self.read_value(index, |value| value.as_i64_or_null())
    }

    fn get_text(&self, index: usize) -> Result<Option<&str>, SqlError> {
        self.read_value(index, |value| value.as_str_or_null())
    }

    fn get_bytes(&self, index: usize) -> Result<Option<&[u8]>, SqlError> {
        self.read_value(index, |value| value.as_blob_or_null())
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

/// Classifies an error of SQLite.
fn from_sqlite(path: &Path, source: &rusqlite::Error) -> StoreError {
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
fn from_io(path: &Path, error: &io::Error) -> StoreError {
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
