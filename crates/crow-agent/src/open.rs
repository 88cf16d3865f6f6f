//! How sessions come to be: new, or from what is stored.

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

use crate::kit::AgentRuntime;
use crate::prompt::RenderedPrompt;
use crate::run_turn::{SessionState, StoredState, store_failure};
use crate::session::{SessionInit, SessionSettings};
use crate::{clock, prompt, replay, speckit};

/// Why a call has no result; nobody knows how far it came.
pub(crate) const CRASHED: &str =
    "its result is not known: Crow stopped, or could not store it, while this call was at work";

/// A session read from the store.
#[derive(Debug)]
struct StoredSession {
    row: SessionRow,
    /// With everything that was said.
    talk: SessionState,
    compactions: Vec<Compaction>,
    asides: Vec<SideRequestUsage>,
    bill: TokenUsage,
}

/// Makes a new session. It goes to disk by itself, so that another process can open it; nobody waits for that.
pub(crate) fn new_session(kit: &Arc<AgentRuntime>, place: SessionLocation) -> SessionInit {
    let model = kit.find_model(None).ok().map(|model| model.name);
    let standing = SessionSettings { mode: kit.config().mode, model, thought_level: ThoughtLevel::Default };
    let id = invent_name();
    let on_disk = StoredState::Coming(PendingSession::start(kit, &id, &place, standing.clone()));
    let talk = SessionState { on_disk, ..SessionState::default() };
    let (compactions, asides, bill) = (Vec::new(), Vec::new(), TokenUsage::default());
    SessionInit { id, place, standing, talk, compactions, asides, bill, title: None, variables: Vec::new() }
}

/// A new session on its way to the disk.
#[derive(Debug)]
pub(crate) struct PendingSession {
    /// Gives its system prompt once it is there.
    stored: JoinHandle<Result<String, Failure>>,
    /// Cancelled once it is there, or failed.
    is_over: CancellationToken,
    /// What it is stored with; it may stand elsewhere by then.
    standing: SessionSettings,
}

impl PendingSession {
    pub(crate) fn start(
        kit: &Arc<AgentRuntime>,
        id: &SessionId,
        place: &SessionLocation,
        standing: SessionSettings,
    ) -> Self {
        let (kit, id, place, stood) = (kit.clone(), id.clone(), place.clone(), standing.clone());
        let is_over = CancellationToken::new();
        let over = is_over.clone().drop_guard();
        let stored = tokio::spawn(async move {
            let _over = over;
            let RenderedPrompt { text: system_prompt, template } =
                render_prompt_blocking(&kit, &id, (place.cwd.clone(), place.more_roots.clone())).await?;
            let new = NewSession {
                cwd: place.cwd.display().to_string(),
                model: stood.model.unwrap_or_default(),
                mode: stood.mode,
                thought_level: stood.thought_level,
                system_prompt: system_prompt.clone(),
                parent: None,
                agent_type: None,
                now: clock::now(),
            };
            kit.store.create_session(&id, new).await.map_err(store_failure)?;
            kit.store.set_prompt_template(&id, template).await.map_err(store_failure)?;
            Ok(system_prompt)
        });
        Self { stored, is_over, standing }
    }

    /// Waits until it is there, or failed. To write its prompt its folders are read, and a disk may not answer.
    pub(crate) async fn wait_until_settled(&self) {
        self.is_over.cancelled().await;
    }

    /// Waits until it is there, and stores what changed meanwhile; gives its system prompt.
    pub(crate) async fn wait_until_stored(
        self,
        kit: &AgentRuntime,
        id: &SessionId,
        now: &watch::Receiver<SessionSettings>,
    ) -> Result<String, Failure> {
        let broken = |error: JoinError| Failure::new(FailureKind::Internal, error.to_string());
        let system_prompt = self.stored.await.map_err(broken)??;
        let now = now.borrow().clone();
        if now.mode != self.standing.mode {
            kit.store.set_mode(id, now.mode).await.map_err(store_failure)?;
        }
        if now.thought_level != self.standing.thought_level {
            kit.store.set_thought_level(id, now.thought_level).await.map_err(store_failure)?;
        }
        if let Some(model) = now.model.filter(|model| self.standing.model.as_ref() != Some(model)) {
            kit.store.set_model(id, &model).await.map_err(store_failure)?;
        }
        Ok(system_prompt)
    }
}

