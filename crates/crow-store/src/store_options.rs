//! Opening a database.

use std::time::Duration;

use crate::{DatabaseAddress, ForeignFormat, Store, StoreError, sqlite::SqliteOptions};

/// Options for opening a database.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreOptions {
    sqlite: SqliteOptions,
}

impl StoreOptions {
    /// Imports the sessions of a database in one of these formats, after a copy was made; otherwise such a file is
    /// rejected.
    pub fn with_foreign_formats(self, foreign_formats: &'static [ForeignFormat]) -> Self {
        Self { sqlite: SqliteOptions { foreign_formats, ..self.sqlite } }
    }

    /// Sets the time to wait for a file that another process has locked; five seconds otherwise.
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { sqlite: SqliteOptions { lock_timeout, ..self.sqlite } }
    }

    /// Opens a database in the background, or creates it. An error is the answer to every request, and opening is
    /// tried again with each.
    pub fn open_in_background(self, address: &DatabaseAddress) -> Result<Store, StoreError> {
        let address = address.resolve_links();
        let opened = address.clone();
        Store::start(&address, move || opened.open(self.sqlite))
    }

    /// Opens a database as [`StoreOptions::open_in_background`] does, and waits until it is open.
    pub async fn open(self, address: &DatabaseAddress) -> Result<Store, StoreError> {
        let store = self.open_in_background(address)?;
        store.wait_until_open().await?;
        Ok(store)
    }

    /// Opens a database only if it is there: looking at one must not make it.
    pub async fn open_existing(self, address: &DatabaseAddress) -> Result<Option<Store>, StoreError> {
        match address {
            DatabaseAddress::File(path) if !path.exists() => Ok(None),
            DatabaseAddress::File(_) | DatabaseAddress::Server { .. } => self.open(address).await.map(Some),
        }
    }
}

impl Store {
    /// Opens a database of ours in the background, or creates it; see [`StoreOptions::open_in_background`].
    pub fn open_in_background(address: &DatabaseAddress) -> Result<Self, StoreError> {
        StoreOptions::default().open_in_background(address)
    }

    /// Opens a database of ours, or creates it, and waits until it is open.
    pub async fn open(address: &DatabaseAddress) -> Result<Self, StoreError> {
        StoreOptions::default().open(address).await
    }
}
