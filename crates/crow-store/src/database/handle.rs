//! The handle of an open database: its transactions, leases and flushes. Knows no table.

use crate::{
    StoreError,
    sql::{DatabaseBackend, LeaseKey, SqlError, SqlTransaction, SyncCallback, TransactionKind},
};

/// Clients show pages; a longer one is not read.
pub(super) const PAGE_MAX: u32 = 500;

/// An open database.
pub(crate) struct Database {
    backend: Box<dyn DatabaseBackend>,
}

impl Database {
    pub(crate) fn new(backend: impl DatabaseBackend + 'static) -> Self {
        Self { backend: Box::new(backend) }
    }

    pub(crate) fn close(self) -> Result<(), StoreError> {
        self.backend.close()
    }

    pub(crate) fn abandon(self) {
        self.backend.abandon();
    }

    pub(crate) fn is_lost(&mut self) -> bool {
        self.backend.is_lost()
    }

    pub(crate) fn acquire_lease(&mut self, key: &LeaseKey) -> Result<(), StoreError> {
        self.backend.acquire_lease(key)
    }

    pub(crate) fn release_lease(&mut self, key: &LeaseKey) {
        self.backend.release_lease(key);
    }

    pub(crate) fn sync(&mut self, on_synced: SyncCallback) {
        self.backend.sync(on_synced);
    }

    pub(crate) fn check_integrity(&mut self) -> Result<Vec<String>, StoreError> {
        self.backend.check_integrity()
    }

    /// Erases from the disk what a deletion left.
    pub(super) fn purge_deleted(&mut self) -> Result<(), StoreError> {
        self.backend.purge_deleted()
    }

    /// Returns unused space to the disk.
    pub(crate) fn reclaim_space(&mut self) -> Result<(), StoreError> {
        self.backend.reclaim_space()
    }

    /// Runs one transaction that writes.
    pub(super) fn write_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut dyn SqlTransaction) -> Result<T, SqlError>,
    ) -> Result<T, StoreError> {
        self.run_transaction(TransactionKind::Write, work)
    }

    /// Runs one transaction that reads, so that everything it reads is of one moment.
    pub(super) fn read_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut dyn SqlTransaction) -> Result<T, SqlError>,
    ) -> Result<T, StoreError> {
        self.run_transaction(TransactionKind::Read, work)
    }

    fn run_transaction<T>(
        &mut self,
        kind: TransactionKind,
        work: impl FnOnce(&mut dyn SqlTransaction) -> Result<T, SqlError>,
    ) -> Result<T, StoreError> {
        let (mut work, mut result) = (Some(work), None);
        self.backend.run_transaction(kind, &mut |sql| {
            if let Some(work) = work.take() {
                result = Some(work(sql)?);
            }
            Ok(())
        })?;
        // A committed transaction has run its closure.
        result.ok_or(StoreError::Closed)
    }
}
