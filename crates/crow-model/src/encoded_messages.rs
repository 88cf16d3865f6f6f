//! The JSON of the messages that earlier requests of a session have sent, so that each message is encoded once.

#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crow_core::TranscriptIdentity;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Bytes of kept JSON.
const BYTES_MAX: usize = 1024 * 1024;

/// The encoded messages at the beginning of a session's conversation. Belongs to the session; a request finds out itself
/// whether they are those of its conversation.
#[derive(Debug, Default)]
pub struct EncodedMessages(Mutex<EncodedPrefix>);

/// The encoded messages at the beginning of a conversation.
#[derive(Debug, Default)]
pub(crate) struct EncodedPrefix {
    /// The conversation, and what else decides how it is encoded.
    key: Option<(TranscriptIdentity, String)>,
    /// The steps of the conversation that are encoded.
    n_steps: usize,
    messages: Vec<Box<RawValue>>,
    n_bytes: usize,
    /// True once messages did not fit: what follows them cannot be kept without them.
    is_full: bool,
    /// A conversation that is sent once is not kept.
    was_sent_before: bool,
}

impl EncodedMessages {
    /// Returns the messages of a conversation that are encoded by some rules. Those of any other are dropped, and all if
    /// there are no rules.
    pub(crate) fn lock_prefix(
        &self,
        conversation: TranscriptIdentity,
        rules: Option<String>,
    ) -> MutexGuard<'_, EncodedPrefix> {
        let mut prefix = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = rules.map(|rules| (conversation, rules));
        prefix.was_sent_before = key.is_some() && prefix.key == key;
        if !prefix.was_sent_before {
            *prefix = EncodedPrefix { key, ..EncodedPrefix::default() };
        }
        prefix
    }
}

impl EncodedPrefix {
    pub(crate) fn messages(&self) -> &[Box<RawValue>] {
        &self.messages
    }

    pub(crate) fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// Keeps the first of the messages that follow, with which a number of steps is encoded. Returns how many it has kept:
    /// all, or none if they are too long.
    pub(crate) fn keep_messages(
        &mut self,
        messages: &[impl Serialize],
        n_steps: usize,
    ) -> Result<usize, serde_json::Error> {
        if !self.was_sent_before || self.is_full {
            return Ok(0);
        }
        let encoded = messages.iter().map(to_raw_value).collect::<Result<Vec<_>, _>>()?;
        let n_bytes = self.n_bytes + encoded.iter().map(|message| message.get().len()).sum::<usize>();
        self.is_full = n_bytes > BYTES_MAX;
        if self.is_full {
            return Ok(0);
        }
        self.messages.extend(encoded);
        (self.n_bytes, self.n_steps) = (n_bytes, n_steps);
        Ok(messages.len())
    }
}
