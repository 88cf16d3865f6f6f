//! Sends the updates of a stored session to a client. `crow-core` makes them.

use crow_acp::Client;
use crow_core::{
    SessionOwner, SessionUpdate, ToolCall, TranscriptReplay, UsageReplay, call_results, estimate_tool_tokens,
};

use crate::builtin_tools::unbound_tools;
use crate::location::session_workspace;
use crate::runtime::AgentRuntime;
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
    let transcript = &init.state.transcript;
    let workspace = session_workspace(runtime, &init.location);
    let send_updates = |updates: Vec<SessionUpdate>| {
        updates.into_iter().for_each(|update| client.send_update(&init.id, update));
    };
    let usage = UsageReplay::new(context_window, &init.compactions, &init.side_requests);
    let mut replay = TranscriptReplay::new(transcript, usage);
    while let Some(updates) = replay.next_entry() {
        send_updates(updates);
        client.wait_for_capacity().await;
    }
    let call_info = |call: &ToolCall| unbound_tools(runtime).tools.call_info(call, &workspace);
    send_updates(replay.last_updates(init.state.unfinished.clone(), owner, call_info));
    if !replay.has_counted_usage() {
        send_updates(vec![replay.usage.estimated_update(estimate_context(runtime, init))]);
    }
    if let Some(title) = init.title.clone() {
        client.send_update(&init.id, SessionUpdate::Title(title));
    }
    client.flush_updates(&init.id).await;
}

/// Sends the stored results of some calls to a client.
pub(crate) async fn send_results(client: &Client, init: &SessionInit, calls: &[ToolCall]) {
    for update in call_results(&init.state.transcript, calls) {
        client.send_update(&init.id, update);
    }
    client.flush_updates(&init.id).await;
}

/// Estimates the context usage.
fn estimate_context(runtime: &AgentRuntime, init: &SessionInit) -> u64 {
    let mut transcript = init.state.transcript.clone();
    apply_latest_compaction(&mut transcript, init.compactions.clone());
    transcript.set_tool_tokens(estimate_tool_tokens(&unbound_tools(runtime).specs));
    transcript.context_tokens().tokens
}
