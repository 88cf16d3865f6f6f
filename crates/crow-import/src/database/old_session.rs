//! A session as the Python version stored it, and as the store takes it.

use crow_core::{Compaction, SessionId, TranscriptEntry};
use crow_store::{ImportLosses, ImportedSession, Timestamp};

/// A session of an old database.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OldSession {
    /// Its ID, as people and editors know it.
    pub(super) id: SessionId,
    /// The session that started it, which was returned before.
    pub(super) parent: Option<SessionId>,
    /// Absolute path of the working directory.
    pub(super) cwd: String,
    /// The provider's name of its model.
    pub(super) model: String,
    /// Its system prompt. It describes tools that only the Python version had.
    pub(super) system_prompt: String,
    pub(super) title: Option<String>,
    pub(super) created: Timestamp,
    /// Time of its last message.
    pub(super) updated: Timestamp,
    /// Its messages, in an order that a transcript accepts, with IDs by position.
    pub(super) entries: Vec<(TranscriptEntry, Timestamp)>,
    /// The positions where a summary replaced earlier messages for the model.
    pub(super) compactions: Vec<OldCompaction>,
    /// The parts that could not be imported.
    pub(super) losses: ImportLosses,
}

/// A position in a session before which the model sees only a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OldCompaction {
    /// The number of entries before it; the model sees those that follow.
    pub(super) at_seq: u64,
    /// The summary, which the Python version stored as a prompt.
    pub(super) summary: Option<String>,
    /// Tokens in context before, as far as the provider reported them.
    pub(super) tokens_before: u64,
    pub(super) created: Timestamp,
}

impl OldSession {
    /// Converts to the session that the store takes. The system prompt is dropped: it describes tools that only the
    /// Python version had.
    pub(super) fn into_imported(self) -> ImportedSession {
        ImportedSession {
            id: self.id,
            parent: self.parent,
            cwd: self.cwd,
            model: self.model,
            title: self.title,
            created: self.created,
            updated: self.updated,
            entries: self.entries,
            compactions: self.compactions.into_iter().map(OldCompaction::into_imported).collect(),
        }
    }
}

impl OldCompaction {
    fn into_imported(self) -> Compaction {
        Compaction {
            at_seq: self.at_seq,
            keep_from: self.at_seq,
            verbatim_prompts: Vec::new(),
            summary: self.summary,
            pruned: Vec::new(),
            tokens_before: self.tokens_before,
            tokens_after: 0,
            began_ms: self.created.0,
        }
    }
}
