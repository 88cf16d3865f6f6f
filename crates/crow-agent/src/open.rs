//! How sessions come to be: new, or from what is stored.

use crow_acp::{Client, Place};
use crow_core::{
    Call, Entry, Failure, FailureKind, Grants, ModelInfo, Options, Outcome, SessionId, ThoughtLevel,
    Transcript, Update,
};
use crow_model::ModelSettings;
use crow_store::{NewSession, SessionRow, invent_name};
use crow_tools::Workspace;

use crate::kit::Kit;
use crate::run_turn::{Conversation, OnDisk, TurnCx, store_failure};
use crate::session::{Opening, Standing};
use crate::turn_job::render_system_prompt;
use crate::{clock, replay};

const CRASHED: &str = "not run to its end: Crow stopped while this call was open";

/// A session read from the store.
#[derive(Debug)]
struct StoredSession {
    row: SessionRow,
    talk: Conversation,
}

/// Makes a new session. It is stored with its first prompt: one that nobody speaks in leaves no trace.
pub(crate) fn new(kit: &Kit, place: Place) -> Opening {
    let model = kit.model(None).ok().map(|model| model.name);
    let standing = Standing { mode: kit.settings().mode, model, thought_level: ThoughtLevel::Default };
    let on_disk = OnDisk::Nothing(render_system_prompt(kit, place.cwd.clone(), place.more_roots.clone()));
    let talk = Conversation { on_disk, ..Conversation::default() };
    Opening { id: invent_name(), place, standing, talk, title: None }
}

/// Stores a new session as it stands, with what its model is told first.
pub(crate) async fn store_new(cx: &TurnCx<'_>, system_prompt: &str) -> Result<(), Failure> {
    let standing = cx.standing.borrow().clone();
    let new = NewSession {
        cwd: cx.workspace.cwd().display().to_string(),
        model: standing.model.clone().unwrap_or_default(),
        mode: standing.mode,
        thought_level: standing.thought_level,
        system_prompt: system_prompt.to_owned(),
        parent: None,
        agent_type: None,
        now: clock::now(),
    };
    cx.kit.store.create_session(cx.session, new).await.map_err(store_failure)?;
    // What changed while the row was on its way found no row to change.
    let now = cx.standing.borrow().clone();
    if now.mode != standing.mode {
        cx.kit.store.set_mode(cx.session, now.mode).await.map_err(store_failure)?;
    }
    if now.thought_level != standing.thought_level {
        let level = now.thought_level;
        cx.kit.store.set_thought_level(cx.session, level).await.map_err(store_failure)?;
    }
    if let Some(model) = now.model.filter(|model| standing.model.as_ref() != Some(model)) {
        cx.kit.store.set_model(cx.session, &model).await.map_err(store_failure)?;
    }
    Ok(())
}

/// Opens a stored session; calls that a crash left open are closed, on disk first.
pub(crate) async fn load(kit: &Kit, id: &SessionId, place: Place) -> Result<Opening, Failure> {
    let StoredSession { row, mut talk } = read(kit, id).await?;
    close_crashed(kit, id, &workspace(kit, &place), &mut talk).await?;
    let model = kit.model(Some(&row.model)).or_else(|_| kit.model(None)).ok().map(|model| model.name);
    let standing = Standing { mode: row.mode, model, thought_level: row.thought_level };
    Ok(Opening { id: id.clone(), place, standing, talk, title: row.title })
}

/// Reads a session that lives in this process, whose open calls are at work.
pub(crate) async fn look(kit: &Kit, id: &SessionId, place: Place) -> Result<Opening, Failure> {
    let StoredSession { row, talk } = match read(kit, id).await {
        // Nobody has spoken in it yet.
        Err(failure) if failure.kind == FailureKind::SessionNotFound => {
            return Ok(Opening { id: id.clone(), ..new(kit, place) });
        }
        read => read?,
    };
    let standing = Standing { mode: row.mode, model: Some(row.model), thought_level: row.thought_level };
    Ok(Opening { id: id.clone(), place, standing, talk, title: row.title })
}

/// Reads a session as it is on disk.
async fn read(kit: &Kit, id: &SessionId) -> Result<StoredSession, Failure> {
    let stored = kit.store.load(id).await.map_err(store_failure)?.ok_or_else(|| not_found(id))?;
    let mut transcript = Transcript::new(stored.system_prompt);
    for entry in stored.entries {
        let seq = transcript.next_seq();
        transcript.push(entry).map_err(|error| {
            let why = format!("Message {seq} of the session {id} cannot stand where it is stored: {error}.");
            Failure::new(FailureKind::Store, why)
        })?;
    }
    let is_titled = stored.session.title.is_some();
    let talk = Conversation { transcript, grants: Grants::default(), on_disk: OnDisk::Same, is_titled };
    Ok(StoredSession { row: stored.session, talk })
}

/// Reads a transcript back after the turn that had it broke or could not store.
pub(crate) async fn recover(kit: &Kit, id: &SessionId, workspace: &Workspace) -> Result<Transcript, Failure> {
    let StoredSession { mut talk, .. } = read(kit, id).await?;
    close_crashed(kit, id, workspace, &mut talk).await?;
    Ok(talk.transcript)
}

async fn close_crashed(
    kit: &Kit,
    id: &SessionId,
    workspace: &Workspace,
    talk: &mut Conversation,
) -> Result<(), Failure> {
    let transcript = &mut talk.transcript;
    for call in transcript.open_calls().to_vec() {
        let facets = kit.own_tools.tools.facets(&call, workspace);
        let entry = Entry::Result { call: call.id, facets, outcome: Outcome::failed(CRASHED) };
        kit.store.append(id, transcript.next_seq(), &entry, clock::now()).await.map_err(store_failure)?;
        transcript.push(entry).map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    }
    Ok(())
}

/// Tells a client all it saw of a session.
pub(crate) async fn replay(kit: &Kit, client: &Client, opening: &Opening) {
    let window = kit.model(opening.standing.model.as_deref()).map_or(0, |model| model.context_window);
    let mut calls: &[Call] = &[];
    for entry in opening.talk.transcript.entries() {
        for update in replay::updates(entry, &mut calls, window) {
            client.tell(&opening.id, update);
        }
        client.room().await;
    }
    // A turn that runs has more to say of these.
    let workspace = workspace(kit, &opening.place);
    for call in opening.talk.transcript.open_calls() {
        let facets = kit.own_tools.tools.facets(call, &workspace);
        client.tell(&opening.id, replay::open_call(call, facets));
    }
    if let Some(title) = opening.title.clone() {
        client.tell(&opening.id, Update::Title(title));
    }
    client.flushed(&opening.id).await;
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

/// Says that a session is not there, and where to look.
pub(crate) fn not_found(id: &SessionId) -> Failure {
    let why = format!("There is no session {id}. `crow-cli inspect` lists the sessions there are.");
    Failure::new(FailureKind::SessionNotFound, why)
}
