//! What every database can do for us: transactions, statements, and rights that one at a time has. Each
//! statement is written once, in the words that both understand; what differs is a [`SqlDialect`].
//! Knows neither SQLite nor PostgreSQL.

use crow_core::SessionId;

use crate::{LeaseHolder, StoreError, hashing};

/// A value given to a statement.
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
        // Counts and places; the databases know signed numbers only.
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

/// Gathers the values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::SqlValue::from($value)),*] };
}
pub(crate) use values;

/// One row of an answer, by the places of its columns.
pub(crate) trait SqlRow {
    fn get_int(&self, place: usize) -> Result<Option<i64>, SqlError>;
    fn get_text(&self, place: usize) -> Result<Option<&str>, SqlError>;
    fn get_bytes(&self, place: usize) -> Result<Option<&[u8]>, SqlError>;
}

impl dyn SqlRow + '_ {
    /// Reads a number that is always there.
    pub(crate) fn read_int(&self, place: usize) -> Result<i64, SqlError> {
        Ok(self.get_int(place)?.unwrap_or_default())
    }

    /// Reads a count or a place, which is always there.
    pub(crate) fn read_count(&self, place: usize) -> Result<u64, SqlError> {
        Ok(self.read_int(place)?.cast_unsigned())
    }

    /// Reads a text that is always there.
    pub(crate) fn read_string(&self, place: usize) -> Result<String, SqlError> {
        Ok(self.get_text(place)?.unwrap_or_default().to_owned())
    }

    /// Reads a text that may be missing.
    pub(crate) fn read_optional_string(&self, place: usize) -> Result<Option<String>, SqlError> {
        Ok(self.get_text(place)?.map(str::to_owned))
    }
}

/// What looks at each row of an answer.
pub(crate) type RowCallback<'a> = &'a mut dyn FnMut(&dyn SqlRow) -> Result<(), SqlError>;

/// Statements within one transaction. Placeholders are `$1`, `$2` ….
pub(crate) trait SqlTransaction {
    /// Changes something; tells how many rows.
    fn execute(&mut self, sql: &'static str, values: &[SqlValue<'_>]) -> Result<u64, SqlError>;
    /// Asks something.
    fn query(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        each: RowCallback<'_>,
    ) -> Result<(), SqlError>;
    /// The statements that the databases spell in their own ways.
    fn dialect(&self) -> &'static SqlDialect;
}

impl dyn SqlTransaction + '_ {
    /// Asks for one row at most.
    pub(crate) fn query_one<T>(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        read: impl Fn(&dyn SqlRow) -> Result<T, SqlError>,
    ) -> Result<Option<T>, SqlError> {
        let mut found = None;
        self.query(sql, values, &mut |columns| {
            found = Some(read(columns)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Asks for all rows.
    pub(crate) fn query_all<T>(
        &mut self,
        sql: &'static str,
        values: &[SqlValue<'_>],
        read: impl Fn(&dyn SqlRow) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let mut found = Vec::new();
        self.query(sql, values, &mut |columns| {
            found.push(read(columns)?);
            Ok(())
        })?;
        Ok(found)
    }
}

/// What each database spells in its own way.
pub(crate) struct SqlDialect {
    /// Makes the message `$1` findable by the words of `$2`.
    pub(crate) index: &'static str,
    /// Finds messages by the expression `$1`, within the session `$2` or everywhere, at most `$3`, after `$4` others.
    pub(crate) search: &'static str,
    /// Drops what deleting left in the index.
    pub(crate) tidy_index: Option<&'static str>,
    /// Makes the text of a message into what is indexed.
    pub(crate) indexed: fn(&str) -> std::borrow::Cow<'_, str>,
    /// Makes words into an expression that all of them must match.
    pub(crate) expression: fn(&[&str]) -> String,
}

/// What one at a time has, among all processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LeaseKey {
    /// To write in a session.
    Write(SessionId),
    /// To drive a task.
    Attend(SessionId),
}

impl LeaseKey {
    pub(crate) fn session(&self) -> &SessionId {
        match self {
            Self::Write(session) | Self::Attend(session) => session,
        }
    }

    /// The number that stands for it; two sessions share one as rarely as two hashes are the same.
    pub(crate) fn lock_id(&self) -> i64 {
        match self {
            Self::Write(session) => hashing::short_hash(session.as_str()),
            Self::Attend(task) => !hashing::short_hash(task.as_str()),
        }
    }

    /// Says that another has it.
    pub(crate) fn busy_error(&self, holder: LeaseHolder) -> StoreError {
        StoreError::Busy { session: self.session().clone(), holder }
    }
}

/// Whether a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionKind {
    Reads,
    Writes,
}

/// An open database.
pub(crate) trait DatabaseBackend: Send {
    /// Runs one transaction; what the work refuses is undone.
    fn run_transaction(&mut self, kind: TransactionKind, work: TransactionBody<'_>)
    -> Result<(), StoreError>;

    /// Takes a right; only the end of this process or [`DatabaseBackend::release_lease`] ends it.
    fn acquire_lease(&mut self, right: &LeaseKey) -> Result<(), StoreError>;

    /// Gives a right back.
    fn release_lease(&mut self, right: &LeaseKey);

    /// Makes everything up to here survive a loss of power, as soon as the disk can; `done` is told when it does.
    fn sync(&mut self, done: SyncCallback);

    /// Clears away on the disk what a deletion left there.
    fn purge_deleted(&mut self) -> Result<(), StoreError>;

    /// Gives room that is not needed back to the disk.
    fn reclaim_space(&mut self) -> Result<(), StoreError>;

    /// Looks for damage; each finding is a sentence.
    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError>;

    /// Tells whether it is of no use any more and has to be opened again.
    fn is_lost(&mut self) -> bool;

    /// Closes it.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// The statements of one transaction.
pub(crate) type TransactionBody<'a> = &'a mut dyn FnMut(&mut dyn SqlTransaction) -> Result<(), SqlError>;

/// Hears that the disk has everything; nobody may be there to hear it.
pub(crate) type SyncCallback = Option<Box<dyn FnOnce(Result<(), StoreError>) + Send>>;

/// What ended a transaction.
#[derive(Debug)]
pub(crate) enum SqlError {
    /// A rule of the schema refused a row.
    Constraint(StoreError),
    /// Anything else.
    Other(StoreError),
}

impl From<StoreError> for SqlError {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

impl From<SqlError> for StoreError {
    fn from(fault: SqlError) -> Self {
        match fault {
            SqlError::Constraint(error) | SqlError::Other(error) => error,
        }
    }
}
