//! A database in memory for simulations: the statements and the schema are those of a file, the thread is that of the
//! callers, and a [`SimulatedDisk`] decides how long a request takes and which transaction fails.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crow_core::SessionId;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{
    errors::from_sqlite, open::STATEMENTS_MAX, open_transaction::OpenTransaction, schema::make_tables,
    statements::SqliteTransaction,
};
use crate::{
    DiskFault, LeaseHolder, SimulatedDisk, Store, StoreError,
    database::Database,
    simulated_disk::session_name,
    sql::{DatabaseBackend, LeaseKey, SyncCallback, TransactionBody, TransactionKind},
};

/// The address in errors.
const NAME: &str = "memory";

/// A database in memory. As a disk it outlives the stores of the processes that open it.
#[derive(Clone)]
pub struct MemoryDatabase {
    shared: Arc<Mutex<SharedDatabase>>,
    names: Arc<AtomicU64>,
    drafts: PathBuf,
}

struct SharedDatabase {
    connection: Connection,
    /// The process that holds each lease.
    leases: HashMap<LeaseKey, u64>,
    n_processes: u64,
}

impl fmt::Debug for MemoryDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDatabase").field("drafts", &self.drafts).finish_non_exhaustive()
    }
}

impl MemoryDatabase {
    /// Creates an empty database; drafts are files in a directory.
    pub fn create(drafts: PathBuf) -> Result<Self, StoreError> {
        let connection = create_connection().map_err(|error| from_sqlite(Path::new(NAME), &error))?;
        let shared = SharedDatabase { connection, leases: HashMap::new(), n_processes: 0 };
        Ok(Self { shared: Arc::new(Mutex::new(shared)), names: Arc::default(), drafts })
    }

    /// Deletes every row, so that the next run starts with an empty database that is already open. No process may use it.
    pub fn clear(&self) -> Result<(), StoreError> {
        let mut shared = lock(&self.shared);
        delete_rows(&mut shared.connection).map_err(|error| from_sqlite(Path::new(NAME), &error))?;
        shared.leases.clear();
        shared.n_processes = 0;
        self.names.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Opens the database for one process. The store runs on a task of the current runtime, and the process ends with
    /// that runtime.
    pub fn open(&self, disk: Arc<dyn SimulatedDisk>) -> Store {
        let process = {
            let mut shared = lock(&self.shared);
            shared.n_processes += 1;
            shared.n_processes
        };
        let (database, disk_of_backend) = (self.shared.clone(), disk.clone());
        let open = move || {
            let (shared, disk) = (database.clone(), disk_of_backend.clone());
            Ok(Database::new(MemoryBackend { shared, disk, process }))
        };
        Store::start_simulated(self.drafts.as_path().into(), self.names.clone(), disk, open)
    }

    /// Returns the IDs of all sessions that were named.
    pub fn session_ids(&self) -> Vec<SessionId> {
        (1..=self.names.load(Ordering::Relaxed)).map(session_name).collect()
    }
}

fn create_connection() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    let transaction = connection.transaction()?;
    make_tables(&transaction)?;
    transaction.commit()?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // And room for those that delete.
    connection.set_prepared_statement_cache_capacity(2 * STATEMENTS_MAX);
    Ok(connection)
}

/// Deletes the rows of all tables.
fn delete_rows(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    // Whatever refers to something is a session or belongs to one.
    let mut statement = transaction.prepare_cached(
        "SELECT CASE type WHEN 'table' THEN 'DELETE FROM ' || name
                          ELSE 'INSERT INTO ' || name || ' (' || name || ') VALUES (''delete-all'')' END
         FROM pragma_table_list
         WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite_%'
         ORDER BY name <> 'sessions'",
    )?;
    let deletions: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    drop(statement);
    for deletion in deletions {
        transaction.prepare_cached(&deletion)?.execute([])?;
    }
    transaction.commit()
}

fn lock(shared: &Mutex<SharedDatabase>) -> std::sync::MutexGuard<'_, SharedDatabase> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The database of one process.
struct MemoryBackend {
    shared: Arc<Mutex<SharedDatabase>>,
    disk: Arc<dyn SimulatedDisk>,
    process: u64,
}

impl Drop for MemoryBackend {
    fn drop(&mut self) {
        lock(&self.shared).leases.retain(|_, holder| *holder != self.process);
    }
}

impl DatabaseBackend for MemoryBackend {
    fn run_transaction(
        &mut self,
        kind: TransactionKind,
        work: TransactionBody<'_>,
    ) -> Result<(), StoreError> {
        let path = Path::new(NAME);
        let map_error = |error: rusqlite::Error| from_sqlite(path, &error);
        let fault = self.disk.next_fault(kind == TransactionKind::Write);
        if let Some(fault @ (DiskFault::Locked | DiskFault::Broken)) = fault {
            return Err(fault.into_error(NAME));
        }
        let shared = lock(&self.shared);
        let transaction = OpenTransaction::begin(&shared.connection, kind).map_err(map_error)?;
        work(&mut SqliteTransaction { connection: transaction.connection(), path })?;
        match fault {
            Some(fault) => Err(fault.into_error(NAME)),
            None => transaction.commit().map_err(map_error),
        }
    }

    fn acquire_lease(&mut self, key: &LeaseKey) -> Result<(), StoreError> {
        let mut shared = lock(&self.shared);
        match shared.leases.get(key) {
            Some(holder) if *holder != self.process => {
                Err(key.busy_error(LeaseHolder::unknown_process(&format!("process {holder}"))))
            }
            Some(_) | None => {
                shared.leases.insert(key.clone(), self.process);
                Ok(())
            }
        }
    }

    fn release_lease(&mut self, key: &LeaseKey) {
        lock(&self.shared).leases.remove(key);
    }

    fn sync(&mut self, on_synced: SyncCallback) {
        if let Some(on_synced) = on_synced {
            on_synced(match self.disk.next_fault(true) {
                Some(fault) => Err(fault.into_error(NAME)),
                None => Ok(()),
            });
        }
    }

    fn purge_deleted(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reclaim_space(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn check_integrity(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn is_lost(&mut self) -> bool {
        false
    }

    fn abandon(self: Box<Self>) {}

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
