//! The host: one loop that finds the session a message is for. It waits for its next event and for nothing else;
//! whatever takes time is a task that reports back.

mod opening;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{
    AgentInfo, Client, IncomingRequest, LineTransport, OpenSessionResult, ResponseSender, ServeError,
    SessionLocation, SessionOpenKind,
};
use crow_core::{Failure, FailureKind, SessionId, SessionUpdate};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::opening::{list_sessions, open_live, open_stored};
use crate::handle::{SessionHandle, SessionMsg};
use crate::kit::AgentRuntime;
use crate::run_turn::store_failure;
use crate::session::{self, SessionInit};
use crate::{commands, open, place};

/// Messages of a client that may wait for the loop, which hands each on at once.
const EVENTS_LEN: usize = 64;

/// What may be asked of a session while it is opened or closed, which takes milliseconds.
const CHANGING_LEN: usize = 256;

/// How long turns may take to store their last results once the client is gone; it promised to be quick.
const LAST_WORDS: Duration = Duration::from_millis(80);

/// Everything that can happen to a host.
#[derive(Debug)]
enum HostEvent {
    Client(IncomingRequest),
    Opened {
        opening: Box<SessionInit>,
        kit: Arc<AgentRuntime>,
        answer: ResponseSender<OpenSessionResult>,
    },
    /// The configuration is usable; `n_outs` is how often somebody had signed out when that was asked.
    SignedIn {
        n_outs: u64,
        answer: ResponseSender<()>,
    },
    /// What was done to a session as a whole is done.
    Settled {
        session: SessionId,
    },
}

impl From<IncomingRequest> for HostEvent {
    fn from(incoming: IncomingRequest) -> Self {
        Self::Client(incoming)
    }
}

/// Makes the kit, once; after a failure the next session tries again.
type RuntimeLoader = dyn Fn() -> BoxFuture<'static, Result<AgentRuntime, Failure>> + Send + Sync;

/// Serves one client until it closes its end or `stop` comes, then stops what runs.
///
/// `load` reads configuration and database, after the client has its first answer.
pub async fn serve_sessions<F>(
    lines: LineTransport,
    about: AgentInfo,
    stop: impl Future<Output = ()>,
    load: impl Fn() -> F + Send + Sync + 'static,
) -> Result<(), ServeError>
where
    F: Future<Output = Result<AgentRuntime, Failure>> + Send + 'static,
{
    let (events, inbox) = mpsc::channel(EVENTS_LEN);
    let (connected, client) = oneshot::channel();
    let load: Arc<RuntimeLoader> = Arc::new(move || load().boxed());
    let (cut, turns) = (CancellationToken::new(), TaskTracker::new());
    let kit: Arc<OnceCell<Arc<AgentRuntime>>> = Arc::default();
    let shared = HostShared {
        kit: kit.clone(),
        load,
        cut: cut.clone(),
        turns: turns.clone(),
        own: events.downgrade(),
    };
    let host = tokio::spawn(async move {
        if let Ok(client) = client.await {
            let host = SessionHost {
                client,
                shared,
                inbox,
                sessions: HashMap::new(),
                changing: HashMap::new(),
                signed: AuthState::In,
                n_outs: 0,
            };
            host.run().await;
        }
    });
    let serving = crow_acp::serve_client(lines, about, events, |client| {
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
        kit.own_tools.tools.stop_programs();
    }
    turns.close();
    if tokio::time::timeout(LAST_WORDS, turns.wait()).await.is_err() {
        tracing::warn!("a turn did not end in time; its open calls are closed on load");
    }
    if let Some(kit) = kit.get() {
        // Whoever of them is Crow has stored by now what it said.
        kit.launcher.kill_all();
    }
    host.abort();
    served
}

#[derive(Clone)]
struct HostShared {
    kit: Arc<OnceCell<Arc<AgentRuntime>>>,
    load: Arc<RuntimeLoader>,
    cut: CancellationToken,
    turns: TaskTracker,
    own: mpsc::WeakSender<HostEvent>,
}

impl HostShared {
    async fn runtime(&self) -> Result<&Arc<AgentRuntime>, Failure> {
        self.kit.get_or_try_init(async || (self.load)().await.map(Arc::new)).await
    }

    /// Reads the configuration again and checks that there is a model to ask.
    async fn sign_in(&self) -> Result<(), Failure> {
        let unusable = |failure: Failure| Failure::new(FailureKind::AuthRequired, failure.sentence);
        let fresh = (self.load)().await?;
        fresh.find_model(None).map_err(unusable)?;
        self.runtime().await?.replace_config(&fresh);
        Ok(())
    }

    async fn send_to_host(&self, event: HostEvent) {
        if let Some(own) = self.own.upgrade()
            && own.send(event).await.is_err()
        {
            tracing::debug!("something ended after the host did");
        }
    }
}

/// Whether models may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthState {
    In,
    Out,
}

