//! Creates new sessions and loads stored ones.

use std::path::PathBuf;
use std::sync::Arc;

use crow_acp::{Client, SessionLocation};
use crow_core::{
    Compaction, Failure, FailureKind, ModelInfo, Reply, SessionConfigOptions, SessionId, SessionUpdate,
    ThoughtLevel, TokenUsage, ToolCall, Transcript, TranscriptEntry, estimate_tool_tokens,
};
use crow_model::ModelSettings;
use crow_store::{NewSession, SessionRow, SideRequestUsage, invent_name};
use crow_tools::Workspace;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::prompt::RenderedPrompt;
use crate::run_turn::{SessionState, StoredState, store_failure};
use crate::runtime::AgentRuntime;
use crate::session::{SessionInit, SessionSettings};
use crate::{clock, prompt, replay, speckit};

/// Result of a call whose real result is unknown.
pub(crate) const RESULT_UNKNOWN: &str =
    "its result is unknown: Crow exited, or could not store it, while this call was running";

/// A session read from the store.
#[derive(Debug)]
struct StoredSession {
    row: SessionRow,
    /// With all messages.
    state: SessionState,
    compactions: Vec<Compaction>,
    side_requests: Vec<SideRequestUsage>,
    usage: TokenUsage,
}

/// Creates a new session. It is stored in the background, so that another process can open it.
pub(crate) fn new_session(runtime: &Arc<AgentRuntime>, location: SessionLocation) -> SessionInit {
    let model = runtime.find_model(None).ok().map(|model| model.name);
    let settings =
        SessionSettings { mode: runtime.config().mode, model, thought_level: ThoughtLevel::Default };
    let id = invent_name();
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

/// A new session that is being stored.
#[derive(Debug)]
pub(crate) struct PendingSession {
    /// Returns the system prompt when the session is stored.
    task: JoinHandle<Result<String, Failure>>,
    /// Cancelled when the session is stored, or storing it failed.
    settled: CancellationToken,
    /// The settings it is stored with; they may have changed since.
    initial_settings: SessionSettings,
}

impl PendingSession {
    pub(crate) fn start(
        runtime: &Arc<AgentRuntime>,
        id: &SessionId,
        location: &SessionLocation,
        initial_settings: SessionSettings,
    ) -> Self {
        let (runtime, id, location, settings_at_start) =
            (runtime.clone(), id.clone(), location.clone(), initial_settings.clone());
        let settled = CancellationToken::new();
        let settled_guard = settled.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _over = settled_guard;
            let RenderedPrompt { text: system_prompt, template } = render_prompt_blocking(
                &runtime,
                &id,
                location.cwd.clone(),
                location.additional_directories.clone(),
            )
            .await?;
            let new = NewSession {
                cwd: location.cwd.display().to_string(),
                model: settings_at_start.model.unwrap_or_default(),
                mode: settings_at_start.mode,
                thought_level: settings_at_start.thought_level,
                system_prompt: system_prompt.clone(),
                parent: None,
                agent_type: None,
                now: clock::now(),
            };
            runtime.store.create_session(&id, new).await.map_err(store_failure)?;
            runtime.store.set_prompt_template(&id, template).await.map_err(store_failure)?;
            Ok(system_prompt)
        });
        Self { task, settled, initial_settings }
    }

    /// Waits until the session is stored or storing it failed. Rendering its prompt reads directories, and the disk may
    /// not respond.
    pub(crate) async fn wait_until_settled(&self) {
        self.settled.cancelled().await;
    }

    /// Waits until the session is stored, then stores changed settings; returns the system prompt.
    pub(crate) async fn wait_until_stored(
        self,
        runtime: &AgentRuntime,
        id: &SessionId,
        current_settings: &watch::Receiver<SessionSettings>,
    ) -> Result<String, Failure> {
        let join_failure = |error: JoinError| Failure::new(FailureKind::Internal, error.to_string());
        let system_prompt = self.task.await.map_err(join_failure)??;
        let current_settings = current_settings.borrow().clone();
        if current_settings.mode != self.initial_settings.mode {
            runtime.store.set_mode(id, current_settings.mode).await.map_err(store_failure)?;
        }
        if current_settings.thought_level != self.initial_settings.thought_level {
            runtime
                .store
                .set_thought_level(id, current_settings.thought_level)
                .await
                .map_err(store_failure)?;
        }
        if let Some(model) =
            current_settings.model.filter(|model| self.initial_settings.model.as_ref() != Some(model))
        {
            runtime.store.set_model(id, &model).await.map_err(store_failure)?;
        }
        Ok(system_prompt)
    }
}

