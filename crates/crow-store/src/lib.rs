//! Owns the database: what was said in each session, on disk before the next step starts.
//!
//! Only this crate spells SQL, and only its own thread touches the file. It knows nothing of clients,
//! models, tools or clocks: times come in as arguments.

mod store;

mod database;
mod error;
mod name;
mod open;
mod private;
mod row;
mod search;
mod session;

#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use name::invent_name;
pub use session::{Cursor, Hit, ListQuery, NewSession, SessionRow, Stored, Timestamp};
pub use store::Store;