struct SessionHost {
    client: Client,
    shared: HostShared,
    inbox: mpsc::Receiver<HostEvent>,
    sessions: HashMap<SessionId, SessionHandle>,
    /// Sessions that are being opened, closed or deleted, each with what is asked of it meanwhile.
    changing: HashMap<SessionId, VecDeque<IncomingRequest>>,
    signed: AuthState,
    n_outs: u64,
}

impl SessionHost {
    async fn run(mut self) {
        while let Some(event) = self.inbox.recv().await {
            match event {
                HostEvent::Client(incoming) => self.on_client_request(incoming),
                HostEvent::Opened { opening, kit, answer } => self.on_opened(*opening, kit, answer),
                HostEvent::SignedIn { n_outs, answer } => {
                    // Whoever signed out since then had the last word.
                    if n_outs == self.n_outs {
                        self.signed = AuthState::In;
                    }
                    answer.send(Ok(()));
                }
                HostEvent::Settled { session } => {
                    for incoming in self.changing.remove(&session).into_iter().flatten() {
                        self.on_client_request(incoming);
                    }
                }
            }
        }
    }

    fn on_client_request(&mut self, incoming: IncomingRequest) {
        if let Some(waiting) = incoming.session().and_then(|session| self.changing.get_mut(session)) {
            match waiting.len() < CHANGING_LEN {
                true => waiting.push_back(incoming),
                false => incoming.reject(open::stuck_failure()),
            }
            return;
        }
        match incoming {
            IncomingRequest::Hello => self.warm_up(),
            IncomingRequest::SignIn { answer } => self.sign_in(answer),
            IncomingRequest::SignOut { answer } => self.sign_out(answer),
            IncomingRequest::Open { which, place, answer } => self.open_session(which, place, answer),
            IncomingRequest::ListSessions { cwd, cursor, answer } => {
                let shared = self.shared.clone();
                tokio::spawn(async move { answer.send(list_sessions(&shared, cwd, cursor).await) });
            }
            IncomingRequest::Close { session, answer } => self.close_session(session, answer),
            IncomingRequest::Delete { session, answer } => self.delete_session(session, answer),
            IncomingRequest::Prompt { session, ticket, said, until, answer } => {
                self.send_to_session(&session, answer, |answer| SessionMsg::Prompt {
                    ticket,
                    said,
                    until,
                    answer,
                });
            }
            IncomingRequest::Steer { session, said, answer } => {
                self.send_to_session(&session, answer, |answer| SessionMsg::Steer { said, answer });
            }
            IncomingRequest::SetOption { session, option, value, answer } => {
                self.send_to_session(&session, answer, |answer| SessionMsg::SetOption {
                    option,
                    value,
                    answer,
                });
            }
            IncomingRequest::Withdraw { session, ticket } => {
                if let Some(handle) = self.sessions.get(&session) {
                    handle.withdraw_prompt(ticket);
                }
            }
            IncomingRequest::Cancel { session } => {
                if let Some(handle) = self.sessions.get(&session) {
                    handle.cancel_turn();
                }
            }
        }
    }

    fn send_to_session<T>(
        &self,
        session: &SessionId,
        answer: ResponseSender<T>,
        msg: impl FnOnce(ResponseSender<T>) -> SessionMsg,
    ) {
        if self.signed == AuthState::Out {
            return answer.send(Err(signed_out_failure()));
        }
        match self.sessions.get(session) {
            Some(handle) => handle.send_request(answer, msg),
            None => answer.send(Err(open::not_found(session))),
        }
    }

