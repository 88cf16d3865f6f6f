//! Databases of Crow's Python version, read as our sessions.
//!
//! Read-only, and must not know where the sessions go. Both layouts are supported, of 0.1.22 and of 0.1.48, and those
//! between them: a missing column counts as its default, and an invalid row is counted and skipped.
//!
//! There, a session was a row of agents. A compaction started the next agent with the summary as its first prompt and
//! copied no message, so the row is one session here, with an [`OldCompaction`] wherever an agent began. A fork saw
//! the messages of another agent up to some message; it becomes a session of its own under the ID by which it was
//! addressed. A session started by a task or a delegation has the starting session as its parent.
//!
//! The rest stays in the old file: templates of system prompts and their values, tool definitions, servers, request
//! parameters and states of agents; goals, tabs, calls inside a cell, tasks and deliveries except for the parent of
//! each session.

mod agents;
mod call_info;
mod copy;
mod history;
mod images;
mod message;
mod session;
mod tables;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, fmt, path::Path};

use crow_core::{SessionId, TranscriptEntry};
use rusqlite::Connection;

use self::{images::ImageFolder, session::OldSessionReader, tables::TableColumns};
use crate::Timestamp;

pub(super) use copy::copy_locked;
pub use copy::copy_python_database;

/// A session of an old database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OldSession {
    /// Its ID, as people and editors know it.
    pub(crate) id: SessionId,
    /// The session that started it, which was returned before.
    pub(crate) parent: Option<SessionId>,
    /// Absolute path of the working directory.
    pub(crate) cwd: String,
    /// The provider's name of its model.
    pub(crate) model: String,
    /// Its system prompt. It describes tools that only the Python version had.
    pub(crate) system_prompt: String,
    pub(crate) title: Option<String>,
    pub(crate) created: Timestamp,
    /// Time of its last message.
    pub(crate) updated: Timestamp,
    /// Its messages, in an order that a transcript accepts, with IDs by position.
    pub(crate) entries: Vec<(TranscriptEntry, Timestamp)>,
    /// The positions where a summary replaced earlier messages for the model.
    pub(crate) compactions: Vec<OldCompaction>,
    /// The parts that could not be imported.
    pub(crate) losses: ImportLosses,
}

/// A position in a session before which the model sees only a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldCompaction {
    /// The number of entries before it; the model sees those that follow.
    pub(crate) at_seq: u64,
    /// The summary, which the Python version stored as a prompt.
    pub(crate) summary: Option<String>,
    /// Tokens in context before, as far as the provider reported them.
    pub(crate) tokens_before: u64,
    pub(crate) created: Timestamp,
}

/// Counts of what could not be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ImportLosses {
    /// Messages that cannot be read.
    pub(crate) messages: u64,
    /// Results without a call.
    pub(crate) results: u64,
    /// Images whose file is missing or incomplete.
    pub(crate) images: u64,
    /// Parts of messages of an unknown kind.
    pub(crate) parts: u64,
}

/// Whether the Python version wrote a database.
pub(crate) fn is_python(connection: &Connection) -> rusqlite::Result<bool> {
    let agents = TableColumns::for_table(connection, "agents")?;
    let messages = TableColumns::for_table(connection, "messages")?;
    Ok(agents.contains_all(&["agent_id", "session_id"]) && messages.contains_all(&["id", "agent_id", "data"]))
}

/// Reads the sessions that have messages, one at a time, parents before children; returns the losses of all of them.
/// `images` is the directory next to the database in which later versions stored images.
pub(crate) fn read_sessions<E: From<rusqlite::Error>>(
    connection: &Connection,
    images: &Path,
    mut on_session: impl FnMut(OldSession) -> Result<(), E>,
) -> Result<ImportLosses, E> {
    let chains = agents::read_chains(connection)?;
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

impl ImportLosses {
    fn add_counts(&mut self, other: Self) {
        self.messages += other.messages;
        self.results += other.results;
        self.images += other.images;
        self.parts += other.parts;
    }
}

impl fmt::Display for ImportLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.messages, "messages that cannot be read"),
            (self.results, "results without a call"),
            (self.images, "images that are missing"),
            (self.parts, "pieces of an unknown kind"),
        ];
        let descriptions: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(n, label)| format!("{n} {label}")).collect();
        if descriptions.is_empty() { f.write_str("nothing") } else { f.write_str(&descriptions.join(", ")) }
    }
}
