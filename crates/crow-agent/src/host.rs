//! The host: one loop that finds the session a message is for. It waits for its next event and for nothing else;
//! whatever takes time is a task that reports back.

mod opening;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{About, Answer, Client, Incoming, Lines, Opened, Place, ServeError, Which};
use crow_core::{Failure, FailureKind, SessionId, Update};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::opening::{list, open_live, open_stored};
use crate::handle::{SessionHandle, SessionMsg};
use crate::kit::Kit;
use crate::run_turn::store_failure;
use crate::session::{self, Opening};
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
    Client(Incoming),
    Opened {
        opening: Box<Opening>,
        kit: Arc<Kit>,
        answer: Answer<Opened>,
    },
    /// The configuration is usable; `n_outs` is how often somebody had signed out when that was asked.
    SignedIn {
        n_outs: u64,
        answer: Answer<()>,
    },
    /// What was done to a session as a whole is done.
    Settled {
        session: SessionId,
    },
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
    about: About,
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
            let host = Host {
                client,
                shared,
                inbox,
                sessions: HashMap::new(),
                changing: HashMap::new(),
                signed: Signed::In,
                n_outs: 0,
            };
            host.run().await;
        }
    });
    let serving = crow_acp::serve(lines, about, events, |client| {
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
        kit.own_tools.tools.stop();
    }
    turns.close();
    if tokio::time::timeout(LAST_WORDS, turns.wait()).await.is_err() {
        tracing::warn!("a turn did not end in time; its open calls are closed on load");
    }
    if let Some(kit) = kit.get() {
        // Whoever of them is Crow has stored by now what it said.
        kit.launcher.stop();
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

    /// Reads the configuration again and checks that there is a model to ask.
    async fn sign_in(&self) -> Result<(), Failure> {
        let unusable = |failure: Failure| Failure::new(FailureKind::AuthRequired, failure.sentence);
        let fresh = (self.load)().await?;
        fresh.model(None).map_err(unusable)?;
        self.kit().await?.renew(&fresh);
        Ok(())
    }

    async fn tell_host(&self, event: HostEvent) {
        if let Some(own) = self.own.upgrade()
            && own.send(event).await.is_err()
        {
            tracing::debug!("something ended after the host did");
        }
    }
}

/// Whether models may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signed {
    In,
    Out,
}

struct Host {
    client: Client,
    shared: Shared,
    inbox: mpsc::Receiver<HostEvent>,
    sessions: HashMap<SessionId, SessionHandle>,
    /// Sessions that are being opened, closed or deleted, each with what is asked of it meanwhile.
    changing: HashMap<SessionId, VecDeque<Incoming>>,
    signed: Signed,
    n_outs: u64,
}

impl Host {
    async fn run(mut self) {
        while let Some(event) = self.inbox.recv().await {
            match event {
                HostEvent::Client(incoming) => self.on_client(incoming),
                HostEvent::Opened { opening, kit, answer } => self.on_opened(*opening, kit, answer),
                HostEvent::SignedIn { n_outs, answer } => {
                    // Whoever signed out since then had the last word.
                    if n_outs == self.n_outs {
                        self.signed = Signed::In;
                    }
                    answer.give(Ok(()));
                }
                HostEvent::Settled { session } => {
                    for incoming in self.changing.remove(&session).into_iter().flatten() {
                        self.on_client(incoming);
                    }
                }
            }
        }
    }

    fn on_client(&mut self, incoming: Incoming) {
        if let Some(waiting) = incoming.session().and_then(|session| self.changing.get_mut(session)) {
            match waiting.len() < CHANGING_LEN {
                true => waiting.push_back(incoming),
                false => incoming.refuse(open::stuck()),
            }
            return;
        }
        match incoming {
            Incoming::Hello => self.warm_up(),
            Incoming::SignIn { answer } => self.sign_in(answer),
            Incoming::SignOut { answer } => self.sign_out(answer),
            Incoming::Open { which, place, answer } => self.open(which, place, answer),
            Incoming::ListSessions { cwd, cursor, answer } => {
                let shared = self.shared.clone();
                tokio::spawn(async move { answer.give(list(&shared, cwd, cursor).await) });
            }
            Incoming::Close { session, answer } => self.close(session, answer),
            Incoming::Delete { session, answer } => self.delete(session, answer),
            Incoming::Prompt { session, ticket, said, until, answer } => {
                self.to_session(&session, answer, |answer| SessionMsg::Prompt {
                    ticket,
                    said,
                    until,
                    answer,
                });
            }
            Incoming::Steer { session, said, answer } => {
                self.to_session(&session, answer, |answer| SessionMsg::Steer { said, answer });
            }
            Incoming::SetOption { session, option, value, answer } => {
                self.to_session(&session, answer, |answer| SessionMsg::SetOption { option, value, answer });
            }
            Incoming::Withdraw { session, ticket } => {
                if let Some(handle) = self.sessions.get(&session) {
                    handle.withdraw(ticket);
                }
            }
            Incoming::Cancel { session } => {
                if let Some(handle) = self.sessions.get(&session) {
                    handle.cancel();
                }
            }
        }
    }

