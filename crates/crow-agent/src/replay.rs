//! Recreates the session updates of a client from stored entries.

use crow_acp::Client;
use crow_core::{
    Compaction, CompactionStage, ContentPart, OutputStreaming, SessionUpdate, TokenUsage, ToolCall,
    ToolCallContent, ToolCallInfo, ToolCallStatus, TranscriptEntry, estimate_tool_tokens,
};
use crow_store::SideRequestUsage;

use crate::builtin_tools::unbound_tools;
use crate::compact;
use crate::runtime::AgentRuntime;
use crate::session_init::{RESULT_UNKNOWN, SessionInit, session_workspace};
use crate::stored_session::apply_latest_compaction;

/// Returns the update for a call without a result.
pub(crate) fn open_call_update(call: &ToolCall, info: ToolCallInfo, owner: SessionOwner) -> SessionUpdate {
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
pub(crate) struct UsageReplay<'a> {
    context_window: u64,
    compactions: &'a [Compaction],
    /// Side requests that are not counted yet.
    side_requests: &'a [SideRequestUsage],
    total: TokenUsage,
}

impl<'a> UsageReplay<'a> {
    /// Starts before the first message.
    pub(crate) fn new(context_window: u64, init: &'a SessionInit) -> Self {
        let SessionInit { compactions, side_requests, .. } = init;
        Self { context_window, compactions, side_requests, total: TokenUsage::default() }
    }

    /// Returns the usage update at a message.
    pub(crate) fn usage_at(&mut self, seq: u64, entry: &TranscriptEntry) -> Option<SessionUpdate> {
        let usage = entry.usage()?;
        self.add_asides_before(seq);
        self.total = self.total.saturating_add(usage);
        Some(self.usage_update(usage.context_tokens()?, false))
    }

    /// Returns the updates of the compactions before a message.
    pub(crate) fn compactions_before(&mut self, seq: u64) -> Vec<SessionUpdate> {
        let compactions = self.compactions;
        let matching = compactions.iter().filter(|compaction| compaction.at_seq == seq);
        matching.flat_map(|compaction| self.compaction_updates(compaction)).collect()
    }

    fn compaction_updates(&mut self, compaction: &Compaction) -> [SessionUpdate; 3] {
        self.add_asides_before(compaction.at_seq);
        let id = compact::compaction_id(compaction.at_seq, compaction.tokens_before);
        let stage = CompactionStage::Done { summary: compaction.summary.clone() };
        [
            compact::compaction_started(id.clone()),
            SessionUpdate::Compaction { id, stage, text: compact::compaction_sentence(compaction) },
            self.estimated_update(compaction.tokens_after),
        ]
    }

    /// Returns the update for an estimated context usage.
    pub(crate) fn estimated_update(&self, used: u64) -> SessionUpdate {
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
pub(crate) fn is_result(entry: &TranscriptEntry, call: &ToolCall) -> bool {
    matches!(entry, TranscriptEntry::Result { call: of, .. } if *of == call.id)
}

/// Returns the updates of one entry; `calls` are those of the latest reply.
pub(crate) fn entry_updates<'a>(
    entry: &'a TranscriptEntry,
    calls: &mut &'a [ToolCall],
) -> Vec<SessionUpdate> {
    match entry {
        TranscriptEntry::Prompt(prompt) => {
            let message = prompt.id.clone();
            let update = |part: &ContentPart| match crow_workflow::find_report(part) {
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
pub(crate) enum SessionOwner {
    /// This process: its turn will report on the open calls.
    ThisProcess,
    /// No known process.
    Unknown,
}

/// Sends the updates of a stored session to a client.
pub(crate) async fn replay_session(
    runtime: &AgentRuntime,
    client: &Client,
    init: &SessionInit,
    owner: SessionOwner,
) {
    let context_window =
        runtime.find_model(init.settings.model.as_deref()).map_or(0, |model| model.context_window);
    let unfinished = init.state.unfinished.clone().map(TranscriptEntry::Reply);
    let mut calls: &[ToolCall] = &[];
    let mut usage_replay = UsageReplay::new(context_window, init);
    let transcript = &init.state.transcript;
    let workspace = session_workspace(runtime, &init.location);
    let send_updates = |updates: Vec<SessionUpdate>| {
        updates.into_iter().for_each(|update| client.send_update(&init.id, update));
    };
    let mut plans = Vec::new();
    for (seq, entry) in (0..).zip(transcript.entries()) {
        let is_open_call = match entry {
            // The results of a running reply are sent below, in the order in which the calls were announced.
            TranscriptEntry::Result { call, .. } => {
                transcript.open_calls().first().is_some_and(|open| open.id.reply_seq() == call.reply_seq())
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => false,
        };
        if is_open_call {
            continue;
        }
        if !matches!(entry, TranscriptEntry::Result { .. }) {
            send_updates(std::mem::take(&mut plans));
        }
        send_updates(usage_replay.compactions_before(seq));
        // All calls of a reply were announced before the first of them changed the plan.
        let (plan, other_updates): (Vec<_>, Vec<_>) = entry_updates(entry, &mut calls)
            .into_iter()
            .partition(|update| matches!(update, SessionUpdate::Plan(_)));
        plans.extend(plan);
        send_updates(other_updates);
        send_updates(usage_replay.usage_at(seq, entry).into_iter().collect());
        client.wait_for_capacity().await;
    }
    send_updates(plans);
    send_updates(usage_replay.compactions_before(transcript.next_seq()));
    if !transcript.open_calls().is_empty() {
        for call in calls {
            let result = transcript.entries().iter().rev().find(|entry| is_result(entry, call));
            match result {
                Some(result) => send_updates(entry_updates(result, &mut &*calls)),
                None => {
                    let info = unbound_tools(runtime).tools.call_info(call, &workspace);
                    client.send_update(&init.id, open_call_update(call, info, owner));
                }
            }
        }
    }
    if let Some(entry) = &unfinished {
        send_updates(entry_updates(entry, &mut calls));
    }
    if !is_usage_counted(init) {
        let used = estimate_context(runtime, init);
        client.send_update(&init.id, usage_replay.estimated_update(used));
    }
    if let Some(title) = init.title.clone() {
        client.send_update(&init.id, SessionUpdate::Title(title));
    }
    client.flush_updates(&init.id).await;
}

/// Whether the newest reply, or a compaction after it, has a context usage.
fn is_usage_counted(init: &SessionInit) -> bool {
    let entries = init.state.transcript.entries();
    let newest = entries.iter().rposition(|entry| matches!(entry, TranscriptEntry::Reply(_)));
    newest.is_none_or(|index| {
        let is_compacted = init.compactions.last().is_some_and(|compaction| compaction.at_seq > index as u64);
        is_compacted || entries[index].usage().and_then(TokenUsage::context_tokens).is_some()
    })
}

/// Estimates the context usage.
fn estimate_context(runtime: &AgentRuntime, init: &SessionInit) -> u64 {
    let mut transcript = init.state.transcript.clone();
    apply_latest_compaction(&mut transcript, init.compactions.clone());
    transcript.set_tool_tokens(estimate_tool_tokens(&unbound_tools(runtime).specs));
    transcript.context_tokens().tokens
}