/// Renders a session's system prompt off the loop.
async fn render_prompt_blocking(
    kit: &AgentRuntime,
    id: &SessionId,
    (cwd, more_roots): (PathBuf, Vec<PathBuf>),
) -> Result<RenderedPrompt, Failure> {
    let (settings, id) = (kit.config(), id.clone());
    let render = move || prompt::render_system_prompt((&cwd, &more_roots), &id, &settings, &clock::today());
    let rendered = tokio::task::spawn_blocking(render).await;
    rendered.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?
}

/// Opens a stored session. Calls that a crash left open stay so on disk until the next prompt: they may be at work in
/// another process.
pub(crate) async fn load_session(
    kit: &AgentRuntime,
    id: &SessionId,
    place: SessionLocation,
) -> Result<SessionInit, Failure> {
    let StoredSession { row, talk, compactions, asides, bill } = read_stored_session(kit, id).await?;
    let model =
        kit.find_model(Some(&row.model)).or_else(|_| kit.find_model(None)).ok().map(|model| model.name);
    let standing = SessionSettings { mode: row.mode, model, thought_level: row.thought_level };
    let variables = speckit::variables(kit, id).await;
    let title = row.title;
    Ok(SessionInit { id: id.clone(), place, standing, talk, compactions, asides, bill, title, variables })
}

/// Opens a copy of a stored session, which stays as it is. A turn at work there is copied as far as it is stored.
pub(crate) async fn fork_session(
    kit: &AgentRuntime,
    id: &SessionId,
    place: SessionLocation,
) -> Result<SessionInit, Failure> {
    let copy = invent_name();
    if !kit.store.fork_session(id, &copy, clock::now()).await.map_err(store_failure)? {
        return Err(not_found(id));
    }
    let opening = load_session(kit, &copy, place.clone()).await?;
    let seq = opening.talk.transcript.next_seq();
    let unfinished = match opening.talk.transcript.open_calls() {
        [] => kit.store.read_draft(id, seq).await,
        _ => None,
    };
    let Some(reply) = unfinished else { return Ok(opening) };
    let writer = kit.store.acquire_session_lease(&copy).await.map_err(store_failure)?;
    let stored = kit.store.append_entry(&writer, seq, &TranscriptEntry::Reply(reply), clock::now()).await;
    kit.store.release_session_lease(writer).await;
    stored.map_err(store_failure)?;
    load_session(kit, &copy, place).await
}

/// Reads a session that lives in this process, whose open calls are at work.
pub(crate) async fn read_live_session(
    kit: &AgentRuntime,
    id: &SessionId,
    place: SessionLocation,
) -> Result<SessionInit, Failure> {
    let StoredSession { row, talk, compactions, asides, bill } = match read_stored_session(kit, id).await {
        // It is on its way there.
        Err(failure) if failure.kind == FailureKind::SessionNotFound => {
            let standing = SessionSettings {
                mode: kit.config().mode,
                model: None,
                thought_level: ThoughtLevel::Default,
            };
            let talk = SessionState::default();
            return Ok(SessionInit {
                id: id.clone(),
                place,
                standing,
                talk,
                compactions: Vec::new(),
                asides: Vec::new(),
                bill: TokenUsage::default(),
                title: None,
                variables: Vec::new(),
            });
        }
        read => read?,
    };
    let standing =
        SessionSettings { mode: row.mode, model: Some(row.model), thought_level: row.thought_level };
    let (title, variables) = (row.title, Vec::new());
    Ok(SessionInit { id: id.clone(), place, standing, talk, compactions, asides, bill, title, variables })
}

