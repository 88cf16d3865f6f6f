//! How sessions come to be: new, or from what is stored.

use std::path::PathBuf;
use std::sync::Arc;

use crow_acp::{Client, Place};
use crow_core::{
    Call, Compaction, Entry, Failure, FailureKind, ModelInfo, Options, Reply, SessionId, ThoughtLevel,
    Transcript, Update, Usage, of_tools,
};
use crow_model::ModelSettings;
use crow_store::{Aside, NewSession, SessionRow, invent_name};
use crow_tools::Workspace;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::kit::Kit;
use crate::prompt::Rendered;
use crate::run_turn::{Conversation, OnDisk, store_failure};
use crate::session::{Opening, Standing};
use crate::{clock, prompt, replay, speckit};

/// Why a call has no result; nobody knows how far it came.
pub(crate) const CRASHED: &str =
    "its result is not known: Crow stopped, or could not store it, while this call was at work";

/// A session read from the store.
#[derive(Debug)]
struct StoredSession {
    row: SessionRow,
    /// With everything that was said.
    talk: Conversation,
    compactions: Vec<Compaction>,
    asides: Vec<Aside>,
    bill: Usage,
}

/// Makes a new session. It goes to disk by itself, so that another process can open it; nobody waits for that.
pub(crate) fn new(kit: &Arc<Kit>, place: Place) -> Opening {
    let model = kit.model(None).ok().map(|model| model.name);
    let standing = Standing { mode: kit.settings().mode, model, thought_level: ThoughtLevel::Default };
    let id = invent_name();
    let on_disk = OnDisk::Coming(Coming::start(kit, &id, &place, standing.clone()));
    let talk = Conversation { on_disk, ..Conversation::default() };
    let (compactions, asides, bill) = (Vec::new(), Vec::new(), Usage::default());
    Opening { id, place, standing, talk, compactions, asides, bill, title: None, variables: Vec::new() }
}

/// A new session on its way to the disk.
#[derive(Debug)]
pub(crate) struct Coming {
    /// Gives its system prompt once it is there.
    stored: JoinHandle<Result<String, Failure>>,
    /// Cancelled once it is there, or failed.
    is_over: CancellationToken,
    /// What it is stored with; it may stand elsewhere by then.
    standing: Standing,
}

