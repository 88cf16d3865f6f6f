//! The host: one loop that finds the session a message is for. It waits for its next event, and for room in the
//! inbox of a session that is stuck; whatever takes time is a task that reports back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Answer, Client, Incoming, Lines, Opened, ServeError, SessionInfo, SessionPage};
use crow_core::{Failure, SessionId, Update};
use crow_store::{Cursor, ListQuery};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::kit::Kit;
use crate::run_turn::store_failure;
use crate::session::{self, Opening, SessionHandle, SessionMsg};
use crate::{clock, commands, open};

/// Messages of a client that may wait for the loop, which hands each on at once.
const EVENTS_LEN: usize = 64;

/// Sessions on one page of a list.
const PAGE_LEN: u32 = 50;

/// How long turns may take to store their last results once the client is gone; it promised to be quick.
const LAST_WORDS: Duration = Duration::from_millis(80);

/// Everything that can happen to a host.
#[derive(Debug)]
enum HostEvent {
    Client(Incoming),
    Opened { opening: Box<Opening>, kit: Arc<Kit>, answer: Answer<Opened> },
}

impl From<Incoming> for HostEvent {
    fn from(incoming: Incoming) -> Self {
        Self::Client(incoming)
    }
}

/// Makes the kit, once; after a failure the next session tries again.
type Load = dyn Fn() -> BoxFuture<'static, Result<Kit, Failure>> + Send + Sync;

/// Serves one client until it closes its end or `stop` comes, then stops what runs.
///
/// `load` reads configuration and database, after the client has its first answer.
pub async fn serve<F>(
    lines: Lines,
    version: &'static str,
    stop: impl Future<Output = ()>,
    load: impl Fn() -> F + Send + Sync + 'static,
) -> Result<(), ServeError>
where
    F: Future<Output = Result<Kit, Failure>> + Send + 'static,
{
    let (events, inbox) = mpsc::channel(EVENTS_LEN);
    let (connected, client) = oneshot::channel();
    let load: Arc<Load> = Arc::new(move || load().boxed());
    let (cut, turns) = (CancellationToken::new(), TaskTracker::new());
    let kit: Arc<OnceCell<Arc<Kit>>> = Arc::default();
    let shared =
        Shared { kit: kit.clone(), load, cut: cut.clone(), turns: turns.clone(), own: events.downgrade() };
    let host = tokio::spawn(async move {
        if let Ok(client) = client.await {
            Host { client, shared, inbox, sessions: HashMap::new() }.run().await;
        }
    });
    let serving = crow_acp::serve(lines, version, events, |client| {
        if connected.send(client).is_err() {
            tracing::error!("the host ended before its client came");
        }
    });
    let served = tokio::select! {
        served = serving => served,
        () = stop => Ok(()),
    };
    cut.cancel();
    if let Some(kit) = kit.get() {
        kit.tools.stop();
    }
    turns.close();
    if tokio::time::timeout(LAST_WORDS, turns.wait()).await.is_err() {
        tracing::warn!("a turn did not end in time; its open calls are closed on load");
    }
    host.abort();
    served
}

#[derive(Clone)]
struct Shared {
    kit: Arc<OnceCell<Arc<Kit>>>,
    load: Arc<Load>,
    cut: CancellationToken,
    turns: TaskTracker,
    own: mpsc::WeakSender<HostEvent>,
}

impl Shared {
    async fn kit(&self) -> Result<&Arc<Kit>, Failure> {
        self.kit.get_or_try_init(async || (self.load)().await.map(Arc::new)).await
    }

    async fn opened(&self, kit: &Arc<Kit>, opening: Opening, answer: Answer<Opened>) {
        let event = HostEvent::Opened { opening: Box::new(opening), kit: kit.clone(), answer };
        if let Some(own) = self.own.upgrade()
            && own.send(event).await.is_err()
        {
            tracing::debug!("a session opened after the host ended");
        }
    }
}

struct Host {
    client: Client,
    shared: Shared,
    inbox: mpsc::Receiver<HostEvent>,
    sessions: HashMap<SessionId, SessionHandle>,
}

impl Host {
    async fn run(mut self) {
        while let Some(event) = self.inbox.recv().await {
            match event {
                HostEvent::Client(incoming) => self.on_client(incoming).await,
                HostEvent::Opened { opening, kit, answer } => self.on_opened(*opening, kit, answer),
            }
        }
    }

