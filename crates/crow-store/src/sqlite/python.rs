//! Databases that the Python version of Crow wrote, read as sessions of ours.
//!
//! Reads only, and must never know where the sessions go. Both layouts are known, that of 0.1.22 and that of 0.1.48,
//! and what was between them: a column that is missing counts as its default, and a row that makes no sense is counted
//! and passed over.
//!
//! There a session was a row of agents. A compaction began the next agent with the summary as its first prompt and
//! copied no message, so the row is one session here, with an [`OldCompaction`] wherever an agent began. A fork saw the
//! messages of another agent up to some message; it becomes a session of its own under the id by which it was
//! addressed. What a task or a delegation began has the session that began it as its parent.
//!
//! What has no place here stays in the old file: templates of system prompts and what filled them, tool definitions,
//! servers, request parameters and states of agents; goals, tabs, calls inside a cell, tasks and deliveries but for who
//! began whom.

mod agents;
mod copy;
mod facets;
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
    /// Its name, as people and editors know it.
    pub(crate) id: SessionId,
    /// The session that began it, which was given before.
    pub(crate) parent: Option<SessionId>,
    /// Absolute path of its directory.
    pub(crate) cwd: String,
    /// The model it asked, by the provider's name for it.
    pub(crate) model: String,
    /// What the model was told first. It speaks of tools that only the Python version had.
    pub(crate) system_prompt: String,
    /// What it is about.
    pub(crate) title: Option<String>,
    /// When it began.
    pub(crate) created: Timestamp,
    /// When its last message came.
    pub(crate) updated: Timestamp,
    /// Everything said in it, in an order that a transcript accepts, with ids by place.
    pub(crate) entries: Vec<(TranscriptEntry, Timestamp)>,
    /// Where the model began to see a summary instead of what was said before.
    pub(crate) compactions: Vec<OldCompaction>,
    /// What of it could not be brought over.
    pub(crate) lost: ImportLosses,
}

/// A place in a session before which the model sees nothing but a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldCompaction {
    /// How many entries were there before; the model sees those that follow.
    pub(crate) at: u64,
    /// What stands for them; the Python version wrote it as a prompt.
    pub(crate) summary: Option<String>,
    /// Tokens in context before, as far as the provider had said.
    pub(crate) tokens_before: u64,
    /// When it happened.
    pub(crate) created: Timestamp,
}

/// What could not be brought over, by count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ImportLosses {
    /// Messages that cannot be read.
    pub(crate) messages: u64,
    /// Results of calls that nobody made.
    pub(crate) results: u64,
    /// Images whose file is missing or that are not whole.
    pub(crate) images: u64,
    /// Pieces of messages of a kind that is not known.
    pub(crate) pieces: u64,
}

/// Tells whether the Python version wrote a database.
pub(crate) fn is_python(connection: &Connection) -> rusqlite::Result<bool> {
    let agents = TableColumns::for_table(connection, "agents")?;
    let messages = TableColumns::for_table(connection, "messages")?;
    Ok(agents.contains_all(&["agent_id", "session_id"]) && messages.contains_all(&["id", "agent_id", "data"]))
}

/// Gives the sessions in which something was said, one at a time, a parent before those it began; tells what was lost
/// of all of them. `images` is the folder beside the database in which later versions kept images.
pub(crate) fn read_sessions<E: From<rusqlite::Error>>(
    connection: &Connection,
    images: &Path,
    mut each: impl FnMut(OldSession) -> Result<(), E>,
) -> Result<ImportLosses, E> {
    let chains = agents::read_chains(connection)?;
    let (mut reader, mut lost) = OldSessionReader::new(connection, &chains, ImageFolder::new(images))?;
    let mut given = HashSet::new();
    for chain in &chains {
        let mut session = reader.read_session(chain)?;
        lost.add_counts(session.lost);
        if session.entries.is_empty() {
            continue;
        }
        session.parent = session.parent.filter(|parent| given.contains(parent));
        given.insert(session.id.clone());
        each(session)?;
    }
    Ok(lost)
}

impl ImportLosses {
    fn add_counts(&mut self, other: Self) {
        self.messages += other.messages;
        self.results += other.results;
        self.images += other.images;
        self.pieces += other.pieces;
    }
}

impl fmt::Display for ImportLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.messages, "messages that cannot be read"),
            (self.results, "results of calls that nobody made"),
            (self.images, "images that are missing"),
            (self.pieces, "pieces of an unknown kind"),
        ];
        let said: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if said.is_empty() { f.write_str("nothing") } else { f.write_str(&said.join(", ")) }
    }
}
