//! Errors of a server and its connection, by what the user has to do about them.

use std::{error::Error as _, fmt, io, time::Duration};

use tokio_postgres::{
    Error,
    error::{DbError, ErrorPosition, SqlState},
};

use crate::{StoreError, sql::SqlError};

/// An operation that failed.
#[derive(Debug)]
pub(super) enum PostgresError {
    /// An error of the server, or the end of the connection.
    Client(Error),
    /// There was no answer within a limit.
    NoAnswer(Duration),
    /// The system has no resources for a connection.
    Runtime(io::Error),
}

impl From<Error> for PostgresError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl PostgresError {
    /// Converts it to the error of a statement.
    pub(super) fn into_sql_error(self, database: &str) -> SqlError {
        let is_constraint = self.server_error().is_some_and(|error| error.code().code().starts_with("23"));
        let error = self.into_store_error(database);
        if is_constraint { SqlError::Constraint(error) } else { SqlError::Other(error) }
    }

    /// Converts it to an error without any stored content.
    pub(super) fn into_store_error(self, database: &str) -> StoreError {
        let database = database.to_owned();
        match self.server_error() {
            Some(error) => classify_server_error(database, error),
            None => StoreError::Unreachable { database, reason: self.to_string() },
        }
    }

    fn server_error(&self) -> Option<&DbError> {
        match self {
            Self::Client(error) => error.as_db_error(),
            Self::NoAnswer(_) | Self::Runtime(_) => None,
        }
    }
}

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => match (error.as_db_error(), error.source()) {
                (Some(error), _) => f.write_str(error.message()),
                (None, Some(source)) => fmt::Display::fmt(source, f),
                (None, None) => fmt::Display::fmt(error, f),
            },
            Self::NoAnswer(limit) => write!(f, "the server did not answer within {limit:?}"),
            Self::Runtime(error) => fmt::Display::fmt(error, f),
        }
    }
}

fn classify_server_error(database: String, error: &DbError) -> StoreError {
    let mut reason = error.message().to_owned();
    if let Some(ErrorPosition::Original(position)) = error.position() {
        reason.push_str(&format!(" at {position}"));
    }
    let code = error.code();
    if *code == SqlState::DISK_FULL {
        StoreError::Full { database }
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        StoreError::ReadOnly { database }
    } else if [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
        StoreError::Locked { database }
    } else if code.code().starts_with("28") || *code == SqlState::UNDEFINED_DATABASE {
        StoreError::AccessDenied { database, reason }
    } else if code.code().starts_with("08") || code.code().starts_with("57P") {
        StoreError::Unreachable { database, reason }
    } else if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED {
        StoreError::Damaged { database }
    } else {
        StoreError::Failed { database, reason }
    }
}
