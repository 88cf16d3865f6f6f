//! How sessions come to be: new, or from what is stored.

use std::path::Path;

use crow_acp::Client;
use crow_core::{Entry, Failure, FailureKind, Options, Outcome, SessionId, Transcript, Update};
use crow_store::{NewSession, SessionRow};
use crow_tools::Workspace;

use crate::kit::Kit;
use crate::run_turn::{Conversation, store_failure};
use crate::session::{Opening, Standing, render_system_prompt};
use crate::{clock, replay};

const CRASHED: &str = "not run to its end: Crow stopped while this call was open";

/// A session read from the store.
#[derive(Debug)]
pub(crate) struct StoredSession {
    pub(crate) row: SessionRow,
    pub(crate) talk: Conversation,
}

/// Makes a new session.
pub(crate) async fn new(kit: &Kit, cwd: &Path) -> Result<Opening, Failure> {
    let model = kit.model(None).ok().map(|model| model.name.clone());
    let standing = Standing { mode: kit.settings.mode, model };
    let new = NewSession {
        cwd: cwd.display().to_string(),
        model: standing.model.clone().unwrap_or_default(),
        mode: standing.mode,
        system_prompt: String::new(),
        parent: None,
        agent_type: None,
        now: clock::now(),
    };
    let id = kit.store.create_session(new).await.map_err(store_failure)?;
    let rendering = Some(render_system_prompt(kit, cwd.to_owned()));
    let talk = Conversation { rendering, ..Conversation::default() };
    Ok(Opening { id, cwd: cwd.to_owned(), standing, talk, title: None })
}

/// Opens a stored session; calls that a crash left open are closed, on disk first.
pub(crate) async fn load(kit: &Kit, id: &SessionId, cwd: &Path) -> Result<Opening, Failure> {
    let StoredSession { row, talk } = stored(kit, id, &workspace(kit, cwd)).await?;
    let model = kit.model(Some(&row.model)).or_else(|_| kit.model(None)).ok().map(|model| model.name.clone());
    let standing = Standing { mode: row.mode, model };
    Ok(Opening { id: id.clone(), cwd: cwd.to_owned(), standing, talk, title: row.title })
}

/// Reads a session and makes its conversation whole.
pub(crate) async fn stored(
    kit: &Kit,
    id: &SessionId,
    workspace: &Workspace,
) -> Result<StoredSession, Failure> {
    let stored = kit.store.load(id).await.map_err(store_failure)?.ok_or_else(|| not_found(id))?;
    let mut transcript = Transcript::new(stored.system_prompt.clone());
    for entry in stored.entries {
        let seq = transcript.next_seq();
        transcript.push(entry).map_err(|error| {
            let why = format!("Message {seq} of the session {id} cannot stand where it is stored: {error}.");
            Failure::new(FailureKind::Store, why)
        })?;
    }
    for call in transcript.open_calls().to_vec() {
        let facets = kit.tools.facets(&call, workspace);
        let entry = Entry::Result { call: call.id, facets, outcome: Outcome::failed(CRASHED) };
        kit.store.append(id, transcript.next_seq(), &entry, clock::now()).await.map_err(store_failure)?;
        transcript.push(entry).map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    }
    // A session whose first prompt never came has no system prompt yet.
    let is_new = transcript.entries().is_empty() && stored.system_prompt.is_empty();
    let rendering = is_new.then(|| render_system_prompt(kit, workspace.cwd().to_owned()));
    Ok(StoredSession {
        row: stored.session,
        talk: Conversation { transcript, rendering, ..Conversation::default() },
    })
}

/// Tells a client all it saw of a session.
pub(crate) async fn replay(kit: &Kit, client: &Client, opening: &Opening) {
    let window = kit.model(opening.standing.model.as_deref()).map_or(0, |model| model.context_window);
    let mut calls = Vec::new();
    for entry in opening.talk.transcript.entries() {
        for update in replay::updates(entry, &mut calls, window) {
            client.tell(&opening.id, update);
        }
        client.room().await;
    }
    if let Some(title) = opening.title.clone() {
        client.tell(&opening.id, Update::Title(title));
    }
    client.flushed(&opening.id).await;
}

/// Makes the workspace of a session.
pub(crate) fn workspace(kit: &Kit, cwd: &Path) -> Workspace {
    Workspace::new(cwd.to_owned(), &[cwd.to_owned()], kit.settings.secret_variables.clone())
}

/// Shows a session's options.
pub(crate) fn options(kit: &Kit, standing: &Standing) -> Options {
    Options {
        mode: standing.mode,
        model: standing.model.clone(),
        models: kit.settings.models.iter().map(|model| model.name.clone()).collect(),
    }
}

/// Says that a session is not there, and where to look.
pub(crate) fn not_found(id: &SessionId) -> Failure {
    let why = format!("There is no session {id}. `crow-cli inspect` lists the sessions there are.");
    Failure::new(FailureKind::SessionNotFound, why)
}
