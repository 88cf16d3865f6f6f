//! The operations of every database: transactions, statements, and exclusive leases. Each statement is written once,
//! in the SQL that both understand; what differs is a [`SqlDialect`]. Knows neither SQLite nor PostgreSQL.

use crow_core::SessionId;

use crate::{LeaseHolder, StoreError, hashing};

/// A parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SqlValue<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl From<i64> for SqlValue<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<u64> for SqlValue<'_> {
    fn from(int: u64) -> Self {
        // Counts and sequence numbers; the databases have only signed integers.
        Self::Int(int.cast_signed())
    }
}

impl<'a> From<&'a str> for SqlValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for SqlValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for SqlValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a SessionId> for SqlValue<'a> {
    fn from(id: &'a SessionId) -> Self {
        Self::Text(id.as_str())
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for SqlValue<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Collects the parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::SqlValue::from($value)),*] };
}
pub(crate) use values;

/// One row of a result, by column index.
pub(crate) trait SqlRow {
    fn get_int(&self, index: usize) -> Result<Option<i64>, SqlError>;
    fn get_text(&self, index: usize) -> Result<Option<&str>, SqlError>;
    fn get_bytes(&self, index: usize) -> Result<Option<&[u8]>, SqlError>;
}

impl dyn SqlRow + '_ {
    /// Reads a number that is never null.
    pub(crate) fn read_int(&self, index: usize) -> Result<i64, SqlError> {
        Ok(self.get_int(index)?.unwrap_or_default())
    }

    /// Reads a count or a sequence number that is never null.
    pub(crate) fn read_count(&self, index: usize) -> Result<u64, SqlError> {
        Ok(self.read_int(index)?.cast_unsigned())
    }

    /// Reads a text that is never null.
    pub(crate) fn read_string(&self, index: usize) -> Result<String, SqlError> {
        Ok(self.get_text(index)?.unwrap_or_default().to_owned())
    }

    /// Reads a text that may be null.
    pub(crate) fn read_optional_string(&self, index: usize) -> Result<Option<String>, SqlError> {
        Ok(self.get_text(index)?.map(str::to_owned))
    }
}

/// Called for each row of a result.
pub(crate) type RowCallback<'a> = &'a mut dyn FnMut(&dyn SqlRow) -> Result<(), SqlError>;

/// Statements within one transaction. Placeholders are `$1`, `$2` ….
pub(crate) trait SqlTransaction {
    /// Executes a statement; returns the number of affected rows.
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError>;
    /// Runs a query.
    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        on_row: RowCallback<'_>,
    ) -> Result<(), SqlError>;
    /// The statements that differ between the databases.
    fn dialect(&self) -> &'static SqlDialect;
}

impl dyn SqlTransaction + '_ {
    /// Queries at most one row.
    pub(crate) fn query_one<T>(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        read: impl Fn(&dyn SqlRow) -> Result<T, SqlError>,
    ) -> Result<Option<T>, SqlError> {
        let mut row = None;
        self.query(sql, values, &mut |columns| {
            row = Some(read(columns)?);
            Ok(())
        })?;
        Ok(row)
    }

    /// Queries all rows.
    pub(crate) fn query_all<T>(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        read: impl Fn(&dyn SqlRow) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let mut rows = Vec::new();
        self.query(sql, values, &mut |columns| {
            rows.push(read(columns)?);
            Ok(())
        })?;
        Ok(rows)
    }
}

/// The parts that differ between the databases.
pub(crate) struct SqlDialect {
    /// Indexes the message `$1` by the words of `$2`.
    pub(crate) index_sql: &'static str,
    /// Returns `id, id, data` of at most `$2` messages from ID `$1` on that are not in the index.
    pub(crate) missing_sql: &'static str,
    /// Finds messages by the expression `$1`, within the session `$2` or everywhere, at most `$3`, after skipping
    /// `$4`.
    pub(crate) search_sql: &'static str,
    /// Drops deleted rows from the index.
    pub(crate) tidy_index_sql: Option<&'static str>,
    /// Converts the text of a message to the indexed form.
    pub(crate) index_text: fn(&str) -> std::borrow::Cow<'_, str>,
    /// Converts words to an expression that all of them must match.
    pub(crate) search_expression: fn(&[&str]) -> String,
}

/// An exclusive, cross-process lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LeaseKey {
    /// Permits writing in a session.
    Session(SessionId),
    /// Permits driving a task.
    Task(SessionId),
}

impl LeaseKey {
    pub(crate) fn session(&self) -> &SessionId {
        match self {
            Self::Session(session) | Self::Task(session) => session,
        }
    }

    /// The number that identifies the lease; two sessions share one only if their hashes are equal.
    pub(crate) fn lock_id(&self) -> i64 {
        match self {
            Self::Session(session) => hashing::short_hash(session.as_str()),
            Self::Task(task) => !hashing::short_hash(task.as_str()),
        }
    }

    /// The error if another process holds it.
    pub(crate) fn busy_error(&self, holder: LeaseHolder) -> StoreError {
        StoreError::Busy { session: self.session().clone(), holder }
    }
}

/// Whether a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionKind {
    Read,
    Write,
}

/// An open database.
pub(crate) trait DatabaseBackend: Send {
    /// Runs one transaction; an error rolls it back.
    fn run_transaction(&mut self, kind: TransactionKind, work: TransactionBody<'_>)
    -> Result<(), StoreError>;

    /// Acquires a lease; only the end of this process or [`DatabaseBackend::release_lease`] ends it.
    fn acquire_lease(&mut self, key: &LeaseKey) -> Result<(), StoreError>;

    /// Releases a lease.
    fn release_lease(&mut self, key: &LeaseKey);

    /// Makes everything so far survive a power failure, as soon as the disk can; then calls `done`.
    fn sync(&mut self, on_synced: SyncCallback);

    /// Erases from the disk what a deletion left.
    fn purge_deleted(&mut self) -> Result<(), StoreError>;

    /// Returns unused space to the disk, if there is much and no process has to wait for it.
    fn reclaim_space(&mut self) -> Result<(), StoreError>;

    /// Checks for damage; each finding is a sentence.
    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError>;

    /// Whether it has become unusable and must be opened again.
    fn is_lost(&mut self) -> bool;

    /// Drops it after it was lost, without waiting for an answer.
    fn abandon(self: Box<Self>);

    /// Closes it.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// The statements of one transaction.
pub(crate) type TransactionBody<'a> = &'a mut dyn FnMut(&mut dyn SqlTransaction) -> Result<(), SqlError>;

/// Called when the disk has everything; `None` if no caller waits.
pub(crate) type SyncCallback = Option<Box<dyn FnOnce(Result<(), StoreError>) + Send>>;

/// The error that ended a transaction.
#[derive(Debug)]
pub(crate) enum SqlError {
    /// A constraint of the schema rejected a row.
    Constraint(StoreError),
    /// Any other error.
    Other(StoreError),
}

impl From<StoreError> for SqlError {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

impl From<SqlError> for StoreError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Constraint(error) | SqlError::Other(error) => error,
        }
    }
}