    fn to_session<T>(
        &self,
        session: &SessionId,
        answer: Answer<T>,
        msg: impl FnOnce(Answer<T>) -> SessionMsg,
    ) {
        if self.signed == Signed::Out {
            return answer.give(Err(signed_out()));
        }
        match self.sessions.get(session) {
            Some(handle) => handle.tell(answer, msg),
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

    fn sign_in(&self, answer: Answer<()>) {
        let (shared, n_outs) = (self.shared.clone(), self.n_outs);
        tokio::spawn(async move {
            match shared.sign_in().await {
                Ok(()) => shared.tell_host(HostEvent::SignedIn { n_outs, answer }).await,
                Err(failure) => answer.give(Err(failure)),
            }
        });
    }

    /// Keys are the person's own files and stay; what ends is their use by this connection.
    fn sign_out(&mut self, answer: Answer<()>) {
        self.signed = Signed::Out;
        self.n_outs += 1;
        self.sessions.values().for_each(SessionHandle::cancel);
        answer.give(Ok(()));
    }

    fn open(&mut self, which: Which, place: Place, answer: Answer<Opened>) {
        if self.signed == Signed::Out {
            return answer.give(Err(signed_out()));
        }
        let (shared, client) = (self.shared.clone(), self.client.clone());
        let stored = match &which {
            Which::New | Which::Fork(_) => None,
            Which::Load(session) | Which::Resume(session) => Some(session.clone()),
        };
        let live = stored.as_ref().and_then(|session| self.sessions.get(session)).cloned();
        match (stored, live) {
            (_, Some(handle)) => drop(tokio::spawn(async move {
                match place::checked(place).await {
                    Ok(place) => open_live(&shared, &client, (handle, which), place, answer).await,
                    Err(failure) => answer.give(Err(failure)),
                }
            })),
            (None, None) => drop(tokio::spawn(async move {
                open_stored(&shared, &client, which, place, answer).await;
            })),
            (Some(session), None) => self.change(session, async move {
                open_stored(&shared, &client, which, place, answer).await;
            }),
        }
    }

    /// Does something to a session as a whole; what is asked of it meanwhile waits.
    fn change(&mut self, session: SessionId, work: impl Future<Output = ()> + Send + 'static) {
        self.changing.insert(session.clone(), VecDeque::new());
        let shared = self.shared.clone();
        tokio::spawn(async move {
            // Whatever becomes of the work, the session must not stay like this.
            if let Err(error) = tokio::spawn(work).await {
                tracing::error!(%session, %error, "opening or closing a session broke");
            }
            shared.tell_host(HostEvent::Settled { session }).await;
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

    fn close(&mut self, session: SessionId, answer: Answer<()>) {
        let Some(handle) = self.sessions.remove(&session) else {
            return answer.give(Err(open::not_found(&session)));
        };
        self.change(session, async move {
            handle.close().await;
            answer.give(Ok(()));
        });
    }

    /// Deletes a session; one that is not there is deleted already.
    fn delete(&mut self, session: SessionId, answer: Answer<()>) {
        let (handle, shared) = (self.sessions.remove(&session), self.shared.clone());
        self.change(session.clone(), async move {
            if let Some(handle) = handle {
                handle.close().await;
            }
            answer.give(erase(&shared, &session).await);
        });
    }
}

async fn erase(shared: &Shared, session: &SessionId) -> Result<(), Failure> {
    shared.kit().await?.store.delete(session).await.map(drop).map_err(store_failure)
}

fn signed_out() -> Failure {
    let why = "You signed out. Sign in again to go on; the configured models and keys are still there.";
    Failure::new(FailureKind::AuthRequired, why)
}
