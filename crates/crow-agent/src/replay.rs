//! What a client saw, told again from what is stored.

use crow_core::{
    Compaction, CompactionStage, ContentPart, OutputStreaming, SessionUpdate, TokenUsage, ToolCall,
    ToolCallContent, ToolCallInfo, ToolCallStatus, TranscriptEntry,
};
use crow_store::SideRequestUsage;

use crate::compact;
use crate::open::{CRASHED, SessionOwner};
use crate::session::SessionInit;
use crate::speckit;

/// Tells a call without a result.
pub(crate) fn open_call_update(call: &ToolCall, facets: ToolCallInfo, lives: SessionOwner) -> SessionUpdate {
    let (status, content) = match lives {
        SessionOwner::Here => (ToolCallStatus::Running, Vec::new()),
        SessionOwner::Nowhere => (ToolCallStatus::Failed, vec![ToolCallContent::Text(CRASHED.to_owned())]),
    };
    SessionUpdate::Call {
        call: call.id,
        name: call.name.clone(),
        facets,
        arguments: call.arguments.to_object(),
        status,
        content,
        prints: OutputStreaming::Nothing,
    }
}

/// What a session had taken at each of its messages.
pub(crate) struct UsageReplay<'a> {
    window: u64,
    compactions: &'a [Compaction],
    /// What was not asked yet.
    asides: &'a [SideRequestUsage],
    so_far: TokenUsage,
}

impl<'a> UsageReplay<'a> {
    /// Begins with the first message.
    pub(crate) fn new(window: u64, opening: &'a SessionInit) -> Self {
        let SessionInit { compactions, asides, .. } = opening;
        Self { window, compactions, asides, so_far: TokenUsage::default() }
    }

    /// Tells what there was to tell at the message in a place.
    pub(crate) fn usage_at(&mut self, seq: u64, entry: &TranscriptEntry) -> Option<SessionUpdate> {
        let usage = entry.usage()?;
        self.add_asides_before(seq);
        self.so_far = self.so_far.saturating_add(usage);
        Some(self.usage_update(usage.context_tokens()?, false))
    }

    /// Tells the compactions that were made before the message in a place.
    pub(crate) fn compactions_before(&mut self, seq: u64) -> Vec<SessionUpdate> {
        let compactions = self.compactions;
        let here = compactions.iter().filter(|by| by.at == seq);
        here.flat_map(|by| self.compaction_updates(by)).collect()
    }

    fn compaction_updates(&mut self, by: &Compaction) -> [SessionUpdate; 3] {
        self.add_asides_before(by.at);
        let id = compact::compaction_id(by.at, by.tokens_before);
        let stage = CompactionStage::Done { summary: by.summary.clone() };
        [
            compact::compaction_started(id.clone()),
            SessionUpdate::Compaction { id, stage, text: compact::compaction_sentence(by) },
            self.estimated_update(by.tokens_after),
        ]
    }

    /// Tells how full the context is where nobody has counted it.
    pub(crate) fn estimated_update(&self, used: u64) -> SessionUpdate {
        self.usage_update(used, true)
    }

    fn usage_update(&self, used: u64, is_guess: bool) -> SessionUpdate {
        SessionUpdate::Usage { used, size: self.window, spent: None, cost: self.so_far.cost, is_guess }
    }

    fn add_asides_before(&mut self, seq: u64) {
        while let [aside, rest @ ..] = self.asides
            && aside.seq <= seq
        {
            self.so_far = self.so_far.saturating_add(aside.usage);
            self.asides = rest;
        }
    }
}

/// Tells whether an entry is the result of a call.
pub(crate) fn is_result(entry: &TranscriptEntry, call: &ToolCall) -> bool {
    matches!(entry, TranscriptEntry::Result { call: of, .. } if *of == call.id)
}

/// Tells one entry as its updates; `calls` are those of the latest reply.
pub(crate) fn entry_updates<'a>(
    entry: &'a TranscriptEntry,
    calls: &mut &'a [ToolCall],
) -> Vec<SessionUpdate> {
    match entry {
        TranscriptEntry::Prompt(prompt) => {
            let message = prompt.id.clone();
            let update = |part: &ContentPart| match speckit::find_report(part) {
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
        TranscriptEntry::Result { call: id, facets, outcome } => {
            let call = calls.iter().find(|call| call.id == *id);
            let mut updates = vec![SessionUpdate::Call {
                call: *id,
                name: call.map(|call| call.name.clone()).unwrap_or_default(),
                facets: facets.clone(),
                arguments: call.map(|call| call.arguments.to_object()).unwrap_or_default(),
                status: outcome.status,
                content: outcome.for_client.clone(),
                prints: OutputStreaming::Nothing,
            }];
            updates.extend(outcome.plan.clone().map(SessionUpdate::Plan));
            updates
        }
    }
}
