//! One open database: every statement, written once for all of them.

mod blobs;
mod compactions;
mod file_changes;
mod fork;
mod handle;
mod imported_sessions;
mod messages;
mod search_index;
mod sessions;
mod side_requests;
mod speckit;
mod tasks;
mod usage;

pub(crate) use self::{
    handle::Database, imported_sessions::import_session, search_index::index_missing_messages,
    sessions::SessionChange,
};

/// The tables that users may query with their own tools, with the meaning of their columns.
pub const TABLES: &str = include_str!("database/tables.txt");
