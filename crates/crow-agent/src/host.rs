//! The host: one loop that routes messages to sessions. It only waits for its next event; slow work is a task that
//! reports back.

mod session_requests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::pin;
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

use self::session_requests::{OpenSessionRequest, list_prompts, list_sessions, open_live, open_stored};
use crate::failures::store_failure;
use crate::handle::{SessionHandle, SessionMsg};
use crate::runtime::AgentRuntime;
use crate::session;
use crate::session_init::SessionInit;
use crate::{location, session_init};

/// Messages of a client that may wait for the loop, which forwards each one at once.
const EVENTS_LEN: usize = 64;

/// Requests to a session that may wait while it is opened or closed, which takes milliseconds.
const QUEUE_LEN: usize = 256;

/// Time that turns may take to store their last results after the client has disconnected. Most clients send a signal after a
/// second.
const SHUTDOWN_WAIT_MAX: Duration = Duration::from_millis(800);

/// An event of the host.
#[derive(Debug)]
enum HostEvent {
    Client(IncomingRequest),
    Opened {
        init: Box<SessionInit>,
        runtime: Arc<AgentRuntime>,
        answer: ResponseSender<OpenSessionResult>,
    },
    /// The configuration is usable; `n_logouts` is the number of logouts when that was checked.
    LoggedIn {
        n_logouts: u64,
        answer: ResponseSender<()>,
    },
    /// The exclusive work on a session is done.
    SessionReleased {
        session: SessionId,
    },
}

impl From<IncomingRequest> for HostEvent {
    fn from(request: IncomingRequest) -> Self {
        Self::Client(request)
    }
}

/// Creates the runtime, once; after a failure the next session tries again.
type RuntimeLoader = dyn Fn() -> BoxFuture<'static, Result<AgentRuntime, Failure>> + Send + Sync;

/// Serves one client until it disconnects or `stop` completes, then stops everything that runs. A client that has
/// disconnected may still read what was sent to it, until `stop` completes.
///
/// `load` reads configuration and database, after the first answer to the client.
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
    let (client_sender, client_receiver) = oneshot::channel();
    let load: Arc<RuntimeLoader> = Arc::new(move || load().boxed());
    let (cancel, turns) = (CancellationToken::new(), TaskTracker::new());
    let runtime: Arc<OnceCell<Arc<AgentRuntime>>> = Arc::default();
    let shared = HostShared {
        runtime: runtime.clone(),
        load,
        cancel: cancel.clone(),
        turns: turns.clone(),
        inbox_sender: events.downgrade(),
    };
    let host = tokio::spawn(run_host(client_receiver, shared, inbox));
    let closed = CancellationToken::new();
    let close_guard = closed.clone().drop_guard();
    let mut server = Box::pin(crow_acp::serve_client(lines, about, events, |client| {
        if client_sender.send(client).is_err() {
            tracing::error!("the host ended before its client connected");
        }
        close_guard
    }));
    let mut stop = pin!(stop);
    let result = tokio::select! {
        biased;
        served = &mut server => Some(served),
        () = closed.cancelled() => None,
        () = &mut stop => Some(Ok(())),
    };
    cancel.cancel();
    let last_lines = async {
        match result {
            Some(result) => {
                drop(server);
                result
            }
            // The client may go on reading, or may not, until `stop` completes.
            None => tokio::select! {
                biased;
                served = server => served,
                () = stop => Ok(()),
            },
        }
    };
    let (result, ()) = futures_util::future::join(last_lines, end_turns(&runtime, &turns)).await;
    host.abort();
    if let Some(runtime) = runtime.get() {
        runtime.shared_tools.finish_token_refreshes().await;
    }
    result
}

/// Runs the host once its client is connected.
async fn run_host(client: oneshot::Receiver<Client>, shared: HostShared, inbox: mpsc::Receiver<HostEvent>) {
    if let Ok(client) = client.await {
        let host = SessionHost {
            client,
            shared,
            inbox,
            sessions: BTreeMap::new(),
            queued_requests: HashMap::new(),
            auth: AuthState::LoggedIn,
            n_logouts: 0,
        };
        host.run().await;
    }
}

/// Ends what the cancelled turns started, and waits for them to store their last results.
async fn end_turns(runtime: &OnceCell<Arc<AgentRuntime>>, turns: &TaskTracker) {
    if let Some(runtime) = runtime.get() {
        runtime.shared_tools.stop_programs();
    }
    turns.close();
    if tokio::time::timeout(SHUTDOWN_WAIT_MAX, turns.wait()).await.is_err() {
        tracing::warn!("a turn did not end in time; its open calls are closed on load");
    }
    if let Some(runtime) = runtime.get() {
        // Children that are Crow have stored their last results by now.
        runtime.launcher.kill_all();
    }
}

