//! The conversation as the model may see it. An invalid one has no constructor: a request cannot be made
//! while a call is open, a result cannot be pushed for a call that is not.

use crate::{Call, CallId, Facets, MessageId, Outcome, Prompt, Reply};

/// One step of a conversation, as it is stored and replayed.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The person spoke.
    Prompt(Prompt),
    /// The model spoke.
    Reply(Reply),
    /// A call ended.
    Result {
        /// Which call.
        call: CallId,
        /// What was shown of it, as it was shown live.
        facets: Facets,
        /// What came of it.
        outcome: Outcome,
    },
}

/// A valid conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    system: String,
    entries: Vec<Entry>,
    open: Vec<Call>,
}

/// A request was wanted while these calls had no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{n_open} tool calls have no result yet")]
pub struct CallsOpen {
    /// How many.
    pub n_open: usize,
}

/// An entry that may not come next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// Prompts and replies wait until every call has its result.
    #[error("calls are open")]
    CallsOpen,
    /// A result for a call that is not open.
    #[error("call {0} is not open")]
    NotOpen(CallId),
    /// A reply or prompt with nothing in it, which providers refuse.
    #[error("the message is empty")]
    Empty,
}

impl Transcript {
    /// Starts a conversation.
    pub fn new(system: impl Into<String>) -> Self {
        Self { system: system.into(), entries: Vec::new(), open: Vec::new() }
    }

    /// The place the next entry takes; ids are made from it.
    pub fn next_seq(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The system prompt.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Every entry so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Calls that wait for their results, in the model's order.
    pub fn open_calls(&self) -> &[Call] {
        &self.open
    }

    /// Adds an entry if it may come next. Store it first: what was refused here was never said.
    pub fn push(&mut self, entry: Entry) -> Result<(), NotAccepted> {
        self.accepts(&entry)?;
        let place = match &entry {
            Entry::Prompt(_) => self.entries.len(),
            Entry::Reply(reply) => {
                self.open.clone_from(&reply.calls);
                self.entries.len()
            }
            Entry::Result { call, .. } => {
                self.open.retain(|open| open.id != *call);
                self.place_of_result(call)
            }
        };
        self.entries.insert(place, entry);
        Ok(())
    }

    /// Results land in any order and stand in the order of their calls.
    fn place_of_result(&self, call: &CallId) -> usize {
        let n_later = self.entries.iter().rev().take_while(|entry| match entry {
            Entry::Result { call: other, .. } => other > call && other.reply() == call.reply(),
            Entry::Prompt(_) | Entry::Reply(_) => false,
        });
        self.entries.len() - n_later.count()
    }

    /// Tells whether an entry may come next.
    pub fn accepts(&self, entry: &Entry) -> Result<(), NotAccepted> {
        match entry {
            Entry::Prompt(prompt) if prompt.parts.is_empty() => Err(NotAccepted::Empty),
            Entry::Reply(reply) if reply.is_empty() => Err(NotAccepted::Empty),
            Entry::Prompt(_) | Entry::Reply(_) if !self.open.is_empty() => Err(NotAccepted::CallsOpen),
            Entry::Prompt(_) | Entry::Reply(_) => Ok(()),
            Entry::Result { call, .. } if self.open.iter().any(|open| open.id == *call) => Ok(()),
            Entry::Result { call, .. } => Err(NotAccepted::NotOpen(*call)),
        }
    }

    /// Shows the conversation for a request.
    pub fn for_model(&self) -> Result<ForModel<'_>, CallsOpen> {
        match self.open.len() {
            0 => Ok(ForModel { system: &self.system, entries: &self.entries }),
            n_open => Err(CallsOpen { n_open }),
        }
    }

    /// Names the prompt that comes next.
    pub fn next_message(&self) -> MessageId {
        MessageId::at(self.next_seq())
    }
}

/// A conversation that a provider accepts; only [`Transcript::for_model`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct ForModel<'a> {
    system: &'a str,
    entries: &'a [Entry],
}

impl<'a> ForModel<'a> {
    /// The system prompt.
    pub fn system(self) -> &'a str {
        self.system
    }

    /// The entries, each call followed by its result before the next prompt or reply.
    pub fn entries(self) -> &'a [Entry] {
        self.entries
    }
}

#[cfg(test)]
mod tests;
