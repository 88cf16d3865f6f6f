//! Creates new sessions and loads stored ones.

use std::sync::Arc;

use crow_acp::SessionLocation;
use crow_core::{
    Compaction, Failure, FailureKind, MessageId, ModelInfo, SessionConfigOptions, SessionId,
    SideRequestUsage, ThoughtLevel, TokenUsage, TranscriptEntry,
};
use crow_model::ModelSettings;

use crate::failures::store_failure;
use crate::pending_session::PendingSession;
use crate::runtime::AgentRuntime;
use crate::session_settings::SessionSettings;
use crate::stored_session::{StoredSession, read_stored_session};
use crate::turn_context::{SessionState, StoredState};
use crate::{clock, workflow};

/// The initial state of a session.
#[derive(Debug)]
pub(crate) struct SessionInit {
    pub(crate) id: SessionId,
    pub(crate) location: SessionLocation,
    pub(crate) settings: SessionSettings,
    /// With all messages.
    pub(crate) state: SessionState,
    /// Those in effect, oldest first.
    pub(crate) compactions: Vec<Compaction>,
    pub(crate) side_requests: Vec<SideRequestUsage>,
    pub(crate) usage: TokenUsage,
    pub(crate) title: Option<String>,
    /// Environment variables for its programs about the feature that it works on.
    pub(crate) variables: Vec<(String, String)>,
}

/// Creates a new session. It is stored in the background, so that another process can open it.
pub(crate) fn new_session(runtime: &Arc<AgentRuntime>, location: SessionLocation) -> SessionInit {
    let model = runtime.find_model(None).ok().map(|model| model.name);
    let settings =
        SessionSettings { mode: runtime.config().mode, model, thought_level: ThoughtLevel::Default };
    let id = runtime.store.new_session_id();
    let stored_state = StoredState::Pending(PendingSession::start(runtime, &id, &location, settings.clone()));
    let state = SessionState { stored_state, ..SessionState::default() };
    let (compactions, side_requests, usage) = (Vec::new(), Vec::new(), TokenUsage::default());
    SessionInit {
        id,
        location,
        settings,
        state,
        compactions,
        side_requests,
        usage,
        title: None,
        variables: Vec::new(),
    }
}

/// Loads a stored session. Calls that a crash left open stay open on disk until the next prompt: another process may be
/// running them.
pub(crate) async fn load_session(
    runtime: &AgentRuntime,
    id: &SessionId,
    location: SessionLocation,
) -> Result<SessionInit, Failure> {
    let StoredSession { row, state, compactions, side_requests, usage } =
        read_stored_session(runtime, id).await?;
    let model = runtime
        .find_model(Some(&row.model))
        .or_else(|_| runtime.find_model(None))
        .ok()
        .map(|model| model.name);
    let settings = SessionSettings { mode: row.mode, model, thought_level: row.thought_level };
    let variables = workflow::feature_variables(runtime, id).await;
    let title = row.title;
    Ok(SessionInit {
        id: id.clone(),
        location,
        settings,
        state,
        compactions,
        side_requests,
        usage,
        title,
        variables,
    })
}

/// Loads a copy of a stored session, which is not changed: up to a prompt, or all of it. A running turn is copied as far
/// as it is stored.
pub(crate) async fn fork_session(
    runtime: &AgentRuntime,
    id: &SessionId,
    before: Option<&MessageId>,
    location: SessionLocation,
) -> Result<SessionInit, Failure> {
    let fork_id = runtime.store.new_session_id();
    let end = match before {
        Some(message) => Some(message.seq().ok_or_else(|| no_such_prompt(message))?),
        None => None,
    };
    let forked = runtime.store.fork_session(id, &fork_id, end, clock::now()).await.map_err(store_failure)?;
    match (forked, before) {
        (true, _) => {}
        (false, Some(message)) => return Err(no_such_prompt(message)),
        (false, None) => return Err(crate::failures::session_not_found(id)),
    }
    if before.is_some() {
        // The note is about turns that the copy does not have.
        crow_history::clear_pending_undo(&runtime.store, &fork_id).await.map_err(store_failure)?;
        return load_session(runtime, &fork_id, location).await;
    }
    let init = load_session(runtime, &fork_id, location.clone()).await?;
    let seq = init.state.transcript.next_seq();
    let unfinished = match init.state.transcript.open_calls() {
        [] => runtime.store.read_draft(id, seq).await,
        _ => None,
    };
    let Some(reply) = unfinished else { return Ok(init) };
    let lease = runtime.store.acquire_session_lease(&fork_id).await.map_err(store_failure)?;
    let stored = runtime.store.append_entry(&lease, seq, &TranscriptEntry::Reply(reply), clock::now()).await;
    runtime.store.release_session_lease(lease).await;
    stored.map_err(store_failure)?;
    load_session(runtime, &fork_id, location).await
}

fn no_such_prompt(message: &MessageId) -> Failure {
    let reason = format!("the session has no prompt {}", message.as_str());
    Failure::new(FailureKind::InvalidValue, reason)
}

/// Reads a session that is open in this process, whose open calls are running.
pub(crate) async fn read_live_session(
    runtime: &AgentRuntime,
    id: &SessionId,
    location: SessionLocation,
) -> Result<SessionInit, Failure> {
    let StoredSession { row, state, compactions, side_requests, usage } =
        match read_stored_session(runtime, id).await {
            // The session is not stored yet.
            Err(failure) if failure.kind == FailureKind::SessionNotFound => {
                let settings = SessionSettings {
                    mode: runtime.config().mode,
                    model: None,
                    thought_level: ThoughtLevel::Default,
                };
                let state = SessionState::default();
                return Ok(SessionInit {
                    id: id.clone(),
                    location,
                    settings,
                    state,
                    compactions: Vec::new(),
                    side_requests: Vec::new(),
                    usage: TokenUsage::default(),
                    title: None,
                    variables: Vec::new(),
                });
            }
            read => read?,
        };
    let settings =
        SessionSettings { mode: row.mode, model: Some(row.model), thought_level: row.thought_level };
    let (title, variables) = (row.title, Vec::new());
    Ok(SessionInit {
        id: id.clone(),
        location,
        settings,
        state,
        compactions,
        side_requests,
        usage,
        title,
        variables,
    })
}

/// Returns a session's options.
pub(crate) fn session_options(runtime: &AgentRuntime, settings: &SessionSettings) -> SessionConfigOptions {
    SessionConfigOptions {
        mode: settings.mode,
        model: settings.model.clone(),
        models: runtime.config().models.iter().map(model_info).collect(),
        thought_level: settings.thought_level,
    }
}

fn model_info(model: &ModelSettings) -> ModelInfo {
    ModelInfo { name: model.name.clone(), provider: model.provider.name.clone() }
}
