//! A transaction that begins and ends with prepared statements, like all others: parsing them takes longer than they do.

use rusqlite::Connection;

use crate::sql::TransactionKind;

/// A transaction that is rolled back unless it is committed.
pub(super) struct OpenTransaction<'a> {
    connection: &'a Connection,
}

impl<'a> OpenTransaction<'a> {
    pub(super) fn begin(connection: &'a Connection, kind: TransactionKind) -> rusqlite::Result<Self> {
        // A transaction that reads first and writes later fails at once when another process writes in between,
        // whatever the timeout; so it takes the lock at its start.
        let begin = match kind {
            TransactionKind::Read => "BEGIN DEFERRED",
            TransactionKind::Write => "BEGIN IMMEDIATE",
        };
        connection.prepare_cached(begin)?.execute([])?;
        Ok(Self { connection })
    }

    /// The connection, for the statements of the transaction.
    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    pub(super) fn commit(self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        // After a commit, and after some errors, there is nothing left to roll back.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction could not be rolled back");
        }
    }
}
