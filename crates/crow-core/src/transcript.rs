//! The conversation as the model may see it. An invalid one has no constructor: a request cannot be made
//! while a call is open, a result cannot be pushed for a call that is not.
//!
//! What a [`Compaction`] leaves out is gone from here; the journal of the session has it.

use std::collections::BTreeSet;

use crate::compaction::{Fill, foreword, of_entry, of_outcome, of_prompt, of_text, plausible, removed};
use crate::{Call, CallId, Compaction, Facets, MessageId, Outcome, Prompt, Reply, Usage};

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

impl Entry {
    /// What a reply took, as its provider counted.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Reply(reply) => reply.usage,
            Self::Prompt(_) | Self::Result { .. } => None,
        }
    }
}

/// A valid conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    system: String,
    /// Tokens of the tools that go along with it.
    tools: u64,
    /// Place of the first entry.
    first: u64,
    entries: Vec<Entry>,
    open: Vec<Call>,
    compacted: Option<Compacted>,
}

/// What stands for the entries that are gone.
#[derive(Debug, Clone, PartialEq)]
struct Compacted {
    by: Compaction,
    said: Vec<(u64, Prompt)>,
    foreword: Option<Prompt>,
    pruned: BTreeSet<CallId>,
    removed: Outcome,
}

/// A compaction that does not fit the conversation it is meant for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the compaction does not fit: {why}")]
pub struct NotFitting {
    /// What is wrong with it.
    pub why: &'static str,
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
        Self { system: system.into(), ..Self::default() }
    }

    /// The place the next entry takes; ids are made from it.
    pub fn next_seq(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The place of the first of [`Transcript::entries`].
    pub fn first_seq(&self) -> u64 {
        self.first
    }

    /// The system prompt.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Tells how many tokens the tools take that go along with each request.
    pub fn set_tools(&mut self, tokens: u64) {
        self.tools = tokens;
    }

    /// Tokens of what goes along whatever is said.
    pub(crate) fn beside(&self) -> u64 {
        of_text(&self.system) + self.tools
    }

    /// Every entry from the one that the compaction in force keeps first.
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
            0 => Ok(ForModel { transcript: self }),
            n_open => Err(CallsOpen { n_open }),
        }
    }

    /// Shows it so from here on. Store it first, as an entry. What it leaves out is forgotten.
    pub fn compact(&mut self, by: Compaction) -> Result<(), NotFitting> {
        self.fits(&by)?;
        let index = usize::try_from(by.keep_from - self.first).unwrap_or(usize::MAX);
        let said = by.said.iter().filter_map(|place| Some((*place, self.prompt_at(*place)?.clone())));
        let said: Vec<(u64, Prompt)> = said.collect();
        // A reply can only follow something that was said.
        let begins_with_reply = matches!(self.entries.get(index), Some(Entry::Reply(_)));
        let has_foreword = begins_with_reply || !said.is_empty() || by.summary.is_some();
        let foreword =
            has_foreword.then(|| foreword(said.iter().map(|(_, prompt)| prompt), by.summary.as_deref()));
        self.entries.drain(..index);
        self.entries.shrink_to_fit();
        self.first = by.keep_from;
        let pruned = by.pruned.iter().copied().collect();
        self.compacted = Some(Compacted { by, said, foreword, pruned, removed: removed() });
        Ok(())
    }

    fn fits(&self, by: &Compaction) -> Result<(), NotFitting> {
        let refuse = |why| Err(NotFitting { why });
        if by.at > self.next_seq() || by.keep_from > by.at {
            return refuse("it is about entries that are not there");
        }
        if by.keep_from < self.first {
            return refuse("it keeps entries that are gone");
        }
        let first = usize::try_from(by.keep_from - self.first).ok().and_then(|index| self.entries.get(index));
        if matches!(first, Some(Entry::Result { .. })) {
            return refuse("it parts a call from its result");
        }
        let is_prompt = |place: &u64| *place < by.keep_from && self.prompt_at(*place).is_some();
        if !by.said.iter().all(is_prompt) || !by.said.is_sorted() {
            return refuse("it names a prompt that is none");
        }
        Ok(())
    }

    /// The compaction in force.
    pub fn compaction(&self) -> Option<&Compaction> {
        self.compacted.as_ref().map(|compacted| &compacted.by)
    }

    /// The earlier prompts that the model still sees verbatim, with their places.
    pub fn said(&self) -> &[(u64, Prompt)] {
        self.compacted.as_ref().map_or(&[], |compacted| &compacted.said)
    }

    /// Tells whether something stands for what is left out.
    pub fn has_foreword(&self) -> bool {
        self.foreword().is_some()
    }

    fn foreword(&self) -> Option<&Prompt> {
        self.compacted.as_ref().and_then(|compacted| compacted.foreword.as_ref())
    }

    /// Finds a prompt that is still here by its place.
    pub(crate) fn prompt_at(&self, place: u64) -> Option<&Prompt> {
        if let Some((_, prompt)) = self.said().iter().find(|(other, _)| *other == place) {
            return Some(prompt);
        }
        let index = usize::try_from(place.checked_sub(self.first)?).ok()?;
        match self.entries.get(index)? {
            Entry::Prompt(prompt) => Some(prompt),
            Entry::Reply(_) | Entry::Result { .. } => None,
        }
    }

    /// Tells how full the context is.
    pub fn fill(&self) -> Fill {
        let front = self.beside() + self.foreword().map_or(0, of_prompt);
        let measured = front + self.entries.iter().map(|entry| self.tokens_of(entry)).sum::<u64>();
        Fill { tokens: self.counted(measured).unwrap_or(measured), measured }
    }

    /// The provider's last count with our measure of what came after it; a compaction counts as well.
    fn counted(&self, measured: u64) -> Option<u64> {
        let by = self.compaction();
        let mut later = 0;
        for (index, entry) in self.entries.iter().enumerate().rev() {
            if by.is_some_and(|by| self.first + (index as u64) < by.at) {
                break;
            }
            if let Some(tokens) = entry.usage().and_then(Usage::context) {
                return Some(plausible(tokens, measured.saturating_sub(later)).saturating_add(later));
            }
            later += self.tokens_of(entry);
        }
        by.map(|by| by.tokens_after.saturating_add(later))
    }

    fn tokens_of(&self, entry: &Entry) -> u64 {
        match (entry, &self.compacted) {
            (Entry::Result { call, .. }, Some(compacted)) if compacted.pruned.contains(call) => {
                of_outcome(&compacted.removed)
            }
            (Entry::Result { .. } | Entry::Prompt(_) | Entry::Reply(_), _) => of_entry(entry),
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
    transcript: &'a Transcript,
}

/// One step of a conversation as the model is shown it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shown<'a> {
    /// The person spoke, or what stands for what is left out.
    Prompt(&'a Prompt),
    /// The model spoke.
    Reply(&'a Reply),
    /// A call ended.
    Result {
        /// Which call.
        call: CallId,
        /// What came of it, or the line that stands for that.
        outcome: &'a Outcome,
    },
}

impl<'a> ForModel<'a> {
    /// The system prompt.
    pub fn system(self) -> &'a str {
        &self.transcript.system
    }

    /// The steps, each call followed by its result before the next prompt or reply.
    pub fn steps(self) -> impl Iterator<Item = Shown<'a>> {
        let Transcript { entries, compacted, .. } = self.transcript;
        let removed = move |call: &CallId| compacted.as_ref().filter(|by| by.pruned.contains(call));
        let kept = entries.iter().map(move |entry| match entry {
            Entry::Prompt(prompt) => Shown::Prompt(prompt),
            Entry::Reply(reply) => Shown::Reply(reply),
            Entry::Result { call, outcome, .. } => {
                let outcome = removed(call).map_or(outcome, |by| &by.removed);
                Shown::Result { call: *call, outcome }
            }
        });
        self.transcript.foreword().map(Shown::Prompt).into_iter().chain(kept)
    }
}

#[cfg(test)]
mod tests;