    async fn on_client(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Hello => self.warm_up(),
            Incoming::NewSession { cwd, answer } => self.new_session(cwd, answer),
            Incoming::LoadSession { session, cwd, answer } => self.load_session(session, cwd, answer),
            Incoming::ListSessions { cwd, cursor, answer } => self.list_sessions(cwd, cursor, answer),
            Incoming::Prompt { session, parts, answer } => {
                self.to_session(&session, answer, |answer| SessionMsg::Prompt { parts, answer }).await;
            }
            Incoming::SetOption { session, option, value, answer } => {
                self.to_session(&session, answer, |answer| SessionMsg::SetOption { option, value, answer })
                    .await;
            }
            Incoming::Cancel { session } => {
                if let Some(handle) = self.sessions.get(&session) {
                    handle.tell(SessionMsg::Cancel).await;
                }
            }
        }
    }

    async fn to_session<T>(
        &self,
        session: &SessionId,
        answer: Answer<T>,
        msg: impl FnOnce(Answer<T>) -> SessionMsg,
    ) {
        match self.sessions.get(session) {
            Some(handle) => handle.tell(msg(answer)).await,
            None => answer.give(Err(open::not_found(session))),
        }
    }

    /// Loads in the background what the first session will need.
    fn warm_up(&self) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Err(failure) = shared.kit().await {
                tracing::info!(%failure, "could not load yet; the first session says so");
            }
        });
    }

    fn new_session(&self, cwd: PathBuf, answer: Answer<Opened>) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            match shared.kit().await {
                Ok(kit) => shared.opened(kit, open::new(kit, &cwd), answer).await,
                Err(failure) => answer.give(Err(failure)),
            }
        });
    }

    fn load_session(&self, session: SessionId, cwd: PathBuf, answer: Answer<Opened>) {
        let (shared, client) = (self.shared.clone(), self.client.clone());
        let live = self.sessions.get(&session).cloned();
        tokio::spawn(async move {
            let loaded = match (shared.kit().await, &live) {
                (Ok(kit), Some(_)) => open::look(kit, &session, &cwd).await.map(|opening| (kit, opening)),
                (Ok(kit), None) => open::load(kit, &session, &cwd).await.map(|opening| (kit, opening)),
                (Err(failure), _) => Err(failure),
            };
            let (kit, opening) = match loaded {
                Ok(loaded) => loaded,
                Err(failure) => return answer.give(Err(failure)),
            };
            open::replay(kit, &client, &opening).await;
            match live {
                // The session lives already: its turn goes on and nothing of it is replaced.
                Some(handle) => {
                    let answer = Answer::new(move |options: Result<_, _>| {
                        answer.give(options.map(|options| Opened { session, options }));
                    });
                    handle.tell(SessionMsg::ReadOptions { answer }).await;
                }
                None => shared.opened(kit, opening, answer).await,
            }
        });
    }

    fn on_opened(&mut self, opening: Opening, kit: Arc<Kit>, answer: Answer<Opened>) {
        let session = opening.id.clone();
        let options = open::options(&kit, &opening.standing);
        if !self.sessions.contains_key(&session) {
            let (client, cut) = (self.client.clone(), self.shared.cut.child_token());
            let handle = session::start(opening, kit.clone(), client, cut, self.shared.turns.clone());
            self.sessions.insert(session.clone(), handle);
        }
        answer.give(Ok(Opened { session: session.clone(), options }));
        self.client.tell(&session, Update::Commands(commands::on_offer()));
        tokio::spawn(async move { kit.warm_up().await });
    }

    fn list_sessions(&self, cwd: Option<PathBuf>, cursor: Option<String>, answer: Answer<SessionPage>) {
        let shared = self.shared.clone();
        tokio::spawn(async move { answer.give(list(&shared, cwd, cursor).await) });
    }
}

async fn list(shared: &Shared, cwd: Option<PathBuf>, cursor: Option<String>) -> Result<SessionPage, Failure> {
    let kit = shared.kit().await?;
    let before = match cursor {
        Some(cursor) => Some(Cursor::parse(&cursor).ok_or_else(|| {
            let why = format!("The cursor {cursor} is not one of ours. Ask for the first page again.");
            Failure::new(crow_core::FailureKind::InvalidValue, why)
        })?),
        None => None,
    };
    let cwd = cwd.map(|cwd| cwd.display().to_string());
    let rows = kit.store.list(ListQuery { cwd, before, limit: PAGE_LEN }).await.map_err(store_failure)?;
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
