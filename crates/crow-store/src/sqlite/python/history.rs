//! Brings old messages into an order that a transcript accepts, with names of ours.

use std::mem;

use crow_core::{
    Call, CallId, Content, Ended, Entry, MessageId, Outcome, Part, Prompt, Reply, Status, Usage,
};

use super::{facets, message::OldCall};
use crate::Timestamp;

/// What is said of a call whose result the old database does not have.
const NO_RESULT: &str = "no result of this call was stored; make it again if it is still needed";
/// What is said of a result without words.
const NO_WORDS: &str = "(no output)";
/// How the Python version began the result of a call that failed, and the whole result of one that was stopped.
const FAILED: [&str; 2] = ["Error:", "Tool call cancelled by user"];

/// A conversation while it is read.
#[derive(Debug)]
pub(super) struct History<'a> {
    cwd: &'a str,
    entries: Vec<(Entry, Timestamp)>,
    open: Vec<Call>,
    /// Prompts that came while calls were open.
    waiting: Vec<(Vec<Part>, Timestamp)>,
    tokens: u64,
}

impl<'a> History<'a> {
    pub(super) fn in_folder(cwd: &'a str) -> Self {
        Self { cwd, entries: Vec::new(), open: Vec::new(), waiting: Vec::new(), tokens: 0 }
    }

    pub(super) fn n_entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Tokens in context when the model last spoke.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Adds what a person said, if it is something.
    pub(super) fn prompt(&mut self, parts: Vec<Part>, at: Timestamp) {
        if parts.is_empty() {
            return;
        }
        if !self.open.is_empty() {
            self.waiting.push((parts, at));
            return;
        }
        let id = MessageId::at(self.n_entries());
        self.entries.push((Entry::Prompt(Prompt { id, parts }), at));
    }

    /// Adds what the model said, if it is something. The calls before it get no result any more.
    pub(super) fn reply(&mut self, mut reply: Reply, calls: Vec<OldCall>, at: Timestamp) {
        self.close(at);
        let says_nothing = reply.text.trim().is_empty() && reply.thought.trim().is_empty();
        if says_nothing && calls.is_empty() {
            return;
        }
        let seq = self.n_entries();
        reply.id = MessageId::at(seq);
        let calls = calls.into_iter().enumerate().map(|(index, OldCall { provider_id, name, arguments })| {
            let id = CallId::at(seq, index);
            let provider_id = if provider_id.is_empty() { id.to_string() } else { provider_id };
            Call { id, provider_id, name, arguments }
        });
        reply.calls = calls.collect();
        self.open.clone_from(&reply.calls);
        self.tokens = reply.usage.map_or(self.tokens, Usage::total);
        self.entries.push((Entry::Reply(reply), at));
    }

    /// Adds the result of a call, by the provider's name for it; tells whether there was such a call.
    pub(super) fn result(&mut self, call: &str, parts: Vec<Part>, at: Timestamp) -> bool {
        let named = |open: &Call| {
            open.provider_id == call || (call.is_empty() && open.provider_id == open.id.to_string())
        };
        let Some(place) = self.open.iter().position(named) else { return false };
        let call = self.open.remove(place);
        self.answer(&call, outcome(parts), at);
        if self.open.is_empty() {
            self.let_in();
        }
        true
    }

    /// Gives every open call a result that says that none was stored.
    pub(super) fn close(&mut self, at: Timestamp) {
        for call in mem::take(&mut self.open) {
            self.answer(&call, Outcome::failed(NO_RESULT), at);
        }
        self.let_in();
    }

    pub(super) fn into_entries(self) -> Vec<(Entry, Timestamp)> {
        self.entries
    }

    fn answer(&mut self, call: &Call, outcome: Outcome, at: Timestamp) {
        let facets = facets::of(&call.name, &call.arguments.object(), self.cwd);
        self.entries.push((Entry::Result { call: call.id, facets, outcome }, at));
    }

    fn let_in(&mut self) {
        for (parts, at) in mem::take(&mut self.waiting) {
            self.prompt(parts, at);
        }
    }
}

/// A reply of which nothing but its words is known.
pub(super) fn reply(thought: String, text: String, usage: Option<Usage>) -> Reply {
    Reply {
        id: MessageId::at(0),
        thought,
        text,
        calls: Vec::new(),
        ended: Ended::Normally,
        usage,
        sealed: None,
        answered_by: None,
    }
}

fn outcome(mut parts: Vec<Part>) -> Outcome {
    if parts.is_empty() {
        parts.push(Part::Text(NO_WORDS.to_owned()));
    }
    let has_failed =
        matches!(parts.first(), Some(Part::Text(text)) if FAILED.iter().any(|said| text.starts_with(said)));
    let for_client = parts.iter().map(|part| match part {
        Part::Text(text) | Part::Resource { text, .. } | Part::FromCrow { text, .. } => {
            Content::Text(text.clone())
        }
        Part::Image { mime, data } => Content::Image { mime: mime.clone(), data: data.clone() },
        Part::Link { uri, .. } => Content::Text(uri.clone()),
    });
    let status = if has_failed { Status::Failed } else { Status::Done };
    Outcome { status, for_client: for_client.collect(), for_model: parts, plan: None }
}
