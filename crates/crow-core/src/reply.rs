//! Folds what a provider streams into updates now and one reply at the end.

use serde_json::Value;

use crate::{Arguments, Call, CallId, Ended, MessageId, Reply, Sealed, Usage, repair};

/// One event of a model's stream, whatever dialect it came in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModelEvent<'a> {
    /// More reasoning.
    Thought(&'a str),
    /// More text.
    Text(&'a str),
    /// A piece of a call. Pieces of one call share `slot`.
    Call {
        /// Which call of the reply, as the provider numbers them.
        slot: usize,
        /// Its id, in the first piece.
        id: Option<&'a str>,
        /// Its name, in the first piece.
        name: Option<&'a str>,
        /// More of its arguments.
        arguments: &'a str,
    },
    /// What it cost; a later one stands.
    Usage(Usage),
    /// Something that the provider wants back with the reply.
    Sealed(&'a Value),
}

/// What a person sees of an event at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Reasoning.
    Thought(&'a str),
    /// Words.
    Text(&'a str),
}

/// What the model is told of a call that its output limit cut.
const CUT_BY_LIMIT: &str = "the output limit cut the reply inside this call; send it again in smaller pieces";

/// A reply while it arrives.
#[derive(Debug)]
pub struct ReplyBuilder {
    seq: u64,
    thought: String,
    text: String,
    calls: Vec<CallPieces>,
    usage: Option<Usage>,
    /// Who speaks, in the words of [`Sealed::by`].
    by: String,
    sealed: Vec<Value>,
}

#[derive(Debug)]
struct CallPieces {
    slot: usize,
    id: String,
    name: String,
    arguments: String,
}

impl ReplyBuilder {
    /// How much has arrived.
    pub fn n_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        self.thought.len() + self.text.len() + calls.sum::<usize>()
    }

    /// Starts the reply that takes place `seq` of its session.
    pub fn new(seq: u64) -> Self {
        Self {
            seq,
            thought: String::new(),
            text: String::new(),
            calls: Vec::new(),
            usage: None,
            by: String::new(),
            sealed: Vec::new(),
        }
    }

    /// Names the model that speaks: what it wants back goes to no other.
    pub fn by(self, by: impl Into<String>) -> Self {
        Self { by: by.into(), ..self }
    }

    /// The id the reply will have.
    pub fn id(&self) -> MessageId {
        MessageId::at(self.seq)
    }

    /// Tells whether anything arrived that a person saw or that would be run.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }

    /// Takes an event in; gives back what to show of it.
    pub fn on_event<'a>(&mut self, event: ModelEvent<'a>) -> Option<Delta<'a>> {
        match event {
            ModelEvent::Thought("") | ModelEvent::Text("") => None,
            ModelEvent::Thought(text) => {
                self.thought.push_str(text);
                Some(Delta::Thought(text))
            }
            ModelEvent::Text(text) => {
                self.text.push_str(text);
                Some(Delta::Text(text))
            }
            ModelEvent::Call { slot, id, name, arguments } => {
                let place = self.calls.iter().position(|call| call.slot == slot).unwrap_or_else(|| {
                    let empty =
                        CallPieces { slot, id: String::new(), name: String::new(), arguments: String::new() };
                    self.calls.push(empty);
                    self.calls.len() - 1
                });
                let call = &mut self.calls[place];
                // Some servers repeat id and name in every piece; the first stands.
                if let Some(id) = id.filter(|_| call.id.is_empty()) {
                    call.id.push_str(id);
                }
                if let Some(name) = name.filter(|_| call.name.is_empty()) {
                    call.name.push_str(name);
                }
                call.arguments.push_str(arguments);
                None
            }
            ModelEvent::Usage(usage) => {
                self.usage = Some(usage);
                None
            }
            ModelEvent::Sealed(piece) => {
                self.sealed.push(piece.clone());
                None
            }
        }
    }

    /// Ends the reply. Calls that were cut while arriving are dropped: nobody asked for half a call.
    pub fn end(self, ended: Ended) -> Reply {
        let seq = self.seq;
        let whole = matches!(ended, Ended::Normally | Ended::OutputLimit);
        let n_calls = if whole { self.calls.len() } else { 0 };
        let is_cut = |index| ended == Ended::OutputLimit && index + 1 == n_calls;
        let calls = self.calls.into_iter().take(n_calls).enumerate().map(|(index, pieces)| {
            let id = CallId::at(seq, index);
            let provider_id = if pieces.id.is_empty() { id.to_string() } else { pieces.id };
            let arguments = match is_cut(index) {
                // However whole it looks: nobody knows what would have followed.
                true => Arguments::Unreadable { why: CUT_BY_LIMIT.into() },
                false => repair::read_arguments(&pieces.arguments),
            };
            let arguments = if ended == Ended::Normally { arguments.of_whole_reply() } else { arguments };
            Call { id, provider_id, name: pieces.name, arguments }
        });
        let calls = calls.collect();
        Reply {
            id: MessageId::at(seq),
            thought: self.thought,
            text: self.text,
            calls,
            ended,
            usage: self.usage,
            sealed: (!self.sealed.is_empty()).then_some(Sealed { by: self.by, pieces: self.sealed }),
        }
    }
}

#[cfg(test)]
mod tests;