#[derive(Clone)]
struct HostShared {
    runtime: Arc<OnceCell<Arc<AgentRuntime>>>,
    load: Arc<RuntimeLoader>,
    cancel: CancellationToken,
    turns: TaskTracker,
    inbox_sender: mpsc::WeakSender<HostEvent>,
}

impl HostShared {
    async fn runtime(&self) -> Result<&Arc<AgentRuntime>, Failure> {
        self.runtime.get_or_try_init(async || (self.load)().await.map(Arc::new)).await
    }

    /// Loads the configuration again and checks that it has a model.
    async fn sign_in(&self) -> Result<(), Failure> {
        let auth_failure = |failure: Failure| Failure::new(FailureKind::AuthRequired, failure.message);
        let new_runtime = (self.load)().await?;
        new_runtime.find_model(None).map_err(auth_failure)?;
        self.runtime().await?.replace_config(&new_runtime);
        Ok(())
    }

    async fn send_to_host(&self, event: HostEvent) {
        if let Some(sender) = self.inbox_sender.upgrade()
            && sender.send(event).await.is_err()
        {
            tracing::debug!("an event arrived after the host had ended");
        }
    }
}

/// Whether models may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthState {
    LoggedIn,
    LoggedOut,
}

struct SessionHost {
    client: Client,
    shared: HostShared,
    inbox: mpsc::Receiver<HostEvent>,
    /// In an order: they end in it with the connection, which a simulation repeats exactly.
    sessions: BTreeMap<SessionId, SessionHandle>,
    /// Sessions that are being opened, closed or deleted, each with the requests that wait for it.
    queued_requests: HashMap<SessionId, VecDeque<IncomingRequest>>,
    auth: AuthState,
    n_logouts: u64,
}

impl SessionHost {
    async fn run(mut self) {
        while let Some(event) = self.inbox.recv().await {
            match event {
                HostEvent::Client(request) => self.on_client_request(request),
                HostEvent::Opened { init, runtime, answer } => self.on_opened(*init, runtime, answer),
                HostEvent::LoggedIn { n_logouts, answer } => {
                    // A logout after the login request takes precedence.
                    if n_logouts == self.n_logouts {
                        self.auth = AuthState::LoggedIn;
                    }
                    answer.send(Ok(()));
                }
                HostEvent::SessionReleased { session } => {
                    for request in self.queued_requests.remove(&session).into_iter().flatten() {
                        self.on_client_request(request);
                    }
                }
            }
        }
    }

    fn on_client_request(&mut self, request: IncomingRequest) {
        if let Some(queue) = request.session().and_then(|session| self.queued_requests.get_mut(session)) {
            match queue.len() < QUEUE_LEN {
                true => queue.push_back(request),
                false => request.reject(crate::failures::stuck_session()),
            }
            return;
        }
        match request {
            IncomingRequest::Initialized => self.warm_up(),
            IncomingRequest::Authenticate { answer } => self.sign_in(answer),
            IncomingRequest::Logout { answer } => self.sign_out(answer),
            IncomingRequest::Open { kind, location, answer } => {
                self.open_session(kind, location, answer);
            }
            IncomingRequest::ListSessions { cwd, cursor, answer } => {
                let shared = self.shared.clone();
                tokio::spawn(async move { answer.send(list_sessions(&shared, cwd, cursor).await) });
            }
            IncomingRequest::ListPrompts { session, answer } => {
                let shared = self.shared.clone();
                tokio::spawn(async move { answer.send(list_prompts(&shared, &session).await) });
            }
            IncomingRequest::Close { session, answer } => self.close_session(session, answer),
            IncomingRequest::Delete { session, answer } => self.delete_session(session, answer),
            IncomingRequest::Prompt { session, prompt_id, content, turn_scope, answer } => {
                self.send_to_session(&session, answer, |answer| SessionMsg::Prompt {
                    prompt_id,
                    content,
                    turn_scope,
                    answer,
                });
            }
            IncomingRequest::Steer { session, content, answer } => {
                self.send_to_session(&session, answer, |answer| SessionMsg::Steer { content, answer });
            }
            IncomingRequest::SetOption { session, option, value, answer } => {
                self.send_to_session(&session, answer, |answer| SessionMsg::SetOption {
                    option,
                    value,
                    answer,
                });
            }
            IncomingRequest::Withdraw { session, prompt_id } => {
                if let Some(handle) = self.sessions.get(&session) {
                    handle.withdraw_prompt(prompt_id);
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
        if self.auth == AuthState::LoggedOut {
            return answer.send(Err(signed_out_failure()));
        }
        match self.sessions.get(session) {
            Some(handle) => handle.send_request(answer, msg),
            None => answer.send(Err(crate::failures::session_not_open(session))),
        }
    }

    /// Loads in the background what the first session will need.
    fn warm_up(&self) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Err(failure) = shared.runtime().await {
                tracing::info!(%failure, "could not load the configuration yet; the first session reports it");
            }
        });
    }

