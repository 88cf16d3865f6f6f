//! Sends the updates of a stored session to a client. `crow-core` makes them.

use crow_acp::Client;
use crow_core::{
    SessionOwner, SessionUpdate, TokenUsage, ToolCall, TranscriptEntry, UsageReplay, entry_updates,
    estimate_tool_tokens, is_result, open_call_update,
};

use crate::builtin_tools::unbound_tools;
use crate::runtime::AgentRuntime;
use crate::session_directory::session_workspace;
use crate::session_init::SessionInit;
use crate::stored_session::apply_latest_compaction;

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
    let mut usage_replay = UsageReplay::new(context_window, &init.compactions, &init.side_requests);
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
