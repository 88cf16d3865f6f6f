//! Puts old messages into an order that a transcript accepts, with our IDs.

use std::mem;

use crow_core::{
    CallId, ContentPart, MessageId, Prompt, Reply, ReplyEnd, TokenUsage, ToolCall, ToolCallContent,
    ToolCallStatus, ToolResult, TranscriptEntry,
};
use crow_store::Timestamp;

use super::{call_info, message::OldCall};

/// The result of a call whose result is missing.
const NO_RESULT: &str = "no result of this call was stored; make it again if it is still needed";
/// The text of an empty result.
const NO_OUTPUT: &str = "(no output)";
/// The beginning of a failed result in the Python version, and the whole result of a cancelled call.
const FAILURE_PREFIXES: [&str; 2] = ["Error:", "Tool call cancelled by user"];

/// A conversation while it is read.
#[derive(Debug)]
pub(super) struct HistoryBuilder<'a> {
    cwd: &'a str,
    entries: Vec<(TranscriptEntry, Timestamp)>,
    open_calls: Vec<ToolCall>,
    /// Prompts that arrived while calls were open.
    waiting_prompts: Vec<(Vec<ContentPart>, Timestamp)>,
    context_tokens: u64,
}

impl<'a> HistoryBuilder<'a> {
    pub(super) fn new(cwd: &'a str) -> Self {
        Self {
            cwd,
            entries: Vec::new(),
            open_calls: Vec::new(),
            waiting_prompts: Vec::new(),
            context_tokens: 0,
        }
    }

    pub(super) fn n_entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Tokens in context at the model's last reply.
    pub(super) fn context_tokens(&self) -> u64 {
        self.context_tokens
    }

    /// Appends a prompt, unless it is empty.
    pub(super) fn push_prompt(&mut self, parts: Vec<ContentPart>, time: Timestamp) {
        if parts.is_empty() {
            return;
        }
        if !self.open_calls.is_empty() {
            self.waiting_prompts.push((parts, time));
            return;
        }
        let id = MessageId::from_seq(self.n_entries());
        self.entries.push((TranscriptEntry::Prompt(Prompt { id, parts }), time));
    }

    /// Appends a reply, unless it is empty. Earlier calls get no result any more.
    pub(super) fn push_reply(&mut self, mut reply: Reply, calls: Vec<OldCall>, time: Timestamp) {
        self.close_open_calls(time);
        let has_no_text = reply.text.trim().is_empty() && reply.thought.trim().is_empty();
        if has_no_text && calls.is_empty() {
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
        self.open_calls.clone_from(&reply.calls);
        self.context_tokens = reply.usage.map_or(self.context_tokens, TokenUsage::total_tokens);
        self.entries.push((TranscriptEntry::Reply(reply), time));
    }

    /// Appends the result of a call, by the provider's ID; returns whether there was such a call.
    pub(super) fn push_result(&mut self, call: &str, parts: Vec<ContentPart>, time: Timestamp) -> bool {
        let is_named = |open: &ToolCall| {
            open.provider_id == call || (call.is_empty() && open.provider_id == open.id.to_string())
        };
        let Some(index) = self.open_calls.iter().position(is_named) else { return false };
        let call = self.open_calls.remove(index);
        self.push_tool_result(&call, to_tool_result(parts), time);
        if self.open_calls.is_empty() {
            self.push_waiting_prompts();
        }
        true
    }

    /// Gives every open call a result which says that none was stored.
    pub(super) fn close_open_calls(&mut self, time: Timestamp) {
        for call in mem::take(&mut self.open_calls) {
            self.push_tool_result(&call, ToolResult::failure(NO_RESULT), time);
        }
        self.push_waiting_prompts();
    }

    pub(super) fn into_entries(self) -> Vec<(TranscriptEntry, Timestamp)> {
        self.entries
    }

    fn push_tool_result(&mut self, call: &ToolCall, result: ToolResult, time: Timestamp) {
        let info = call_info::tool_call_info(&call.name, &call.arguments.to_object(), self.cwd);
        self.entries.push((TranscriptEntry::Result { call: call.id, info, result }, time));
    }

    fn push_waiting_prompts(&mut self) {
        for (parts, time) in mem::take(&mut self.waiting_prompts) {
            self.push_prompt(parts, time);
        }
    }
}

/// A reply of which only the text is known.
pub(super) fn text_reply(thought: String, text: String, usage: Option<TokenUsage>) -> Reply {
    Reply {
        id: MessageId::from_seq(0),
        thought,
        text,
        calls: Vec::new(),
        end: ReplyEnd::Complete,
        usage,
        provider_state: None,
        fallback_model: None,
    }
}

fn to_tool_result(mut parts: Vec<ContentPart>) -> ToolResult {
    if parts.is_empty() {
        parts.push(ContentPart::Text(NO_OUTPUT.to_owned()));
    }
    let has_failed = matches!(parts.first(), Some(ContentPart::Text(text)) if FAILURE_PREFIXES.iter().any(|said| text.starts_with(said)));
    let for_client = parts.iter().map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            ToolCallContent::Text(text.clone())
        }
        ContentPart::Image { mime, data } => {
            ToolCallContent::Image { mime: mime.clone(), data: data.clone() }
        }
        ContentPart::Link { uri, .. } => ToolCallContent::Text(uri.clone()),
    });
    let status = if has_failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    ToolResult { status, for_client: for_client.collect(), for_model: parts, plan: None }
}
