//! What every database can do for us: transactions, statements, and rights that one at a time has. Each
//! statement is written once, in the words that both understand; what differs is a [`Dialect`].
//! Knows neither SQLite nor PostgreSQL.

use crow_core::SessionId;

use crate::{Holder, StoreError, hashing};

/// A value given to a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<u64> for Value<'_> {
    fn from(int: u64) -> Self {
        // Counts and places; the databases know signed numbers only.
        Self::Int(int.cast_signed())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a SessionId> for Value<'a> {
    fn from(id: &'a SessionId) -> Self {
        Self::Text(id.as_str())
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Gathers the values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// One row of an answer, by the places of its columns.
pub(crate) trait Columns {
    fn int(&self, place: usize) -> Result<Option<i64>, Fault>;
    fn text(&self, place: usize) -> Result<Option<&str>, Fault>;
    fn bytes(&self, place: usize) -> Result<Option<&[u8]>, Fault>;
}

impl dyn Columns + '_ {
    /// Reads a number that is always there.
    pub(crate) fn number(&self, place: usize) -> Result<i64, Fault> {
        Ok(self.int(place)?.unwrap_or_default())
    }

    /// Reads a count or a place, which is always there.
    pub(crate) fn count(&self, place: usize) -> Result<u64, Fault> {
        Ok(self.number(place)?.cast_unsigned())
    }

    /// Reads a text that is always there.
    pub(crate) fn string(&self, place: usize) -> Result<String, Fault> {
        Ok(self.text(place)?.unwrap_or_default().to_owned())
    }

    /// Reads a text that may be missing.
    pub(crate) fn maybe_string(&self, place: usize) -> Result<Option<String>, Fault> {
        Ok(self.text(place)?.map(str::to_owned))
    }
}

/// What looks at each row of an answer.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&dyn Columns) -> Result<(), Fault>;

/// Statements within one transaction. Placeholders are `$1`, `$2` ….
pub(crate) trait Sql {
    /// Changes something; tells how many rows.
    fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Fault>;
    /// Asks something.
    fn query(&mut self, sql: &'static str, values: &[Value<'_>], each: Each<'_>) -> Result<(), Fault>;
    /// The statements that the databases spell in their own ways.
    fn dialect(&self) -> &'static Dialect;
}

impl dyn Sql + '_ {
    /// Asks for one row at most.
    pub(crate) fn one<T>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Columns) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let mut found = None;
        self.query(sql, values, &mut |columns| {
            found = Some(read(columns)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Asks for all rows.
    pub(crate) fn all<T>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Columns) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut found = Vec::new();
        self.query(sql, values, &mut |columns| {
            found.push(read(columns)?);
            Ok(())
        })?;
        Ok(found)
    }
}

/// What each database spells in its own way.
pub(crate) struct Dialect {
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
pub(crate) enum Right {
    /// To write in a session.
    Write(SessionId),
    /// To drive a task.
    Attend(SessionId),
}

impl Right {
    pub(crate) fn session(&self) -> &SessionId {
        match self {
            Self::Write(session) | Self::Attend(session) => session,
        }
    }

    /// The number that stands for it; two sessions share one as rarely as two hashes are the same.
    pub(crate) fn key(&self) -> i64 {
        match self {
            Self::Write(session) => hashing::short(session.as_str()),
            Self::Attend(task) => !hashing::short(task.as_str()),
        }
    }

    /// Says that another has it.
    pub(crate) fn busy(&self, holder: Holder) -> StoreError {
        StoreError::Busy { session: self.session().clone(), holder }
    }
}

/// Whether a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Reads,
    Writes,
}

/// An open database.
pub(crate) trait Backend: Send {
    /// Runs one transaction; what the work refuses is undone.
    fn transact(&mut self, kind: Kind, work: Work<'_>) -> Result<(), StoreError>;

    /// Takes a right; only the end of this process or [`Backend::release`] ends it.
    fn claim(&mut self, right: &Right) -> Result<(), StoreError>;

    /// Gives a right back.
    fn release(&mut self, right: &Right);

    /// Makes everything up to here survive a loss of power, as soon as the disk can; `done` is told when it does.
    fn sync(&mut self, done: Synced);

    /// Clears away on the disk what a deletion left there.
    fn erase(&mut self) -> Result<(), StoreError>;

    /// Gives room that is not needed back to the disk.
    fn shrink(&mut self) -> Result<(), StoreError>;

    /// Looks for damage; each finding is a sentence.
    fn check(&mut self) -> Result<Vec<String>, StoreError>;

    /// Tells whether it is of no use any more and has to be opened again.
    fn is_lost(&mut self) -> bool;

    /// Closes it.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// The statements of one transaction.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut dyn Sql) -> Result<(), Fault>;

/// Hears that the disk has everything; nobody may be there to hear it.
pub(crate) type Synced = Option<Box<dyn FnOnce(Result<(), StoreError>) + Send>>;

/// What ended a transaction.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A rule of the schema refused a row.
    Constraint(StoreError),
    /// Anything else.
    Other(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Constraint(error) | Fault::Other(error) => error,
        }
    }
}
