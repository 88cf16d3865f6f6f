//! SQLite: a file without a server. Only this module, with its directory, uses rusqlite.

mod errors;
mod foreign_copy;
mod foreign_format;
mod foreign_import;
mod lease_files;
mod memory;
mod open;
mod open_transaction;
mod salvage;
mod schema;
mod statements;
mod syncer;

use std::{
    io,
    path::{Path, PathBuf},
};

use crow_files::FileReservation;
use rusqlite::{Connection, Row};

pub(crate) use self::open::SqliteOptions;
use self::{
    errors::{from_io, from_sqlite},
    lease_files::LeaseFiles,
    open_transaction::OpenTransaction,
    statements::SqliteTransaction,
    syncer::WalSyncer,
};
pub use self::{
    foreign_copy::copy_foreign_database,
    foreign_format::{ForeignDatabase, ForeignFormat, ImportError, ImportedSessionSink},
    memory::MemoryDatabase,
    salvage::{SalvageReport, salvage_database},
};
use crate::{
    StoreError,
    sql::{DatabaseBackend, LeaseKey, SyncCallback, TransactionBody, TransactionKind},
};

/// The findings of a check that users read; a badly damaged file has thousands.
const FINDINGS_MAX: usize = 20;

/// A file is rewritten if one in this many pages is free: others cannot write meanwhile, and later writes use the pages.
const PAGES_PER_FREE_PAGE: i64 = 4;

/// An open file.
pub(crate) struct SqliteBackend {
    connection: Connection,
    path: PathBuf,
    leases: LeaseFiles,
    syncer: WalSyncer,
    /// The files with the locks of the connection, which nothing else may open; dropped after it.
    _reservations: Vec<FileReservation>,
}

impl SqliteBackend {
    /// Opens the file, or creates it with its directory. A database in one of the foreign formats is imported.
    pub(crate) fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let connection = open::open_connection(path, options)?;
        let in_path = |error| from_io(path, &error);
        // The first read creates the index of the log.
        let index = connection.query_row("PRAGMA schema_version", [], |_| Ok(()));
        index.map_err(|error| from_sqlite(path, &error))?;
        let reservations = reserve_locked_files(path).map_err(in_path)?;
        let syncer = WalSyncer::start(path).map_err(in_path)?;
        Ok(Self {
            connection,
            path: path.to_path_buf(),
            leases: LeaseFiles::new(path),
            syncer,
            _reservations: reservations,
        })
    }

    /// Sets limits that a machine would have.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn map_error<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| from_sqlite(&self.path, &error))
    }

    /// Whether a large part of the file is free.
    fn has_much_free_space(&self) -> Result<bool, StoreError> {
        let read_count =
            |pragma: &str| self.map_error(self.connection.query_row(pragma, [], |row| row.get::<_, i64>(0)));
        let n_free = read_count("PRAGMA freelist_count")?;
        Ok(n_free > 0 && n_free >= read_count("PRAGMA page_count")? / PAGES_PER_FREE_PAGE)
    }

    fn truncate_wal(&self) -> Result<(), StoreError> {
        self.map_error(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
    }
}

/// Reserves the files with the locks of a connection: the database, and the index of the log if there is one.
fn reserve_locked_files(path: &Path) -> io::Result<Vec<FileReservation>> {
    let mut log_index = path.as_os_str().to_owned();
    log_index.push("-shm");
    let mut reservations = vec![FileReservation::of_file(path)?];
    match FileReservation::of_file(Path::new(&log_index)) {
        Ok(reservation) => reservations.push(reservation),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(reservations)
}

impl DatabaseBackend for SqliteBackend {
    fn run_transaction(
        &mut self,
        kind: TransactionKind,
        work: TransactionBody<'_>,
    ) -> Result<(), StoreError> {
        let path = &self.path;
        let map_error = |error: rusqlite::Error| from_sqlite(path, &error);
        let transaction = OpenTransaction::begin(&self.connection, kind).map_err(map_error)?;
        work(&mut SqliteTransaction { connection: transaction.connection(), path })?;
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
        // A rewrite takes longer than a process that works on a session waits for its next write.
        if !self.has_much_free_space()? || self.leases.is_any_held() {
            return Ok(());
        }
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

    fn abandon(self: Box<Self>) {}

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        let path = self.path;
        self.connection.close().map_err(|(_, error)| from_sqlite(&path, &error))
    }
}