/// Reads a session as it is on disk.
async fn read_stored_session(kit: &AgentRuntime, id: &SessionId) -> Result<StoredSession, Failure> {
    let stored = kit.store.load_session(id).await.map_err(store_failure)?.ok_or_else(|| not_found(id))?;
    let bill = stored.total_usage();
    let system_prompt = match stored.system_prompt {
        // One that was brought over was told of other tools than ours.
        system_prompt if system_prompt.is_empty() => {
            let RenderedPrompt { text, template } =
                render_prompt_blocking(kit, id, (stored.session.cwd.clone().into(), Vec::new())).await?;
            kit.store.set_prompt_template(id, template).await.map_err(store_failure)?;
            text
        }
        system_prompt => system_prompt,
    };
    let mut transcript = Transcript::new(system_prompt);
    for entry in stored.entries {
        let seq = transcript.next_seq();
        transcript.push(entry).map_err(|error| {
            let why = format!("Message {seq} of the session {id} cannot stand where it is stored: {error}.");
            Failure::new(FailureKind::Store, why)
        })?;
    }
    let is_titled = stored.session.title.is_some();
    let unfinished = match transcript.open_calls() {
        [] => stored.unfinished,
        _ => None,
    };
    let on_disk = StoredState::Same;
    let talk = SessionState { transcript, on_disk, unfinished, is_titled, ..SessionState::default() };
    let (compactions, asides) = (stored.compactions, stored.asides);
    Ok(StoredSession { row: stored.session, talk, compactions, asides, bill })
}

/// Reads a conversation back, whatever was in memory of what was said; gives what it has taken.
pub(crate) async fn recover_conversation(
    kit: &AgentRuntime,
    id: &SessionId,
    talk: &mut SessionState,
) -> Result<TokenUsage, Failure> {
    let StoredSession { talk: stored, compactions, bill, .. } = read_stored_session(kit, id).await?;
    talk.transcript = stored.transcript;
    talk.unfinished = longer_reply(talk.unfinished.take(), stored.unfinished)
        .filter(|reply| reply.id == talk.transcript.next_message_id());
    apply_latest_compaction(&mut talk.transcript, compactions);
    Ok(bill)
}

/// Of what is known of a reply that nobody has stored, takes what came further.
pub(crate) fn longer_reply(one: Option<Reply>, other: Option<Reply>) -> Option<Reply> {
    let len =
        |reply: &Option<Reply>| reply.as_ref().map_or(0, |reply| reply.thought.len() + reply.text.len());
    if len(&other) > len(&one) { other } else { one }
}

/// Shows a transcript as its newest compaction has it.
pub(crate) fn apply_latest_compaction(transcript: &mut Transcript, compactions: Vec<Compaction>) {
    for by in compactions.into_iter().rev() {
        match transcript.compact(by) {
            Ok(()) => return,
            Err(misfit) => tracing::warn!(%misfit, "the conversation is shown as it was before"),
        }
    }
}

/// Who has a session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOwner {
    /// This process: its turn has more to say of the calls that are open.
    Here,
    /// Nobody that we know of.
    Nowhere,
}