    fn sign_in(&self, answer: ResponseSender<()>) {
        let (shared, n_logouts) = (self.shared.clone(), self.n_logouts);
        tokio::spawn(async move {
            match shared.sign_in().await {
                Ok(()) => shared.send_to_host(HostEvent::LoggedIn { n_logouts, answer }).await,
                Err(failure) => answer.send(Err(failure)),
            }
        });
    }

    /// Logs out: the keys remain in the user's files, and this connection stops using them.
    fn sign_out(&mut self, answer: ResponseSender<()>) {
        self.auth = AuthState::LoggedOut;
        self.n_logouts += 1;
        self.sessions.values().for_each(SessionHandle::cancel_turn);
        answer.send(Ok(()));
    }

    fn open_session(
        &mut self,
        kind: SessionOpenKind,
        location: SessionLocation,
        answer: ResponseSender<OpenSessionResult>,
    ) {
        if self.auth == AuthState::LoggedOut {
            return answer.send(Err(signed_out_failure()));
        }
        let (shared, client) = (self.shared.clone(), self.client.clone());
        let stored = match &kind {
            SessionOpenKind::New | SessionOpenKind::Fork { .. } => None,
            SessionOpenKind::Load(session) | SessionOpenKind::Resume(session) => Some(session.clone()),
        };
        let live = stored.as_ref().and_then(|session| self.sessions.get(session)).cloned();
        // One whose driver has panicked is opened anew.
        let live = live.filter(|handle| !handle.inbox.is_closed());
        match (stored, live) {
            (_, Some(handle)) => drop(tokio::spawn(async move {
                let checked =
                    async { location::check_location(shared.runtime().await?.as_ref(), location).await };
                match checked.await {
                    Ok(location) => {
                        let request = OpenSessionRequest { kind, location, answer };
                        open_live(&shared, &client, handle, request).await;
                    }
                    Err(failure) => answer.send(Err(failure)),
                }
            })),
            (None, None) => drop(tokio::spawn(async move {
                open_stored(&shared, &client, OpenSessionRequest { kind, location, answer }).await;
            })),
            (Some(session), None) => self.run_exclusive(session, async move {
                open_stored(&shared, &client, OpenSessionRequest { kind, location, answer }).await;
            }),
        }
    }

    /// Runs exclusive work on a session; requests to the session wait.
    fn run_exclusive(&mut self, session: SessionId, work: impl Future<Output = ()> + Send + 'static) {
        self.queued_requests.insert(session.clone(), VecDeque::new());
        let shared = self.shared.clone();
        tokio::spawn(async move {
            // Even if the work panics, the session must be released.
            if let Err(error) = tokio::spawn(work).await {
                tracing::error!(%session, %error, "opening or closing a session panicked");
            }
            shared.send_to_host(HostEvent::SessionReleased { session }).await;
        });
    }

    fn on_opened(
        &mut self,
        init: SessionInit,
        runtime: Arc<AgentRuntime>,
        answer: ResponseSender<OpenSessionResult>,
    ) {
        let session = init.id.clone();
        let options = session_init::session_options(&runtime, &init.settings);
        if self.sessions.get(&session).is_none_or(|handle| handle.inbox.is_closed()) {
            let (client, cancel) = (self.client.clone(), self.shared.cancel.child_token());
            let handle = session::start::start_session(
                init,
                runtime.clone(),
                client,
                cancel,
                self.shared.turns.clone(),
            );
            self.sessions.insert(session.clone(), handle);
        }
        answer.send(Ok(OpenSessionResult { session: session.clone(), options }));
        self.client.send_update(&session, SessionUpdate::Commands(session::available_commands()));
        tokio::spawn(async move { runtime.warm_up().await });
    }

    fn close_session(&mut self, session: SessionId, answer: ResponseSender<()>) {
        let Some(handle) = self.sessions.remove(&session) else {
            return answer.send(Err(crate::failures::session_not_open(&session)));
        };
        self.run_exclusive(session, async move {
            handle.close().await;
            answer.send(Ok(()));
        });
    }

    /// Deletes a session; a missing session counts as deleted.
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
    let reason =
        "you are logged out; log in again to continue, the configured models and keys are still there";
    Failure::new(FailureKind::AuthRequired, reason)
}
