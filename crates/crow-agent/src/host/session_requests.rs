//! Opens sessions for a client, new, stored or already open in this process, and lists them.

use std::path::PathBuf;

use crow_acp::{
    Client, EarlierPrompt, OpenSessionResult, ResponseSender, SessionInfo, SessionLocation, SessionOpenKind,
    SessionPage,
};
use crow_core::{ContentPart, Failure, FailureKind, MessageId, SessionId, TranscriptEntry};
use crow_store::{CreatorFilter, ListQuery, SessionCursor};

use crate::failures::store_failure;
use crate::handle::{SessionHandle, SessionMsg};
use crate::host::{HostEvent, HostShared};
use crate::{clock, location, session_init};

/// Sessions on one page of a list.
const PAGE_LEN: u32 = 50;

/// Prompts to go back to; a user goes back to a recent one.
const PROMPTS_MAX: u32 = 200;

/// Bytes of all of them: each is returned whole, to be edited.
const PROMPT_BYTES_MAX: usize = 1024 * 1024;

/// A request to open a session.
pub(super) struct OpenSessionRequest {
    pub(super) kind: SessionOpenKind,
    pub(super) location: SessionLocation,
    pub(super) answer: ResponseSender<OpenSessionResult>,
}

/// Opens a session that is not open in this process.
pub(super) async fn open_stored(
    shared: &HostShared,
    client: &Client,
    OpenSessionRequest { kind, location, answer }: OpenSessionRequest,
) {
    let opened = async {
        let runtime = shared.runtime().await?;
        let location = location::check_location(runtime, location).await?;
        let init = match &kind {
            SessionOpenKind::New => session_init::new_session(runtime, location),
            SessionOpenKind::Load(session) | SessionOpenKind::Resume(session) => {
                session_init::load_session(runtime, session, location).await?
            }
            SessionOpenKind::Fork { session, before } => {
                session_init::fork_session(runtime, session, before.as_ref(), location).await?
            }
        };
        Ok((runtime.clone(), init))
    };
    match opened.await {
        Ok((runtime, init)) => {
            if let SessionOpenKind::Load(_) = kind {
                crate::replay::replay_stored(&runtime, client, &init).await;
            }
            shared.send_to_host(HostEvent::Opened { init: Box::new(init), runtime, answer }).await;
        }
        Err(failure) => answer.send(Err(failure)),
    }
}

/// Opens a session that is already open in this process: its turn continues and its state stays.
pub(super) async fn open_live(
    shared: &HostShared,
    client: &Client,
    handle: SessionHandle,
    OpenSessionRequest { kind, location, answer }: OpenSessionRequest,
) {
    if let SessionOpenKind::Load(session) = &kind {
        let replayed = async {
            let runtime = shared.runtime().await?;
            crate::replay::replay_live(runtime, client, &handle.replays, session, location.clone()).await
        };
        if let Err(failure) = replayed.await {
            return answer.send(Err(failure));
        }
    }
    let session = handle.id.clone();
    let answer = ResponseSender::new(move |options: Result<_, _>| {
        answer.send(options.map(|options| OpenSessionResult { session, options }));
    });
    handle.send_request(answer, |answer| SessionMsg::Reopen { location, answer });
}

/// Returns a page of the stored sessions.
pub(super) async fn list_sessions(
    shared: &HostShared,
    cwd: Option<PathBuf>,
    cursor: Option<String>,
) -> Result<SessionPage, Failure> {
    let runtime = shared.runtime().await?;
    let before = match cursor {
        Some(cursor) => Some(SessionCursor::parse(&cursor).ok_or_else(|| {
            let reason = format!("the cursor {cursor} is not valid; request the first page again");
            Failure::new(FailureKind::InvalidValue, reason)
        })?),
        None => None,
    };
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
        let reason = format!("cwd is {}, which is not an absolute path", cwd.display());
        return Err(Failure::new(FailureKind::InvalidValue, reason));
    }
    let cwd = cwd.map(|cwd| location::normalize_path(&cwd).display().to_string());
    let query = ListQuery { cwd, creator: CreatorFilter::User, before, limit: PAGE_LEN };
    let rows = runtime.store.list_sessions(query).await.map_err(store_failure)?;
    let next = (rows.len() == PAGE_LEN as usize)
        .then(|| rows.last().map(|row| SessionCursor::after_session(row).to_string()))
        .flatten();
    let sessions = rows.into_iter().map(|row| SessionInfo {
        session: row.id,
        cwd: row.cwd.into(),
        title: row.title,
        updated_at: clock::format_rfc3339(row.updated),
    });
    Ok(SessionPage { sessions: sessions.collect(), next_cursor: next })
}

/// Lists the prompts of the user, newest first.
pub(super) async fn list_prompts(
    shared: &HostShared,
    session: &SessionId,
) -> Result<Vec<EarlierPrompt>, Failure> {
    let runtime = shared.runtime().await?;
    let prompts = runtime.store.list_prompts(session, PROMPTS_MAX).await.map_err(store_failure)?;
    let mut n_bytes_left = PROMPT_BYTES_MAX;
    let prompts = prompts.into_iter().filter_map(|stored| {
        let TranscriptEntry::Prompt(prompt) = stored.entry else { return None };
        let user_parts: Vec<&str> = prompt
            .parts
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text(text) => Some(text.as_str()),
                ContentPart::Image { .. }
                | ContentPart::Link { .. }
                | ContentPart::Resource { .. }
                | ContentPart::FromCrow { .. } => None,
            })
            .collect();
        let text = user_parts.join("\n");
        if text.trim().is_empty() || text.len() > n_bytes_left {
            return None;
        }
        n_bytes_left -= text.len();
        Some(EarlierPrompt {
            message: MessageId::from_seq(stored.seq),
            text,
            n_undoable_turns: stored.n_undoable_turns,
            n_undoable_files: stored.n_undoable_files,
        })
    });
    Ok(prompts.collect())
}