/// Tells a client all it saw of a session.
pub(crate) async fn replay_session(
    kit: &AgentRuntime,
    client: &Client,
    opening: &SessionInit,
    lives: SessionOwner,
) {
    let window = kit.find_model(opening.standing.model.as_deref()).map_or(0, |model| model.context_window);
    let unfinished = opening.talk.unfinished.clone().map(TranscriptEntry::Reply);
    let mut calls: &[ToolCall] = &[];
    let mut bill = replay::UsageReplay::new(window, opening);
    let transcript = &opening.talk.transcript;
    let workspace = session_workspace(kit, &opening.place);
    let told = |updates: Vec<SessionUpdate>| {
        updates.into_iter().for_each(|update| client.send_update(&opening.id, update));
    };
    let mut plans = Vec::new();
    for (seq, entry) in (0..).zip(transcript.entries()) {
        let is_open = match entry {
            // Those of a reply that is at work are told below, in the order in which they were announced.
            TranscriptEntry::Result { call, .. } => {
                transcript.open_calls().first().is_some_and(|open| open.id.reply_seq() == call.reply_seq())
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => false,
        };
        if is_open {
            continue;
        }
        if !matches!(entry, TranscriptEntry::Result { .. }) {
            told(std::mem::take(&mut plans));
        }
        told(bill.compactions_before(seq));
        // All calls of a reply were announced before the first of them made a plan.
        let (plan, rest): (Vec<_>, Vec<_>) = replay::entry_updates(entry, &mut calls)
            .into_iter()
            .partition(|update| matches!(update, SessionUpdate::Plan(_)));
        plans.extend(plan);
        told(rest);
        told(bill.usage_at(seq, entry).into_iter().collect());
        client.wait_for_capacity().await;
    }
    told(plans);
    told(bill.compactions_before(transcript.next_seq()));
    if !transcript.open_calls().is_empty() {
        for call in calls {
            let result = transcript.entries().iter().rev().find(|entry| replay::is_result(entry, call));
            match result {
                Some(result) => told(replay::entry_updates(result, &mut &*calls)),
                None => {
                    let facets = kit.own_tools.tools.call_info(call, &workspace);
                    client.send_update(&opening.id, replay::open_call_update(call, facets, lives));
                }
            }
        }
    }
    if let Some(entry) = &unfinished {
        told(replay::entry_updates(entry, &mut calls));
    }
    if !is_usage_counted(opening) {
        let used = estimate_context(kit, opening);
        client.send_update(&opening.id, bill.estimated_update(used));
    }
    if let Some(title) = opening.title.clone() {
        client.send_update(&opening.id, SessionUpdate::Title(title));
    }
    client.flush_updates(&opening.id).await;
}

/// Tells whether the newest reply, or what came after it, tells how full the context is.
fn is_usage_counted(opening: &SessionInit) -> bool {
    let entries = opening.talk.transcript.entries();
    let newest = entries.iter().rposition(|entry| matches!(entry, TranscriptEntry::Reply(_)));
    newest.is_none_or(|place| {
        let is_compacted = opening.compactions.last().is_some_and(|by| by.at > place as u64);
        is_compacted || entries[place].usage().and_then(TokenUsage::context_tokens).is_some()
    })
}

/// Guesses how full the context is.
fn estimate_context(kit: &AgentRuntime, opening: &SessionInit) -> u64 {
    let mut transcript = opening.talk.transcript.clone();
    apply_latest_compaction(&mut transcript, opening.compactions.clone());
    transcript.set_tool_tokens(estimate_tool_tokens(&kit.own_tools.specs));
    transcript.context_tokens().tokens
}

/// Makes the workspace of a session.
pub(crate) fn session_workspace(kit: &AgentRuntime, place: &SessionLocation) -> Workspace {
    Workspace::new(place.cwd.clone(), &place.more_roots, kit.config().secret_variables.clone())
}

/// Shows a session's options.
pub(crate) fn session_options(kit: &AgentRuntime, standing: &SessionSettings) -> SessionConfigOptions {
    SessionConfigOptions {
        mode: standing.mode,
        model: standing.model.clone(),
        models: kit.config().models.iter().map(model_info).collect(),
        thought_level: standing.thought_level,
    }
}

fn model_info(model: &ModelSettings) -> ModelInfo {
    ModelInfo { name: model.name.clone(), provider: model.provider.name.clone() }
}

/// Says that a session does not get on with what it was told.
pub(crate) fn stuck_failure() -> Failure {
    let why = "The session is stuck behind its database. Wait a moment, then try again.";
    Failure::new(FailureKind::Store, why)
}

/// Says that a session is not there, and where to look.
pub(crate) fn not_found(id: &SessionId) -> Failure {
    let why = format!("There is no session {id}. `crow-cli inspect` lists the sessions there are.");
    Failure::new(FailureKind::SessionNotFound, why)
}