impl Coming {
    pub(crate) fn start(kit: &Arc<Kit>, id: &SessionId, place: &Place, standing: Standing) -> Self {
        let (kit, id, place, stood) = (kit.clone(), id.clone(), place.clone(), standing.clone());
        let is_over = CancellationToken::new();
        let over = is_over.clone().drop_guard();
        let stored = tokio::spawn(async move {
            let _over = over;
            let Rendered { text: system_prompt, template } =
                render(&kit, &id, (place.cwd.clone(), place.more_roots.clone())).await?;
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
    pub(crate) async fn over(&self) {
        self.is_over.cancelled().await;
    }

    /// Waits until it is there, and stores what changed meanwhile; gives its system prompt.
    pub(crate) async fn arrived(
        self,
        kit: &Kit,
        id: &SessionId,
        now: &watch::Receiver<Standing>,
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
async fn render(
    kit: &Kit,
    id: &SessionId,
    (cwd, more_roots): (PathBuf, Vec<PathBuf>),
) -> Result<Rendered, Failure> {
    let (settings, id) = (kit.settings(), id.clone());
    let render = move || prompt::render((&cwd, &more_roots), &id, &settings, &clock::today());
    let rendered = tokio::task::spawn_blocking(render).await;
    rendered.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?
}

/// Opens a stored session. Calls that a crash left open stay so on disk until the next prompt: they may be at work in
/// another process.
pub(crate) async fn load(kit: &Kit, id: &SessionId, place: Place) -> Result<Opening, Failure> {
    let StoredSession { row, talk, compactions, asides, bill } = read(kit, id).await?;
    let model = kit.model(Some(&row.model)).or_else(|_| kit.model(None)).ok().map(|model| model.name);
    let standing = Standing { mode: row.mode, model, thought_level: row.thought_level };
    let variables = speckit::variables(kit, id).await;
    let title = row.title;
    Ok(Opening { id: id.clone(), place, standing, talk, compactions, asides, bill, title, variables })
}

/// Opens a copy of a stored session, which stays as it is. A turn at work there is copied as far as it is stored.
pub(crate) async fn fork(kit: &Kit, id: &SessionId, place: Place) -> Result<Opening, Failure> {
    let copy = invent_name();
    if !kit.store.fork(id, &copy, clock::now()).await.map_err(store_failure)? {
        return Err(not_found(id));
    }
    let opening = load(kit, &copy, place.clone()).await?;
    let seq = opening.talk.transcript.next_seq();
    let unfinished = match opening.talk.transcript.open_calls() {
        [] => kit.store.read_draft(id, seq).await,
        _ => None,
    };
    let Some(reply) = unfinished else { return Ok(opening) };
    let writer = kit.store.begin_writing(&copy).await.map_err(store_failure)?;
    let stored = kit.store.append(&writer, seq, &Entry::Reply(reply), clock::now()).await;
    kit.store.end_writing(writer).await;
    stored.map_err(store_failure)?;
    load(kit, &copy, place).await
}

/// Reads a session that lives in this process, whose open calls are at work.
pub(crate) async fn look(kit: &Kit, id: &SessionId, place: Place) -> Result<Opening, Failure> {
    let StoredSession { row, talk, compactions, asides, bill } = match read(kit, id).await {
        // It is on its way there.
        Err(failure) if failure.kind == FailureKind::SessionNotFound => {
            let standing =
                Standing { mode: kit.settings().mode, model: None, thought_level: ThoughtLevel::Default };
            let talk = Conversation::default();
            return Ok(Opening {
                id: id.clone(),
                place,
                standing,
                talk,
                compactions: Vec::new(),
                asides: Vec::new(),
                bill: Usage::default(),
                title: None,
                variables: Vec::new(),
            });
        }
        read => read?,
    };
    let standing = Standing { mode: row.mode, model: Some(row.model), thought_level: row.thought_level };
    let (title, variables) = (row.title, Vec::new());
    Ok(Opening { id: id.clone(), place, standing, talk, compactions, asides, bill, title, variables })
}

/// Reads a session as it is on disk.
async fn read(kit: &Kit, id: &SessionId) -> Result<StoredSession, Failure> {
    let stored = kit.store.load(id).await.map_err(store_failure)?.ok_or_else(|| not_found(id))?;
    let bill = stored.bill();
    let system_prompt = match stored.system_prompt {
        // One that was brought over was told of other tools than ours.
        system_prompt if system_prompt.is_empty() => {
            let Rendered { text, template } =
                render(kit, id, (stored.session.cwd.clone().into(), Vec::new())).await?;
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
    let on_disk = OnDisk::Same;
    let talk = Conversation { transcript, on_disk, unfinished, is_titled, ..Conversation::default() };
    let (compactions, asides) = (stored.compactions, stored.asides);
    Ok(StoredSession { row: stored.session, talk, compactions, asides, bill })
}

/// Reads a conversation back, whatever was in memory of what was said; gives what it has taken.
pub(crate) async fn recover(kit: &Kit, id: &SessionId, talk: &mut Conversation) -> Result<Usage, Failure> {
    let StoredSession { talk: stored, compactions, bill, .. } = read(kit, id).await?;
    talk.transcript = stored.transcript;
    talk.unfinished = further(talk.unfinished.take(), stored.unfinished)
        .filter(|reply| reply.id == talk.transcript.next_message());
    shorten(&mut talk.transcript, compactions);
    Ok(bill)
}

/// Of what is known of a reply that nobody has stored, takes what came further.
pub(crate) fn further(one: Option<Reply>, other: Option<Reply>) -> Option<Reply> {
    let len =
        |reply: &Option<Reply>| reply.as_ref().map_or(0, |reply| reply.thought.len() + reply.text.len());
    if len(&other) > len(&one) { other } else { one }
}

/// Shows a transcript as its newest compaction has it.
pub(crate) fn shorten(transcript: &mut Transcript, compactions: Vec<Compaction>) {
    for by in compactions.into_iter().rev() {
        match transcript.compact(by) {
            Ok(()) => return,
            Err(misfit) => tracing::warn!(%misfit, "the conversation is shown as it was before"),
        }
    }
}

/// Who has a session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lives {
    /// This process: its turn has more to say of the calls that are open.
    Here,
    /// Nobody that we know of.
    Nowhere,
}

/// Tells a client all it saw of a session.
pub(crate) async fn replay(kit: &Kit, client: &Client, opening: &Opening, lives: Lives) {
    let window = kit.model(opening.standing.model.as_deref()).map_or(0, |model| model.context_window);
    let unfinished = opening.talk.unfinished.clone().map(Entry::Reply);
    let mut calls: &[Call] = &[];
    let mut bill = replay::Bill::new(window, opening);
    let transcript = &opening.talk.transcript;
    let workspace = workspace(kit, &opening.place);
    let told = |updates: Vec<Update>| updates.into_iter().for_each(|update| client.tell(&opening.id, update));
    let mut plans = Vec::new();
    for (seq, entry) in (0..).zip(transcript.entries()) {
        let is_open = match entry {
            // Those of a reply that is at work are told below, in the order in which they were announced.
            Entry::Result { call, .. } => {
                transcript.open_calls().first().is_some_and(|open| open.id.reply() == call.reply())
            }
            Entry::Prompt(_) | Entry::Reply(_) => false,
        };
        if is_open {
            continue;
        }
        if !matches!(entry, Entry::Result { .. }) {
            told(std::mem::take(&mut plans));
        }
        told(bill.compacted(seq));
        // All calls of a reply were announced before the first of them made a plan.
        let (plan, rest): (Vec<_>, Vec<_>) = replay::updates(entry, &mut calls)
            .into_iter()
            .partition(|update| matches!(update, Update::Plan(_)));
        plans.extend(plan);
        told(rest);
        told(bill.at(seq, entry).into_iter().collect());
        client.room().await;
    }
    told(plans);
    told(bill.compacted(transcript.next_seq()));
    if !transcript.open_calls().is_empty() {
        for call in calls {
            let result = transcript.entries().iter().rev().find(|entry| replay::is_result(entry, call));
            match result {
                Some(result) => told(replay::updates(result, &mut &*calls)),
                None => {
                    let facets = kit.own_tools.tools.facets(call, &workspace);
                    client.tell(&opening.id, replay::open_call(call, facets, lives));
                }
            }
        }
    }
    if let Some(entry) = &unfinished {
        told(replay::updates(entry, &mut calls));
    }
    if !is_counted(opening) {
        let used = guessed(kit, opening);
        client.tell(&opening.id, bill.guess(used));
    }
    if let Some(title) = opening.title.clone() {
        client.tell(&opening.id, Update::Title(title));
    }
    client.flushed(&opening.id).await;
}

/// Tells whether the newest reply, or what came after it, tells how full the context is.
fn is_counted(opening: &Opening) -> bool {
    let entries = opening.talk.transcript.entries();
    let newest = entries.iter().rposition(|entry| matches!(entry, Entry::Reply(_)));
    newest.is_none_or(|place| {
        let is_compacted = opening.compactions.last().is_some_and(|by| by.at > place as u64);
        is_compacted || entries[place].usage().and_then(Usage::context).is_some()
    })
}

/// Guesses how full the context is.
fn guessed(kit: &Kit, opening: &Opening) -> u64 {
    let mut transcript = opening.talk.transcript.clone();
    shorten(&mut transcript, opening.compactions.clone());
    transcript.set_tools(of_tools(&kit.own_tools.specs));
    transcript.fill().tokens
}

/// Makes the workspace of a session.
pub(crate) fn workspace(kit: &Kit, place: &Place) -> Workspace {
    Workspace::new(place.cwd.clone(), &place.more_roots, kit.settings().secret_variables.clone())
}

/// Shows a session's options.
pub(crate) fn options(kit: &Kit, standing: &Standing) -> Options {
    Options {
        mode: standing.mode,
        model: standing.model.clone(),
        models: kit.settings().models.iter().map(info).collect(),
        thought_level: standing.thought_level,
    }
}

fn info(model: &ModelSettings) -> ModelInfo {
    ModelInfo { name: model.name.clone(), provider: model.provider.name.clone() }
}

/// Says that a session does not get on with what it was told.
pub(crate) fn stuck() -> Failure {
    let why = "The session is stuck behind its database. Wait a moment, then try again.";
    Failure::new(FailureKind::Store, why)
}

/// Says that a session is not there, and where to look.
pub(crate) fn not_found(id: &SessionId) -> Failure {
    let why = format!("There is no session {id}. `crow-cli inspect` lists the sessions there are.");
    Failure::new(FailureKind::SessionNotFound, why)
}
