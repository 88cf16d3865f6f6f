//! How a client gets at sessions: new ones, stored ones, those that live here, and the list of all.

use std::path::PathBuf;

use crow_acp::{Answer, Client, Opened, Place, SessionInfo, SessionPage, Which};
use crow_core::{Failure, FailureKind};
use crow_store::{BegunBy, Cursor, ListQuery};

use crate::handle::{SessionHandle, SessionMsg};
use crate::host::{HostEvent, Shared};
use crate::open::Lives;
use crate::run_turn::store_failure;
use crate::{clock, open, place};

/// Sessions on one page of a list.
const PAGE_LEN: u32 = 50;

/// Opens what nobody in this process has open.
pub(super) async fn open_stored(
    shared: &Shared,
    client: &Client,
    which: Which,
    place: Place,
    answer: Answer<Opened>,
) {
    let opened = async {
        let place = place::checked(place).await?;
        let kit = shared.kit().await?;
        let opening = match &which {
            Which::New => open::new(kit, place),
            Which::Load(session) | Which::Resume(session) => open::load(kit, session, place).await?,
            Which::Fork(session) => open::fork(kit, session, place).await?,
        };
        Ok((kit.clone(), opening))
    };
    match opened.await {
        Ok((kit, opening)) => {
            if let Which::Load(_) = which {
                open::replay(&kit, client, &opening, Lives::Nowhere).await;
            }
            shared.tell_host(HostEvent::Opened { opening: Box::new(opening), kit, answer }).await;
        }
        Err(failure) => answer.give(Err(failure)),
    }
}

/// Opens what lives in this process already: its turn goes on and nothing of it is replaced.
pub(super) async fn open_live(
    shared: &Shared,
    client: &Client,
    (handle, which): (SessionHandle, Which),
    place: Place,
    answer: Answer<Opened>,
) {
    if let Which::Load(session) = &which {
        let looked = async { open::look(shared.kit().await?, session, place.clone()).await };
        let opening = match looked.await {
            Ok(opening) => opening,
            Err(failure) => return answer.give(Err(failure)),
        };
        if let Ok(kit) = shared.kit().await {
            open::replay(kit, client, &opening, Lives::Here).await;
        }
    }
    let session = handle.id.clone();
    let answer = Answer::new(move |options: Result<_, _>| {
        answer.give(options.map(|options| Opened { session, options }));
    });
    handle.tell(answer, |answer| SessionMsg::Reopen { place, answer });
}

/// Reads a page of the stored sessions.
pub(super) async fn list(
    shared: &Shared,
    cwd: Option<PathBuf>,
    cursor: Option<String>,
) -> Result<SessionPage, Failure> {
    let kit = shared.kit().await?;
    let before = match cursor {
        Some(cursor) => Some(Cursor::parse(&cursor).ok_or_else(|| {
            let why = format!("The cursor {cursor} is not one of ours. Ask for the first page again.");
            Failure::new(FailureKind::InvalidValue, why)
        })?),
        None => None,
    };
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
        let why = format!("cwd is {}, which is not an absolute path.", cwd.display());
        return Err(Failure::new(FailureKind::InvalidValue, why));
    }
    let cwd = cwd.map(|cwd| place::spelled(&cwd).display().to_string());
    let query = ListQuery { cwd, begun_by: BegunBy::Person, before, limit: PAGE_LEN };
    let rows = kit.store.list(query).await.map_err(store_failure)?;
    let next = (rows.len() == PAGE_LEN as usize)
        .then(|| rows.last().map(|row| Cursor::after(row).to_string()))
        .flatten();
    let sessions = rows.into_iter().map(|row| SessionInfo {
        session: row.id,
        cwd: row.cwd.into(),
        title: row.title,
        updated: clock::spelled(row.updated),
    });
    Ok(SessionPage { sessions: sessions.collect(), next })
}
