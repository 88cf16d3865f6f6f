//! Brings old messages into an order that a transcript accepts, with names of ours.

use std::mem;

use crow_core::{
    CallId, ContentPart, MessageId, Prompt, Reply, ReplyEnd, TokenUsage, ToolCall, ToolCallContent,
    ToolCallStatus, ToolResult, TranscriptEntry,
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
pub(super) struct HistoryBuilder<'a> {
    cwd: &'a str,
    entries: Vec<(TranscriptEntry, Timestamp)>,
    open: Vec<ToolCall>,
    /// Prompts that came while calls were open.
    waiting: Vec<(Vec<ContentPart>, Timestamp)>,
    tokens: u64,
}

impl<'a> HistoryBuilder<'a> {
    pub(super) fn new(cwd: &'a str) -> Self {
        Self { cwd, entries: Vec::new(), open: Vec::new(), waiting: Vec::new(), tokens: 0 }
    }

    pub(super) fn n_entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Tokens in context when the model last spoke.
    pub(super) fn context_tokens(&self) -> u64 {
        self.tokens
    }

    /// Adds what a person said, if it is something.
    pub(super) fn push_prompt(&mut self, parts: Vec<ContentPart>, at: Timestamp) {
        if parts.is_empty() {
            return;
        }
        if !self.open.is_empty() {
            self.waiting.push((parts, at));
            return;
        }
        let id = MessageId::from_seq(self.n_entries());
        self.entries.push((TranscriptEntry::Prompt(Prompt { id, parts }), at));
    }

    /// Adds what the model said, if it is something. The calls before it get no result any more.
    pub(super) fn push_reply(&mut self, mut reply: Reply, calls: Vec<OldCall>, at: Timestamp) {
        self.close_open_calls(at);
        let says_nothing = reply.text.trim().is_empty() && reply.thought.trim().is_empty();
        if says_nothing && calls.is_empty() {
            return;
        }
        let seq = self.n_entries();
        reply.id = MessageId::from_seq(seq);
        let calls = calls.into_iter().enumerate().map(|(index, OldCall { provider_id, name, arguments })| {
            let id = CallId::from_position(seq, index);
            let provider_id = if provider_id.is_empty() { id.to_string() } else { provider_id };
            ToolCall { id, provider_id, name, arguments }
        });
        reply.calls = calls.collect();
        self.open.clone_from(&reply.calls);
        self.tokens = reply.usage.map_or(self.tokens, TokenUsage::total_tokens);
        self.entries.push((TranscriptEntry::Reply(reply), at));
    }

    /// Adds the result of a call, by the provider's name for it; tells whether there was such a call.
    pub(super) fn push_result(&mut self, call: &str, parts: Vec<ContentPart>, at: Timestamp) -> bool {
        let named = |open: &ToolCall| {
            open.provider_id == call || (call.is_empty() && open.provider_id == open.id.to_string())
        };
        let Some(place) = self.open.iter().position(named) else { return false };
        let call = self.open.remove(place);
        self.push_tool_result(&call, to_tool_result(parts), at);
        if self.open.is_empty() {
            self.push_waiting_prompts();
        }
        true
    }

    /// Gives every open call a result that says that none was stored.
    pub(super) fn close_open_calls(&mut self, at: Timestamp) {
        for call in mem::take(&mut self.open) {
            self.push_tool_result(&call, ToolResult::failure(NO_RESULT), at);
        }
        self.push_waiting_prompts();
    }

    pub(super) fn into_entries(self) -> Vec<(TranscriptEntry, Timestamp)> {
        self.entries
    }

    fn push_tool_result(&mut self, call: &ToolCall, outcome: ToolResult, at: Timestamp) {
        let facets = facets::tool_call_info(&call.name, &call.arguments.to_object(), self.cwd);
        self.entries.push((TranscriptEntry::Result { call: call.id, facets, outcome }, at));
    }

    fn push_waiting_prompts(&mut self) {
        for (parts, at) in mem::take(&mut self.waiting) {
            self.push_prompt(parts, at);
        }
    }
}

/// A reply of which nothing but its words is known.
pub(super) fn text_reply(thought: String, text: String, usage: Option<TokenUsage>) -> Reply {
    Reply {
        id: MessageId::from_seq(0),
        thought,
        text,
        calls: Vec::new(),
        ended: ReplyEnd::Normally,
        usage,
        sealed: None,
        answered_by: None,
    }
}

fn to_tool_result(mut parts: Vec<ContentPart>) -> ToolResult {
    if parts.is_empty() {
        parts.push(ContentPart::Text(NO_WORDS.to_owned()));
    }
    let has_failed = matches!(parts.first(), Some(ContentPart::Text(text)) if FAILED.iter().any(|said| text.starts_with(said)));
    let for_client = parts.iter().map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            ToolCallContent::Text(text.clone())
        }
        ContentPart::Image { mime, data } => {
            ToolCallContent::Image { mime: mime.clone(), data: data.clone() }
        }
        ContentPart::Link { uri, .. } => ToolCallContent::Text(uri.clone()),
    });
    let status = if has_failed { ToolCallStatus::Failed } else { ToolCallStatus::Done };
    ToolResult { status, for_client: for_client.collect(), for_model: parts, plan: None }
}