    /// Loads in the background what the first session will need.
    fn warm_up(&self) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Err(failure) = shared.runtime().await {
                tracing::info!(%failure, "could not load yet; the first session says so");
            }
        });
    }

    fn sign_in(&self, answer: ResponseSender<()>) {
        let (shared, n_outs) = (self.shared.clone(), self.n_outs);
        tokio::spawn(async move {
            match shared.sign_in().await {
                Ok(()) => shared.send_to_host(HostEvent::SignedIn { n_outs, answer }).await,
                Err(failure) => answer.send(Err(failure)),
            }
        });
    }

    /// Keys are the person's own files and stay; what ends is their use by this connection.
    fn sign_out(&mut self, answer: ResponseSender<()>) {
        self.signed = AuthState::Out;
        self.n_outs += 1;
        self.sessions.values().for_each(SessionHandle::cancel_turn);
        answer.send(Ok(()));
    }

    fn open_session(
        &mut self,
        which: SessionOpenKind,
        place: SessionLocation,
        answer: ResponseSender<OpenSessionResult>,
    ) {
        if self.signed == AuthState::Out {
            return answer.send(Err(signed_out_failure()));
        }
        let (shared, client) = (self.shared.clone(), self.client.clone());
        let stored = match &which {
            SessionOpenKind::New | SessionOpenKind::Fork(_) => None,
            SessionOpenKind::Load(session) | SessionOpenKind::Resume(session) => Some(session.clone()),
        };
        let live = stored.as_ref().and_then(|session| self.sessions.get(session)).cloned();
        match (stored, live) {
            (_, Some(handle)) => drop(tokio::spawn(async move {
                match place::check_location(place).await {
                    Ok(place) => open_live(&shared, &client, (handle, which), place, answer).await,
                    Err(failure) => answer.send(Err(failure)),
                }
            })),
            (None, None) => drop(tokio::spawn(async move {
                open_stored(&shared, &client, which, place, answer).await;
            })),
            (Some(session), None) => self.run_exclusive(session, async move {
                open_stored(&shared, &client, which, place, answer).await;
            }),
        }
    }

    /// Does something to a session as a whole; what is asked of it meanwhile waits.
    fn run_exclusive(&mut self, session: SessionId, work: impl Future<Output = ()> + Send + 'static) {
        self.changing.insert(session.clone(), VecDeque::new());
        let shared = self.shared.clone();
        tokio::spawn(async move {
            // Whatever becomes of the work, the session must not stay like this.
            if let Err(error) = tokio::spawn(work).await {
                tracing::error!(%session, %error, "opening or closing a session broke");
            }
            shared.send_to_host(HostEvent::Settled { session }).await;
        });
    }

    fn on_opened(
        &mut self,
        opening: SessionInit,
        kit: Arc<AgentRuntime>,
        answer: ResponseSender<OpenSessionResult>,
    ) {
        let session = opening.id.clone();
        let options = open::session_options(&kit, &opening.standing);
        if !self.sessions.contains_key(&session) {
            let (client, cut) = (self.client.clone(), self.shared.cut.child_token());
            let handle = session::start_session(opening, kit.clone(), client, cut, self.shared.turns.clone());
            self.sessions.insert(session.clone(), handle);
        }
        answer.send(Ok(OpenSessionResult { session: session.clone(), options }));
        self.client.send_update(&session, SessionUpdate::Commands(commands::available_commands()));
        tokio::spawn(async move { kit.warm_up().await });
    }

    fn close_session(&mut self, session: SessionId, answer: ResponseSender<()>) {
        let Some(handle) = self.sessions.remove(&session) else {
            return answer.send(Err(open::not_found(&session)));
        };
        self.run_exclusive(session, async move {
            handle.close().await;
            answer.send(Ok(()));
        });
    }

    /// Deletes a session; one that is not there is deleted already.
    fn delete_session(&mut self, session: SessionId, answer: ResponseSender<()>) {
        let (handle, shared) = (self.sessions.remove(&session), self.shared.clone());
        self.run_exclusive(session.clone(), async move {
            if let Some(handle) = handle {
                handle.close().await;
            }
            answer.send(erase_session(&shared, &session).await);
        });
    }
}

async fn erase_session(shared: &HostShared, session: &SessionId) -> Result<(), Failure> {
    shared.runtime().await?.store.delete_session(session).await.map(drop).map_err(store_failure)
}

fn signed_out_failure() -> Failure {
    let why = "You signed out. Sign in again to go on; the configured models and keys are still there.";
    Failure::new(FailureKind::AuthRequired, why)
}
