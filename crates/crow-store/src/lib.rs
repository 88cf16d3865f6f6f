//! The database: the messages of each session, on disk before the next step starts.
//!
//! Only this crate contains SQL, and only its own thread accesses the database. It knows nothing of clients, models,
//! tools or clocks: times are arguments.

mod store;

mod address;
mod database;
mod draft;
mod error;
mod file_changes;
mod hashing;
mod imported_session;
mod postgres;
mod row;
mod search;
mod session;
mod session_name;
mod simulated_disk;
mod speckit;
mod sql;
mod sqlite;
mod store_options;
mod task;
mod usage;

#[cfg(test)]
mod tests;

pub use address::DatabaseAddress;
pub use database::TABLES;
pub use draft::Draft;
pub use error::{LeaseHolder, StoreError};
pub use file_changes::{ChangeId, FileChange, NewFileChange, StoredPrompt, UndoSnapshot};
pub use imported_session::{ImportLosses, ImportedSession};
pub use postgres::PostgresAddress;
pub use session::{
    CreatorFilter, ListQuery, LoadedSession, MessageRange, MessageRole, NewSession, SearchHit, SearchQuery,
    SessionCursor, SessionRow, SessionTip, StoredMessage, Timestamp,
};
pub use session_name::invent_name;
pub use simulated_disk::{DiskFault, DiskWait, SimulatedDisk};
pub use speckit::{SpeckitEvent, SpeckitRow};
pub use sqlite::{
    ForeignDatabase, ForeignFormat, ImportError, ImportedSessionSink, MemoryDatabase, SalvageReport,
    copy_foreign_database, salvage_database,
};
pub use store::{SessionLease, Store, TaskLease};
pub use store_options::StoreOptions;
pub use task::{DeliveredEntry, Delivery, DeliveryId, TaskEnd, TaskPlace, TaskRow, TaskState};
pub use usage::{PeriodUsage, USAGE_PERIOD_MS};