/// Renders a session's system prompt on a blocking thread.
async fn render_prompt_blocking(
    runtime: &AgentRuntime,
    id: &SessionId,
    cwd: PathBuf,
    more_roots: Vec<PathBuf>,
) -> Result<RenderedPrompt, Failure> {
    let (settings, id) = (runtime.config(), id.clone());
    let render = move || prompt::render_system_prompt(&cwd, &more_roots, &id, &settings, &clock::today());
    let rendered = tokio::task::spawn_blocking(render).await;
    rendered.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?
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
    let variables = speckit::variables(runtime, id).await;
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

/// Loads a copy of a stored session, which is not changed. A running turn is copied as far as it is stored.
pub(crate) async fn fork_session(
    runtime: &AgentRuntime,
    id: &SessionId,
    location: SessionLocation,
) -> Result<SessionInit, Failure> {
    let fork_id = invent_name();
    if !runtime.store.fork_session(id, &fork_id, clock::now()).await.map_err(store_failure)? {
        return Err(not_found(id));
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

/// Reads a session from the store.
async fn read_stored_session(runtime: &AgentRuntime, id: &SessionId) -> Result<StoredSession, Failure> {
    let stored = runtime.store.load_session(id).await.map_err(store_failure)?.ok_or_else(|| not_found(id))?;
    let usage = stored.total_usage();
    let system_prompt = match stored.system_prompt {
        // An imported session was created with other tools.
        system_prompt if system_prompt.is_empty() => {
            let RenderedPrompt { text, template } =
                render_prompt_blocking(runtime, id, stored.session.cwd.clone().into(), Vec::new()).await?;
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
    let mut usage_replay = replay::UsageReplay::new(context_window, init);
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
        let (plan, other_updates): (Vec<_>, Vec<_>) = replay::entry_updates(entry, &mut calls)
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
            let result = transcript.entries().iter().rev().find(|entry| replay::is_result(entry, call));
            match result {
                Some(result) => send_updates(replay::entry_updates(result, &mut &*calls)),
                None => {
                    let info = runtime.own_tools.tools.call_info(call, &workspace);
                    client.send_update(&init.id, replay::open_call_update(call, info, owner));
                }
            }
        }
    }
    if let Some(entry) = &unfinished {
        send_updates(replay::entry_updates(entry, &mut calls));
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
    transcript.set_tool_tokens(estimate_tool_tokens(&runtime.own_tools.specs));
    transcript.context_tokens().tokens
}

/// Creates the workspace of a session.
pub(crate) fn session_workspace(runtime: &AgentRuntime, location: &SessionLocation) -> Workspace {
    Workspace::new(
        location.cwd.clone(),
        &location.additional_directories,
        runtime.config().secret_variables.clone(),
    )
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

/// The failure of a session that does not handle its messages.
pub(crate) fn stuck_failure() -> Failure {
    let reason = "the session is blocked by its database; wait a moment, then try again";
    Failure::new(FailureKind::Store, reason)
}

/// The failure for a missing session, with a hint.
pub(crate) fn not_found(id: &SessionId) -> Failure {
    let reason = format!("there is no session {id}; `crow-cli inspect` lists the sessions");
    Failure::new(FailureKind::SessionNotFound, reason)
}
