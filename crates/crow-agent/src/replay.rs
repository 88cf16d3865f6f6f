//! Sends the updates of a stored session to a client. `crow-core` makes them.

use crow_acp::{Client, ReplayHold, SessionLocation};
use crow_core::{
    Failure, HeldUpdateFilter, SessionId, SessionOwner, SessionUpdate, ToolCall, TranscriptReplay,
    UsageReplay, estimate_tool_tokens,
};

use crate::builtin_tools::unbound_tools;
use crate::live_replays::LiveReplays;
use crate::location::session_workspace;
use crate::runtime::AgentRuntime;
use crate::session_init::{self, SessionInit};
use crate::stored_session::apply_latest_compaction;
use crate::turn_context::SessionState;

/// Sends the updates of a session that was not open.
pub(crate) async fn replay_stored(runtime: &AgentRuntime, client: &Client, init: &SessionInit) {
    let hold = client.begin_replay(&init.id);
    replay_session(runtime, &hold, init, SessionOwner::Unknown).await;
    drop(hold);
    client.flush_updates(&init.id).await;
}

/// Sends the updates of a session whose turn may be running; what the turn sends meanwhile follows.
pub(crate) async fn replay_live(
    runtime: &AgentRuntime,
    client: &Client,
    replays: &LiveReplays,
    session: &SessionId,
    location: SessionLocation,
) -> Result<(), Failure> {
    let replay = replays.begin_replay(client, session).await;
    let init = session_init::read_live_session(runtime, session, location).await?;
    replay_session(runtime, &replay.hold, &init, SessionOwner::ThisProcess).await;
    let SessionState { transcript, unfinished, .. } = &init.state;
    let mut filter = HeldUpdateFilter::new(transcript, unfinished.as_ref(), &replay.position);
    replay.hold.end(|update| filter.unseen_part(update));
    client.flush_updates(session).await;
    Ok(())
}

async fn replay_session(runtime: &AgentRuntime, hold: &ReplayHold, init: &SessionInit, owner: SessionOwner) {
    let context_window =
        runtime.find_model(init.settings.model.as_deref()).map_or(0, |model| model.context_window);
    let transcript = &init.state.transcript;
    let workspace = session_workspace(runtime, &init.location);
    let send_updates =
        |updates: Vec<SessionUpdate>| updates.into_iter().for_each(|update| hold.send_update(update));
    let usage = UsageReplay::new(context_window, &init.compactions, &init.side_requests);
    let mut replay = TranscriptReplay::new(transcript, usage);
    while let Some(updates) = replay.next_entry() {
        send_updates(updates);
        hold.wait_for_capacity().await;
    }
    let call_info = |call: &ToolCall| unbound_tools(runtime).tools.call_info(call, &workspace);
    send_updates(replay.last_updates(init.state.unfinished.clone(), owner, call_info));
    if !replay.has_counted_usage() {
        send_updates(vec![replay.usage.estimated_update(estimate_context(runtime, init))]);
    }
    send_updates(init.title.clone().map(SessionUpdate::Title).into_iter().collect());
}

/// Estimates the context usage.
fn estimate_context(runtime: &AgentRuntime, init: &SessionInit) -> u64 {
    let mut transcript = init.state.transcript.clone();
    apply_latest_compaction(&mut transcript, init.compactions.clone());
    transcript.set_tool_tokens(estimate_tool_tokens(&unbound_tools(runtime).specs));
    transcript.context_tokens().tokens
}
