//! Folds what a provider streams into updates now and one reply at the end.

use serde_json::Value;

use crate::{CallId, MessageId, ProviderState, Reply, ReplyEnd, TokenUsage, ToolArguments, ToolCall, repair};

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
    Usage(TokenUsage),
    /// Something that the provider wants back with the reply.
    Sealed(&'a Value),
}

/// What a person sees of an event at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDelta<'a> {
    /// Reasoning.
    Thought(&'a str),
    /// Words.
    Text(&'a str),
}

/// What the model is told of a call that its output limit cut.
const CUT_BY_LIMIT: &str = "the output limit cut the reply inside this call; send it again in smaller pieces";

/// What the model is told of a call in which the reply became too large.
const CUT_BY_SIZE: &str =
    "the reply was cut inside this call, at 16 MiB: no reply may be larger; send it again in smaller pieces";

/// Calls of one reply that are taken. More than any model needs at once, and each costs a tool, a row and a result.
const CALLS_MAX: usize = 128;

/// What the model is told of the last call that is taken, if there are more.
const TOO_MANY_CALLS: &str = "the reply has more than 128 calls; the 127 before this one were taken, this one and all \
                              behind it were not; make fewer calls at once";

/// A reply while it arrives.
#[derive(Debug)]
pub struct ReplyBuilder {
    seq: u64,
    thought: String,
    text: String,
    calls: Vec<CallPieces>,
    /// There were more calls than are taken.
    has_more_calls: bool,
    usage: Option<TokenUsage>,
    /// Who speaks, in the words of [`ProviderState::by`].
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
            has_more_calls: false,
            usage: None,
            by: String::new(),
            sealed: Vec::new(),
        }
    }

    /// Names the model that speaks: what it wants back goes to no other.
    pub fn with_model(self, by: impl Into<String>) -> Self {
        Self { by: by.into(), ..self }
    }

    /// The id the reply will have.
    pub fn id(&self) -> MessageId {
        MessageId::from_seq(self.seq)
    }

    /// Tells whether anything arrived that a person saw or that would be run.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }

    /// Takes an event in; gives back what to show of it.
    pub fn on_event<'a>(&mut self, event: ModelEvent<'a>) -> Option<ReplyDelta<'a>> {
        match event {
            ModelEvent::Thought("") | ModelEvent::Text("") => None,
            ModelEvent::Thought(text) => {
                self.thought.push_str(text);
                Some(ReplyDelta::Thought(text))
            }
            ModelEvent::Text(text) => {
                self.text.push_str(text);
                Some(ReplyDelta::Text(text))
            }
            ModelEvent::Call { slot, id, name, arguments } => {
                let call = self.find_or_begin_call(slot)?;
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

    /// Finds the call in a slot, or begins it; `None` where there are too many.
    fn find_or_begin_call(&mut self, slot: usize) -> Option<&mut CallPieces> {
        let place = match self.calls.iter().position(|call| call.slot == slot) {
            Some(place) => place,
            None if self.calls.len() == CALLS_MAX => {
                self.has_more_calls = true;
                return None;
            }
            None => {
                let (id, name, arguments) = (String::new(), String::new(), String::new());
                self.calls.push(CallPieces { slot, id, name, arguments });
                self.calls.len() - 1
            }
        };
        self.calls.get_mut(place)
    }

    /// Ends the reply. Calls that were cut while arriving are dropped: nobody asked for half a call.
    pub fn into_reply(self, ended: ReplyEnd) -> Reply {
        let seq = self.seq;
        // Why the last call is not run however whole it looks: nobody knows what would have followed.
        let (is_whole, why_not_last) = match ended {
            ReplyEnd::Normally => (true, None),
            ReplyEnd::OutputLimit => (true, Some(CUT_BY_LIMIT)),
            ReplyEnd::SizeLimit => (true, Some(CUT_BY_SIZE)),
            ReplyEnd::Refused | ReplyEnd::Cancelled | ReplyEnd::Failed(_) => (false, None),
        };
        let why_not_last = if self.has_more_calls { Some(TOO_MANY_CALLS) } else { why_not_last };
        let n_calls = if is_whole { self.calls.len() } else { 0 };
        let calls = self.calls.into_iter().take(n_calls).enumerate().map(|(index, pieces)| {
            let id = CallId::from_position(seq, index);
            let provider_id = if pieces.id.is_empty() { id.to_string() } else { pieces.id };
            let arguments = match why_not_last.filter(|_| index + 1 == n_calls) {
                Some(why) => ToolArguments::Unreadable { why: why.to_owned() },
                None => repair::read_arguments(&pieces.arguments),
            };
            let arguments =
                if ended == ReplyEnd::Normally { arguments.accept_missing_brackets() } else { arguments };
            ToolCall { id, provider_id, name: pieces.name, arguments }
        });
        let calls = calls.collect();
        Reply {
            id: MessageId::from_seq(seq),
            thought: self.thought,
            text: self.text,
            calls,
            ended,
            usage: self.usage,
            sealed: (!self.sealed.is_empty()).then_some(ProviderState { by: self.by, pieces: self.sealed }),
            answered_by: None,
        }
    }
}

#[cfg(test)]
mod tests;
