//! The session updates that a client gets about stored entries: the same as live, with calls in their final state.

mod held;

pub use self::held::{HeldUpdateFilter, StreamPosition};
use crate::{
    CallId, Compaction, CompactionStage, ContentPart, CrowPart, OutputStreaming, Reply, SessionUpdate,
    SpeckitPart, TokenUsage, ToolCall, ToolCallContent, ToolCallInfo, ToolCallStatus, Transcript,
    TranscriptEntry, compaction_id, compaction_sentence, compaction_started,
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
fn open_call_update(call: &ToolCall, info: ToolCallInfo, owner: SessionOwner) -> SessionUpdate {
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
        let id = compaction_id(compaction.at_seq, compaction.began_ms);
        let stage = CompactionStage::Done { summary: compaction.summary.clone() };
        [
            compaction_started(id.clone(), compaction.is_clear()),
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

/// The updates of a stored transcript, entry by entry.
pub struct TranscriptReplay<'a> {
    /// The usage at the entries so far.
    pub usage: UsageReplay<'a>,
    transcript: &'a Transcript,
    /// The next entry.
    seq: u64,
    /// The calls of the latest reply.
    calls: &'a [ToolCall],
    /// Changes of the plan: all calls of a reply were announced before the first of them changed it.
    plans: Vec<SessionUpdate>,
}

impl<'a> TranscriptReplay<'a> {
    /// Starts before the first entry.
    pub fn new(transcript: &'a Transcript, usage: UsageReplay<'a>) -> Self {
        Self { usage, transcript, seq: 0, calls: &[], plans: Vec::new() }
    }

    /// Returns the updates of the next entry; `None` after the last one.
    pub fn next_entry(&mut self) -> Option<Vec<SessionUpdate>> {
        let seq = self.seq;
        let transcript = self.transcript;
        let entry = transcript.entries().get(usize::try_from(seq).ok()?)?;
        self.seq += 1;
        let mut updates = match entry {
            // The results of a running reply follow at the end, in the order in which the calls were announced.
            TranscriptEntry::Result { call, .. } if self.is_of_open_reply(*call) => return Some(Vec::new()),
            TranscriptEntry::Result { .. } => Vec::new(),
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => std::mem::take(&mut self.plans),
        };
        updates.extend(self.usage.compactions_before(seq));
        for update in entry_updates(entry, &mut self.calls) {
            if matches!(update, SessionUpdate::Plan(_)) {
                self.plans.push(update);
            } else {
                updates.push(update);
            }
        }
        updates.extend(self.usage.usage_at(seq, entry));
        Some(updates)
    }

    fn is_of_open_reply(&self, call: CallId) -> bool {
        self.transcript.open_calls().first().is_some_and(|open| open.id.reply_seq() == call.reply_seq())
    }

    /// Returns the updates after the last entry: the calls of a running reply, then a reply that is not finished.
    pub fn last_updates(
        &mut self,
        unfinished: Option<Reply>,
        owner: SessionOwner,
        call_info: impl Fn(&ToolCall) -> ToolCallInfo,
    ) -> Vec<SessionUpdate> {
        let mut updates = std::mem::take(&mut self.plans);
        updates.extend(self.usage.compactions_before(self.transcript.next_seq()));
        let running: &[ToolCall] = if self.transcript.open_calls().is_empty() { &[] } else { self.calls };
        for call in running {
            match result_updates(self.transcript, call) {
                Some(result) => updates.extend(result),
                None => updates.push(open_call_update(call, call_info(call), owner)),
            }
        }
        if let Some(reply) = unfinished {
            updates.extend(entry_updates(&TranscriptEntry::Reply(reply), &mut [].as_slice()));
        }
        updates
    }

    /// Whether the newest reply, or a compaction after it, has a context usage.
    pub fn has_counted_usage(&self) -> bool {
        let entries = self.transcript.entries();
        let newest = entries.iter().rposition(|entry| matches!(entry, TranscriptEntry::Reply(_)));
        newest.is_none_or(|index| {
            let last = self.usage.compactions.last();
            let is_compacted = last.is_some_and(|compaction| compaction.at_seq > index as u64);
            is_compacted || entries[index].usage().and_then(TokenUsage::context_tokens).is_some()
        })
    }
}

fn result_updates(transcript: &Transcript, call: &ToolCall) -> Option<Vec<SessionUpdate>> {
    let result = transcript.entries().iter().rev().find(|entry| is_result(entry, call))?;
    Some(entry_updates(result, &mut std::slice::from_ref(call)))
}

/// Whether an entry is the result of a call.
fn is_result(entry: &TranscriptEntry, call: &ToolCall) -> bool {
    matches!(entry, TranscriptEntry::Result { call: of, .. } if *of == call.id)
}

/// Returns the updates of one entry; `calls` are those of the latest reply.
fn entry_updates<'a>(entry: &'a TranscriptEntry, calls: &mut &'a [ToolCall]) -> Vec<SessionUpdate> {
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

#[cfg(test)]
mod tests;
