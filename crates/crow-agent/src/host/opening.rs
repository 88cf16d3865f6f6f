//! How a client gets at sessions: new ones, stored ones, those that live here, and the list of all.

use std::path::PathBuf;

use crow_acp::{
    Client, OpenSessionResult, ResponseSender, SessionInfo, SessionLocation, SessionOpenKind, SessionPage,
};
use crow_core::{Failure, FailureKind};
use crow_store::{CreatorFilter, ListQuery, SessionCursor};

use crate::handle::{SessionHandle, SessionMsg};
use crate::host::{HostEvent, HostShared};
use crate::open::SessionOwner;
use crate::run_turn::store_failure;
use crate::{clock, open, place};

/// Sessions on one page of a list.
const PAGE_LEN: u32 = 50;

/// Opens what nobody in this process has open.
pub(super) async fn open_stored(
    shared: &HostShared,
    client: &Client,
    which: SessionOpenKind,
    place: SessionLocation,
    answer: ResponseSender<OpenSessionResult>,
) {
    let opened = async {
        let place = place::check_location(place).await?;
        let kit = shared.runtime().await?;
        let opening = match &which {
            SessionOpenKind::New => open::new_session(kit, place),
            SessionOpenKind::Load(session) | SessionOpenKind::Resume(session) => {
                open::load_session(kit, session, place).await?
            }
            SessionOpenKind::Fork(session) => open::fork_session(kit, session, place).await?,
        };
        Ok((kit.clone(), opening))
    };
    match opened.await {
        Ok((kit, opening)) => {
            if let SessionOpenKind::Load(_) = which {
                open::replay_session(&kit, client, &opening, SessionOwner::Nowhere).await;
            }
            shared.send_to_host(HostEvent::Opened { opening: Box::new(opening), kit, answer }).await;
        }
        Err(failure) => answer.send(Err(failure)),
    }
}

/// Opens what lives in this process already: its turn goes on and nothing of it is replaced.
pub(super) async fn open_live(
    shared: &HostShared,
    client: &Client,
    (handle, which): (SessionHandle, SessionOpenKind),
    place: SessionLocation,
    answer: ResponseSender<OpenSessionResult>,
) {
    if let SessionOpenKind::Load(session) = &which {
        let looked = async { open::read_live_session(shared.runtime().await?, session, place.clone()).await };
        let opening = match looked.await {
            Ok(opening) => opening,
            Err(failure) => return answer.send(Err(failure)),
        };
        if let Ok(kit) = shared.runtime().await {
            open::replay_session(kit, client, &opening, SessionOwner::Here).await;
        }
    }
    let session = handle.id.clone();
    let answer = ResponseSender::new(move |options: Result<_, _>| {
        answer.send(options.map(|options| OpenSessionResult { session, options }));
    });
    handle.send_request(answer, |answer| SessionMsg::Reopen { place, answer });
}

/// Reads a page of the stored sessions.
pub(super) async fn list_sessions(
    shared: &HostShared,
    cwd: Option<PathBuf>,
    cursor: Option<String>,
) -> Result<SessionPage, Failure> {
    let kit = shared.runtime().await?;
    let before = match cursor {
        Some(cursor) => Some(SessionCursor::parse(&cursor).ok_or_else(|| {
            let why = format!("The cursor {cursor} is not one of ours. Ask for the first page again.");
            Failure::new(FailureKind::InvalidValue, why)
        })?),
        None => None,
    };
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
        let why = format!("cwd is {}, which is not an absolute path.", cwd.display());
        return Err(Failure::new(FailureKind::InvalidValue, why));
    }
    let cwd = cwd.map(|cwd| place::normalize_path(&cwd).display().to_string());
    let query = ListQuery { cwd, begun_by: CreatorFilter::Person, before, limit: PAGE_LEN };
    let rows = kit.store.list_sessions(query).await.map_err(store_failure)?;
    let next = (rows.len() == PAGE_LEN as usize)
        .then(|| rows.last().map(|row| SessionCursor::after_session(row).to_string()))
        .flatten();
    let sessions = rows.into_iter().map(|row| SessionInfo {
        session: row.id,
        cwd: row.cwd.into(),
        title: row.title,
        updated: clock::format_rfc3339(row.updated),
    });
    Ok(SessionPage { sessions: sessions.collect(), next })
}
