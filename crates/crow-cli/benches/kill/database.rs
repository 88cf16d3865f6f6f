//! The database of a campaign: a file, or a server that it starts.
#![expect(clippy::disallowed_methods, reason = "it starts a server as the tests do")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crow_store::{DatabaseAddress, PostgresAddress, Store};
use tempfile::TempDir;

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DatabaseKind {
    Sqlite,
    Postgres,
}

impl DatabaseKind {
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A database that all sessions of a campaign share.
pub(crate) struct CampaignDatabase {
    kind: DatabaseKind,
    directory: TempDir,
    uri: String,
}

impl CampaignDatabase {
    pub(crate) fn start(kind: DatabaseKind) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let uri = match kind {
            DatabaseKind::Sqlite => directory.path().join("crow.db").display().to_string(),
            DatabaseKind::Postgres => run_server_script("start", &server_directory(directory.path()))?,
        };
        Ok(Self { kind, directory, uri })
    }

    pub(crate) fn kind(&self) -> DatabaseKind {
        self.kind
    }

    /// The address for the configuration.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// Checks the database.
    pub(crate) fn find_damage(&self) -> Vec<String> {
        let address = match (self.kind, PostgresAddress::parse(&self.uri)) {
            (DatabaseKind::Sqlite, _) => DatabaseAddress::File(PathBuf::from(&self.uri)),
            (DatabaseKind::Postgres, Ok(server)) => {
                DatabaseAddress::Server { server, local_dir: self.directory.path().to_owned() }
            }
            (DatabaseKind::Postgres, Err(error)) => return vec![error],
        };
        find_damage_at(&address)
    }
}

impl Drop for CampaignDatabase {
    fn drop(&mut self) {
        if self.kind == DatabaseKind::Postgres {
            let directory = server_directory(self.directory.path());
            // Even if it fails: a server without its directory ends.
            let _ = run_server_script("stop", &directory);
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// Checks a database.
pub(crate) fn find_damage_at(address: &DatabaseAddress) -> Vec<String> {
    let check = async {
        let store = Store::open(address).await?;
        let damage = store.check_integrity().await?;
        store.close().await?;
        Ok::<_, crow_store::StoreError>(damage)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map(|runtime| runtime.block_on(check)) {
        Ok(Ok(damage)) => damage,
        Ok(Err(error)) => vec![error.to_string()],
        Err(error) => vec![error.to_string()],
    }
}

/// The server has a user of its own, who cannot enter a private directory.
fn server_directory(directory: &Path) -> PathBuf {
    let mut path = directory.as_os_str().to_owned();
    path.push("-server");
    path.into()
}

fn run_server_script(action: &str, directory: &Path) -> io::Result<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/postgres");
    let output = Command::new(script).arg(action).arg(directory).output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!(
            "no PostgreSQL server: {reason}; `--database sqlite` needs none"
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
