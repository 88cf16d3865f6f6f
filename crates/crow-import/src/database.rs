//! Databases of Crow's Python version, read as our sessions.
//!
//! Read-only, and must not know where the sessions go. Both layouts are supported, of 0.1.22 and of 0.1.48, and those
//! between them: a missing column counts as its default, and an invalid row is counted and skipped.
//!
//! There, a session was a row of agents. A compaction started the next agent with the summary as its first prompt and
//! copied no message, so the row is one session here, with an [`old_session::OldCompaction`] wherever an agent began. A fork saw
//! the messages of another agent up to some message; it becomes a session of its own under the ID by which it was
//! addressed. A session started by a task or a delegation has the starting session as its parent.
//!
//! The rest stays in the old file: templates of system prompts and their values, tool definitions, servers, request
//! parameters and states of agents; goals, tabs, calls inside a cell, tasks and deliveries except for the parent of
//! each session.

mod agents;
mod call_info;
mod history;
mod images;
mod message;
mod old_session;
mod session;
mod tables;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, path::Path};

use crow_store::{ForeignFormat, ImportError, ImportLosses, StoreError};
use rusqlite::Connection;

use self::{
    agents::read_chains, images::ImageFolder, old_session::OldSession, session::OldSessionReader,
    tables::TableColumns,
};

/// The databases of the Python version, which the store imports when it opens one.
pub static PYTHON_FORMAT: ForeignFormat = ForeignFormat {
    program: "the Python version",
    copy_suffix: "python",
    recognizes: is_python,
    read_sessions: |database, on_session| {
        read_sessions(database.connection, &database.directory.join(IMAGES_DIR), |session| {
            on_session(session.into_imported())
        })
    },
};

/// The directory next to a database in which later versions stored images.
const IMAGES_DIR: &str = "images";

/// Whether the Python version wrote a database.
fn is_python(connection: &Connection) -> rusqlite::Result<bool> {
    let agents = TableColumns::for_table(connection, "agents")?;
    let messages = TableColumns::for_table(connection, "messages")?;
    Ok(agents.contains_all(&["agent_id", "session_id"]) && messages.contains_all(&["id", "agent_id", "data"]))
}

/// Reads the sessions that have messages, one at a time, parents before children; returns the losses of all of them.
fn read_sessions(
    connection: &Connection,
    images: &Path,
    mut on_session: impl FnMut(OldSession) -> Result<(), StoreError>,
) -> Result<ImportLosses, ImportError> {
    let chains = read_chains(connection)?;
    let (mut reader, mut losses) = OldSessionReader::new(connection, &chains, ImageFolder::new(images))?;
    let mut imported_ids = HashSet::new();
    for chain in &chains {
        let mut session = reader.read_session(chain)?;
        losses.add_counts(session.losses);
        if session.entries.is_empty() {
            continue;
        }
        session.parent = session.parent.filter(|parent| imported_ids.contains(parent));
        imported_ids.insert(session.id.clone());
        on_session(session)?;
    }
    Ok(losses)
}
