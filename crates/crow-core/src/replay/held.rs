//! The updates of a running turn that waited for the end of a replay: some are in the replay already.

use crate::{CallId, MessageId, Reply, ReplyDelta, SessionUpdate, Transcript, TranscriptEntry};

/// The part of a reply that the client has, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamPosition {
    pub message: Option<MessageId>,
    pub n_thought: usize,
    pub n_text: usize,
}

impl StreamPosition {
    /// Counts a piece of a reply that is sent.
    pub fn count_delta(&mut self, message: &MessageId, delta: ReplyDelta<'_>) {
        if self.message.as_ref() != Some(message) {
            *self = Self { message: Some(message.clone()), ..Self::default() };
        }
        match delta {
            ReplyDelta::Thought(text) => self.n_thought += text.len(),
            ReplyDelta::Text(text) => self.n_text += text.len(),
        }
    }
}

/// Removes from the updates that were held back during a replay what the replay has shown.
#[derive(Debug)]
pub struct HeldUpdateFilter<'a> {
    transcript: &'a Transcript,
    /// The unfinished reply of the replay.
    message: Option<&'a MessageId>,
    /// Bytes of it that are held back and were replayed.
    n_thought: usize,
    n_text: usize,
}

impl<'a> HeldUpdateFilter<'a> {
    /// Creates the filter for a replay of a transcript and an unfinished reply. Updates after `position` were held back.
    pub fn new(transcript: &'a Transcript, unfinished: Option<&'a Reply>, position: &StreamPosition) -> Self {
        let mut filter =
            Self { transcript, message: unfinished.map(|reply| &reply.id), n_thought: 0, n_text: 0 };
        if let Some(reply) = unfinished {
            let is_same = position.message.as_ref() == Some(&reply.id);
            let (n_thought, n_text) = if is_same { (position.n_thought, position.n_text) } else { (0, 0) };
            filter.n_thought = reply.thought.len().saturating_sub(n_thought);
            filter.n_text = reply.text.len().saturating_sub(n_text);
        }
        filter
    }

    /// Returns the part of an update that the client does not have.
    pub fn unseen_part(&mut self, mut update: SessionUpdate) -> Option<SessionUpdate> {
        if let SessionUpdate::Text { message, .. }
        | SessionUpdate::Thought { message, .. }
        | SessionUpdate::Prompt { message, .. }
        | SessionUpdate::Report { message, .. } = &update
            && message.seq().is_some_and(|seq| seq < self.transcript.next_seq())
        {
            return None;
        }
        if let SessionUpdate::Call { call, .. } = &update
            && self.has_call(*call)
        {
            return None;
        }
        if let SessionUpdate::Text { message, text } = &mut update
            && self.message == Some(message)
        {
            return cut_start(text, &mut self.n_text).then_some(update);
        }
        if let SessionUpdate::Thought { message, text } = &mut update
            && self.message == Some(message)
        {
            return cut_start(text, &mut self.n_thought).then_some(update);
        }
        Some(update)
    }

    fn has_call(&self, call: CallId) -> bool {
        let entry = usize::try_from(call.reply_seq()).ok().and_then(|seq| self.transcript.entries().get(seq));
        matches!(entry, Some(TranscriptEntry::Reply(reply)) if reply.calls.iter().any(|other| other.id == call))
    }
}

/// Removes what was seen from the start of a text; returns whether any is left.
fn cut_start(text: &mut String, n_seen: &mut usize) -> bool {
    let end = text.ceil_char_boundary((*n_seen).min(text.len()));
    *n_seen = n_seen.saturating_sub(end);
    text.drain(..end);
    !text.is_empty()
}
