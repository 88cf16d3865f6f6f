//! Where a database is.

use std::{fmt, path::PathBuf};

use crate::{StoreError, database::Database, postgres::ServerAddress, sqlite::Sqlite};

/// Where a database is. Shown without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Server(ServerAddress),
}

impl Address {
    pub(crate) fn open(&self) -> Result<Database, StoreError> {
        Ok(match self {
            Self::File(path) => Database::new(Sqlite::open(path)?),
            Self::Server(server) => Database::new(server.open()?),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(server) => write!(f, "{server}"),
        }
    }
}
