//! Owns the database: what was said in each session, on disk before the next step starts.
//!
//! Only this crate spells SQL, and only its own thread touches the database. It knows nothing of clients,
//! models, tools or clocks: times come in as arguments.

mod store;

mod address;
mod changes;
mod database;
mod draft;
mod error;
mod hashing;
mod name;
mod postgres;
mod private;
mod row;
mod search;
mod session;
mod speckit;
mod sql;
mod sqlite;
mod task;

#[cfg(test)]
mod tests;

pub use address::DatabaseAddress;
pub use changes::{ChangeId, FileChange, NewFileChange, UndoSnapshot};
pub use database::TABLES;
pub use draft::Draft;
pub use error::{LeaseHolder, StoreError};
pub use name::invent_name;
pub use postgres::PostgresAddress;
pub use private::{FileExposure, file_exposure, make_private};
pub use session::{
    CreatorFilter, ListQuery, LoadedSession, MessageRange, MessageRole, NewSession, SearchHit, SearchQuery,
    SessionCursor, SessionRow, SessionTip, SideRequestUsage, StoredMessage, Timestamp,
};
pub use speckit::{SpeckitEvent, SpeckitRow};
pub use sqlite::{SalvageReport, copy_python_database, salvage_database};
pub use store::{SessionLease, Store, TaskLease};
pub use task::{Delivery, DeliveryId, TaskEnd, TaskRow, TaskState};
