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

pub use address::Address;
pub use changes::{Before, ChangeId, FileChange, NewFileChange};
pub use database::TABLES;
pub use draft::Draft;
pub use error::{Holder, StoreError};
pub use name::invent_name;
pub use postgres::ServerAddress;
pub use private::{Exposure, exposure, make_private};
pub use session::{
    Aside, BegunBy, Cursor, Hit, ListQuery, Message, NewSession, Range, SearchQuery, SessionRow, Speaker,
    Stored, Timestamp, Tip,
};
pub use speckit::{SpeckitEvent, SpeckitRow};
pub use sqlite::{Salvaged, copy_python_database, salvage};
pub use store::{Attending, Store, Writer};
pub use task::{Delivery, DeliveryId, TaskEnd, TaskRow, TaskState};
