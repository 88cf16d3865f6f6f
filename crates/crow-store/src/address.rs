//! Database addresses.

use std::{fmt, path::PathBuf};

use crate::{
    StoreError,
    database::Database,
    postgres::PostgresAddress,
    sqlite::{SqliteBackend, SqliteOptions},
};

/// The address of a database. Shown without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseAddress {
    File(PathBuf),
    Server {
        server: PostgresAddress,
        /// The directory for data that only this machine needs.
        local_dir: PathBuf,
    },
}

impl DatabaseAddress {
    /// Formats the address as in the configuration, without a password.
    pub fn to_uri(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:///{}", path.display()),
            Self::Server { server, .. } => server.to_string(),
        }
    }

    /// The address with symbolic links resolved, so that every process finds the files next to the database.
    pub(crate) fn resolve_links(&self) -> Self {
        let Self::File(path) = self else { return self.clone() };
        let resolved = path.canonicalize().or_else(|error| {
            let (directory, name) = path.parent().zip(path.file_name()).ok_or(error)?;
            Ok::<_, std::io::Error>(directory.canonicalize()?.join(name))
        });
        Self::File(resolved.unwrap_or_else(|_| path.clone()))
    }

    /// Opens the database, or creates it; a file in one of the foreign formats is imported.
    pub(crate) fn open(&self, options: SqliteOptions) -> Result<Database, StoreError> {
        Ok(match self {
            Self::File(path) => Database::new(SqliteBackend::open(path, options)?),
            Self::Server { server, .. } => Database::new(server.connect()?),
        })
    }

    /// The directory of reply drafts.
    pub(crate) fn drafts_folder(&self) -> PathBuf {
        match self {
            Self::File(path) => {
                let mut directory = path.as_os_str().to_owned();
                directory.push("-drafts");
                directory.into()
            }
            Self::Server { local_dir, .. } => local_dir.join("drafts"),
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
