//! Builds a reply from a provider's stream: deltas at once, and the reply at the end.

use serde_json::Value;

use crate::{CallId, MessageId, ProviderState, Reply, ReplyEnd, TokenUsage, ToolArguments, ToolCall, repair};

/// An event of a model's stream, in any model API.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModelEvent<'a> {
    /// More reasoning.
    Thought(&'a str),
    /// More text.
    Text(&'a str),
    /// A piece of a call. Pieces of one call have the same index.
    Call {
        /// The index of the call, as numbered by the provider.
        index: usize,
        /// The provider's ID, in the first piece.
        id: Option<&'a str>,
        /// The tool's name, in the first piece.
        name: Option<&'a str>,
        /// More of its arguments.
        arguments: &'a str,
    },
    /// The usage so far; the last one counts.
    Usage(TokenUsage),
    /// Data that the provider requires back.
    ProviderState(&'a Value),
}

/// The visible part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDelta<'a> {
    /// Reasoning.
    Thought(&'a str),
    /// Text.
    Text(&'a str),
}

/// The error for the model if the output limit truncated a call.
const OUTPUT_LIMIT_ERROR: &str =
    "the output limit truncated the reply inside this call; send the call again in smaller parts";

/// The error for the model if the size limit truncated a call.
const SIZE_LIMIT_ERROR: &str = "the reply was truncated inside this call at 16 MiB, the maximum size; send the call again in smaller parts";

/// Limit of calls in one reply. More than any model needs at once, and each has costs.
const CALLS_MAX: usize = 128;

/// The error for the model in the last accepted call, if there are more.
const TOO_MANY_CALLS_ERROR: &str = "the reply has more than 128 calls; the 127 before this one were accepted, this one and all \
                              after it were not; make fewer calls at once";

/// A reply while it arrives.
#[derive(Debug)]
pub struct ReplyBuilder {
    seq: u64,
    thought: String,
    text: String,
    calls: Vec<CallPieces>,
    /// Whether calls were dropped.
    has_more_calls: bool,
    usage: Option<TokenUsage>,
    /// The model, as in [`ProviderState`].
    model: String,
    provider_items: Vec<Value>,
}

#[derive(Debug)]
struct CallPieces {
    index: usize,
    id: String,
    name: String,
    arguments: String,
}

impl ReplyBuilder {
    /// Returns the bytes received.
    pub fn n_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        self.thought.len() + self.text.len() + calls.sum::<usize>()
    }

    /// Starts a reply with sequence number `seq`.
    pub fn new(seq: u64) -> Self {
        Self {
            seq,
            thought: String::new(),
            text: String::new(),
            calls: Vec::new(),
            has_more_calls: false,
            usage: None,
            model: String::new(),
            provider_items: Vec::new(),
        }
    }

    /// Sets the model that provider state belongs to.
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: model.into(), ..self }
    }

    /// Returns the ID of the reply.
    pub fn id(&self) -> MessageId {
        MessageId::from_seq(self.seq)
    }

    /// Whether nothing visible or runnable has arrived.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }

    /// Processes an event; returns its visible part.
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
            ModelEvent::Call { index, id, name, arguments } => {
                let call = self.find_or_begin_call(index)?;
                // Some servers repeat ID and name in every piece; the first ones count.
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
            ModelEvent::ProviderState(piece) => {
                self.provider_items.push(piece.clone());
                None
            }
        }
    }

    /// Returns the call with an index, creating it if needed; `None` if there are too many.
    fn find_or_begin_call(&mut self, index: usize) -> Option<&mut CallPieces> {
        let position = match self.calls.iter().position(|call| call.index == index) {
            Some(position) => position,
            None if self.calls.len() == CALLS_MAX => {
                self.has_more_calls = true;
                return None;
            }
            None => {
                let (id, name, arguments) = (String::new(), String::new(), String::new());
                self.calls.push(CallPieces { index, id, name, arguments });
                self.calls.len() - 1
            }
        };
        self.calls.get_mut(position)
    }

    /// Ends the reply. Incomplete calls of an interrupted reply are dropped.
    pub fn into_reply(self, end: ReplyEnd) -> Reply {
        let seq = self.seq;
        // The reason not to run the last call, even if it looks complete: its continuation is unknown.
        let (is_whole, last_call_error) = match end {
            ReplyEnd::Complete => (true, None),
            ReplyEnd::OutputLimit => (true, Some(OUTPUT_LIMIT_ERROR)),
            ReplyEnd::SizeLimit => (true, Some(SIZE_LIMIT_ERROR)),
            ReplyEnd::Refused | ReplyEnd::Cancelled | ReplyEnd::Failed(_) => (false, None),
        };
        let last_call_error = if self.has_more_calls { Some(TOO_MANY_CALLS_ERROR) } else { last_call_error };
        let n_calls = if is_whole { self.calls.len() } else { 0 };
        let calls = self.calls.into_iter().take(n_calls).enumerate().map(|(index, pieces)| {
            let id = CallId::from_position(seq, index);
            let provider_id = if pieces.id.is_empty() { id.to_string() } else { pieces.id };
            let arguments = match last_call_error.filter(|_| index + 1 == n_calls) {
                Some(reason) => ToolArguments::Unreadable { reason: reason.to_owned() },
                None => repair::read_arguments(&pieces.arguments),
            };
            let arguments =
                if end == ReplyEnd::Complete { arguments.accept_missing_brackets() } else { arguments };
            ToolCall { id, provider_id, name: pieces.name, arguments }
        });
        let calls = calls.collect();
        Reply {
            id: MessageId::from_seq(seq),
            thought: self.thought,
            text: self.text,
            calls,
            end,
            usage: self.usage,
            provider_state: (!self.provider_items.is_empty())
                .then_some(ProviderState { model: self.model, items: self.provider_items }),
            fallback_model: None,
        }
    }
}

#[cfg(test)]
mod tests;
