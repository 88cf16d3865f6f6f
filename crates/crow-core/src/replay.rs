//! The session updates that a client gets about stored entries: the same as live, with calls in their final state.

use crate::{
    Compaction, CompactionStage, ContentPart, CrowPart, OutputStreaming, SessionUpdate, SpeckitPart,
    TokenUsage, ToolCall, ToolCallContent, ToolCallInfo, ToolCallStatus, TranscriptEntry, compaction_id,
    compaction_sentence, compaction_started,
};

/// Result of a call whose real result is unknown.
pub const RESULT_UNKNOWN: &str =
    "its result is unknown: Crow exited, or could not store it, while this call was running";

/// Usage of a request that is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideRequestUsage {
    /// Sequence number of the next message.
    pub seq: u64,
    /// Tokens and cost.
    pub usage: TokenUsage,
}

/// Returns the update for a call without a result.
pub fn open_call_update(call: &ToolCall, info: ToolCallInfo, owner: SessionOwner) -> SessionUpdate {
    let (status, content) = match owner {
        SessionOwner::ThisProcess => (ToolCallStatus::InProgress, Vec::new()),
        SessionOwner::Unknown => {
            (ToolCallStatus::Failed, vec![ToolCallContent::Text(RESULT_UNKNOWN.to_owned())])
        }
    };
    SessionUpdate::Call {
        call: call.id,
        name: call.name.clone(),
        info,
        arguments: call.arguments.to_object(),
        status,
        content,
        streaming: OutputStreaming::Off,
    }
}

/// The usage of a session at each of its messages.
pub struct UsageReplay<'a> {
    context_window: u64,
    compactions: &'a [Compaction],
    /// Side requests that are not counted yet.
    side_requests: &'a [SideRequestUsage],
    total: TokenUsage,
}

impl<'a> UsageReplay<'a> {
    /// Starts before the first message.
    pub fn new(
        context_window: u64,
        compactions: &'a [Compaction],
        side_requests: &'a [SideRequestUsage],
    ) -> Self {
        Self { context_window, compactions, side_requests, total: TokenUsage::default() }
    }

    /// Returns the usage update at a message.
    pub fn usage_at(&mut self, seq: u64, entry: &TranscriptEntry) -> Option<SessionUpdate> {
        let usage = entry.usage()?;
        self.add_asides_before(seq);
        self.total = self.total.saturating_add(usage);
        Some(self.usage_update(usage.context_tokens()?, false))
    }

    /// Returns the updates of the compactions before a message.
    pub fn compactions_before(&mut self, seq: u64) -> Vec<SessionUpdate> {
        let compactions = self.compactions;
        let matching = compactions.iter().filter(|compaction| compaction.at_seq == seq);
        matching.flat_map(|compaction| self.compaction_updates(compaction)).collect()
    }

    fn compaction_updates(&mut self, compaction: &Compaction) -> [SessionUpdate; 3] {
        self.add_asides_before(compaction.at_seq);
        let id = compaction_id(compaction.at_seq, compaction.tokens_before);
        let stage = CompactionStage::Done { summary: compaction.summary.clone() };
        [
            compaction_started(id.clone()),
            SessionUpdate::Compaction { id, stage, text: compaction_sentence(compaction) },
            self.estimated_update(compaction.tokens_after),
        ]
    }

    /// Returns the update for an estimated context usage.
    pub fn estimated_update(&self, used: u64) -> SessionUpdate {
        self.usage_update(used, true)
    }

    fn usage_update(&self, used: u64, is_estimate: bool) -> SessionUpdate {
        SessionUpdate::Usage {
            used,
            size: self.context_window,
            tokens_spent: None,
            cost: self.total.cost,
            is_estimate,
        }
    }

    fn add_asides_before(&mut self, seq: u64) {
        while let [side_request, remaining @ ..] = self.side_requests
            && side_request.seq <= seq
        {
            self.total = self.total.saturating_add(side_request.usage);
            self.side_requests = remaining;
        }
    }
}

/// Whether an entry is the result of a call.
pub fn is_result(entry: &TranscriptEntry, call: &ToolCall) -> bool {
    matches!(entry, TranscriptEntry::Result { call: of, .. } if *of == call.id)
}

/// Returns the updates of one entry; `calls` are those of the latest reply.
pub fn entry_updates<'a>(entry: &'a TranscriptEntry, calls: &mut &'a [ToolCall]) -> Vec<SessionUpdate> {
    match entry {
        TranscriptEntry::Prompt(prompt) => {
            let message = prompt.id.clone();
            let update = |part: &ContentPart| match find_report(part) {
                Some(text) => Some(SessionUpdate::Text { message: message.clone(), text: text.to_owned() }),
                None if part.crow_part().is_some() => None,
                None => Some(SessionUpdate::Prompt { message: message.clone(), part: part.clone() }),
            };
            prompt.parts.iter().filter_map(update).collect()
        }
        TranscriptEntry::Reply(reply) => {
            *calls = &reply.calls;
            let mut updates = Vec::new();
            let message = || reply.id.clone();
            if !reply.thought.is_empty() {
                updates.push(SessionUpdate::Thought { message: message(), text: reply.thought.clone() });
            }
            if !reply.text.is_empty() {
                updates.push(SessionUpdate::Text { message: message(), text: reply.text.clone() });
            }
            updates
        }
        TranscriptEntry::Result { call: id, info, result } => {
            let call = calls.iter().find(|call| call.id == *id);
            let mut updates = vec![SessionUpdate::Call {
                call: *id,
                name: call.map(|call| call.name.clone()).unwrap_or_default(),
                info: info.clone(),
                arguments: call.map(|call| call.arguments.to_object()).unwrap_or_default(),
                status: result.status,
                content: result.for_client.clone(),
                streaming: OutputStreaming::Off,
            }];
            updates.extend(result.plan.clone().map(SessionUpdate::Plan));
            updates
        }
    }
}

/// Which process has a session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOwner {
    /// This process: its turn will report on the open calls.
    ThisProcess,
    /// No known process.
    Unknown,
}

/// Returns the text of a report part.
fn find_report(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::FromCrow { kind: CrowPart::Speckit(SpeckitPart::Report), text } => Some(text),
        ContentPart::FromCrow { .. }
        | ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. } => None,
    }
}
