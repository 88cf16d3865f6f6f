//! Where a database is.

use std::{fmt, path::PathBuf};

use crate::{StoreError, database::Database, postgres::PostgresAddress, sqlite::SqliteBackend};

/// Where a database is. Shown without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseAddress {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Server {
        /// Where it is.
        server: PostgresAddress,
        /// The folder for what only this machine needs to know.
        local: PathBuf,
    },
}

impl DatabaseAddress {
    /// Spells the address as the configuration does, without a password.
    pub fn to_uri(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:///{}", path.display()),
            Self::Server { server, .. } => server.to_string(),
        }
    }

    /// The address with links resolved: what stands beside a database is found by all who use it.
    pub(crate) fn resolve_links(&self) -> Self {
        let Self::File(path) = self else { return self.clone() };
        let resolved = path.canonicalize().or_else(|error| {
            let (folder, name) = path.parent().zip(path.file_name()).ok_or(error)?;
            Ok::<_, std::io::Error>(folder.canonicalize()?.join(name))
        });
        Self::File(resolved.unwrap_or_else(|_| path.clone()))
    }

    pub(crate) fn open(&self) -> Result<Database, StoreError> {
        Ok(match self {
            Self::File(path) => Database::new(SqliteBackend::open(path)?),
            Self::Server { server, .. } => Database::new(server.connect()?),
        })
    }

    /// Where the drafts of replies are.
    pub(crate) fn drafts_folder(&self) -> PathBuf {
        match self {
            Self::File(path) => {
                let mut folder = path.as_os_str().to_owned();
                folder.push("-drafts");
                folder.into()
            }
            Self::Server { local, .. } => local.join("drafts"),
        }
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server { server, .. } => write!(f, "{server}"),
        }
    }
}
