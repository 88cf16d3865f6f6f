//! Reads stored sessions.

use crow_acp::SessionLocation;
use crow_core::{
    Compaction, Failure, FailureKind, Reply, SessionId, SideRequestUsage, TokenUsage, Transcript,
};
use crow_project::RenderedPrompt;
use crow_store::SessionRow;

use crate::failures::{session_not_found, store_failure};
use crate::pending_session::{has_core_tools, render_prompt_blocking};
use crate::runtime::AgentRuntime;
use crate::turn_context::{SessionState, StoredState};

/// A session read from the store.
#[derive(Debug)]
pub(crate) struct StoredSession {
    pub(crate) row: SessionRow,
    /// With all messages.
    pub(crate) state: SessionState,
    pub(crate) compactions: Vec<Compaction>,
    pub(crate) side_requests: Vec<SideRequestUsage>,
    pub(crate) usage: TokenUsage,
}

/// Reads a session from the store.
pub(crate) async fn read_stored_session(
    runtime: &AgentRuntime,
    id: &SessionId,
) -> Result<StoredSession, Failure> {
    let stored =
        runtime.store.load_session(id).await.map_err(store_failure)?.ok_or_else(|| session_not_found(id))?;
    let usage = stored.total_usage();
    let system_prompt = match stored.system_prompt {
        // An imported session was created with other tools.
        system_prompt if system_prompt.is_empty() => {
            let location = SessionLocation {
                cwd: stored.session.cwd.clone().into(),
                additional_directories: Vec::new(),
                servers: Vec::new(),
            };
            let has_core_tools = has_core_tools(runtime, Some(&stored.session.model));
            let RenderedPrompt { text, template } =
                render_prompt_blocking(runtime, id, location, has_core_tools).await?;
            runtime.store.set_prompt_template(id, template).await.map_err(store_failure)?;
            text
        }
        system_prompt => system_prompt,
    };
    let mut transcript = Transcript::new(system_prompt);
    for entry in stored.entries {
        let seq = transcript.next_seq();
        transcript.push(entry).map_err(|error| {
            let reason =
                format!("message {seq} of the session {id} is not valid where it is stored: {error}");
            Failure::new(FailureKind::Store, reason)
        })?;
    }
    let is_titled = stored.session.title.is_some();
    let unfinished = match transcript.open_calls() {
        [] => stored.unfinished_reply,
        _ => None,
    };
    let stored_state = StoredState::Current;
    let state = SessionState { transcript, stored_state, unfinished, is_titled, ..SessionState::default() };
    let (compactions, side_requests) = (stored.compactions, stored.side_requests);
    Ok(StoredSession { row: stored.session, state, compactions, side_requests, usage })
}

/// Reloads a session and keeps an unfinished reply in memory; returns its usage.
pub(crate) async fn recover_conversation(
    runtime: &AgentRuntime,
    id: &SessionId,
    state: &mut SessionState,
) -> Result<TokenUsage, Failure> {
    let StoredSession { state: stored, compactions, usage, .. } = read_stored_session(runtime, id).await?;
    state.transcript = stored.transcript;
    state.unfinished = longer_reply(state.unfinished.take(), stored.unfinished)
        .filter(|reply| reply.id == state.transcript.next_message_id());
    apply_latest_compaction(&mut state.transcript, compactions);
    Ok(usage)
}

/// Returns the longer one of two versions of an unfinished reply.
pub(crate) fn longer_reply(left: Option<Reply>, right: Option<Reply>) -> Option<Reply> {
    let len =
        |reply: &Option<Reply>| reply.as_ref().map_or(0, |reply| reply.thought.len() + reply.text.len());
    if len(&right) > len(&left) { right } else { left }
}

/// Applies the newest valid compaction to a transcript.
pub(crate) fn apply_latest_compaction(transcript: &mut Transcript, compactions: Vec<Compaction>) {
    for compaction in compactions.into_iter().rev() {
        match transcript.compact(compaction) {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "a compaction could not be applied; the context before it is used");
            }
        }
    }
}
