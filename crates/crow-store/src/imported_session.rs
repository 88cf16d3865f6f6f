//! Sessions of another program, in our terms. Knows no database.

use std::fmt;

use crow_core::{Compaction, SessionId, TranscriptEntry};

use crate::Timestamp;

/// A session of another program. It gets our system prompt when it continues.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSession {
    /// Its ID, as people and editors know it.
    pub id: SessionId,
    /// The session that started it, which was imported before.
    pub parent: Option<SessionId>,
    /// Absolute path of the working directory.
    pub cwd: String,
    /// The provider's name of its model.
    pub model: String,
    pub title: Option<String>,
    pub created: Timestamp,
    /// Time of its last message.
    pub updated: Timestamp,
    /// Its messages, in an order that a transcript accepts, with IDs by position.
    pub entries: Vec<(TranscriptEntry, Timestamp)>,
    /// Its compactions, oldest first.
    pub compactions: Vec<Compaction>,
}

/// Counts of what could not be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportLosses {
    /// Messages that cannot be read.
    pub messages: u64,
    /// Results without a call.
    pub results: u64,
    /// Images whose file is missing or incomplete.
    pub images: u64,
    /// Parts of messages of an unknown kind.
    pub parts: u64,
}

impl ImportLosses {
    /// Adds the losses of another session.
    pub fn add_counts(&mut self, other: Self) {
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
