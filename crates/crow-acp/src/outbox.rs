//! The way out to a client. Between a session and the SDK's endless queues: text coalesces while the client is
//! behind, a running call's output is latest-wins, nothing else is dropped or reordered, and a client that stops
//! reading costs bounded memory.

mod weight;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::{
    CallId, GrantOffer, SessionId, SessionUpdate, ToolCallContent, ToolCallInfo, ToolCallStatus,
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use self::weight::{content_bytes, update_bytes};
use crate::abilities::{AcpClientCapabilities, SharedCapabilities};
use crate::client::{AgentPermissionRequest, PermissionAnswer};
use crate::editor::ClientEditor;
use crate::v1;

/// Notifications that may be on their way inside the SDK.
const CREDITS: usize = 32;

/// Text that gathers into one chunk; clients redraw per chunk, and some limit the length of a line.
const CHUNK_BYTES: usize = 32 * 1024;

/// Bytes waiting for one client beyond which producers are held back.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// A question asked in the evening is answered in the morning; after that nobody will.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_hours(12);

/// A place is counted in memory, whatever stands between.
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(10);

/// Output that waits for a client that is behind; a terminal shows its end, so the end is kept.
const OUTPUT_BYTES: usize = 64 * 1024;

/// A connected client, as sessions see it.
#[derive(Clone)]
pub struct Client {
    connection: sdk::v1::ConnectionTo<sdk::Client>,
    outbox: Arc<Outbox>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// What the person said to a permission question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionOutcome {
    /// Yes, this once.
    AllowOnce,
    /// Yes, and for the rest of the session.
    AllowForSession,
    /// Yes, and always in this project.
    AllowInProject,
    /// No, this once.
    Reject,
    /// No, and for the rest of the session.
    RejectForSession,
    /// No, and the person wants to say what to do instead.
    RejectAndTell,
    /// The turn was stopped while the question was open.
    Cancelled,
    /// Nobody could be asked.
    Nobody {
        /// Why not.
        why: String,
    },
}

impl PermissionOutcome {
    /// Tells whether it is a yes.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::AllowOnce | Self::AllowForSession | Self::AllowInProject => true,
            Self::Reject | Self::RejectForSession | Self::RejectAndTell => false,
            Self::Cancelled | Self::Nobody { .. } => false,
        }
    }
}

/// A call that needs a person's word.
#[derive(Debug, Clone, Copy)]
pub struct PermissionRequest<'a> {
    /// What a yes would be about.
    pub subject: PermissionSubject,
    /// Which call.
    pub call: CallId,
    /// What it would do.
    pub facets: &'a ToolCallInfo,
    /// With what.
    pub arguments: &'a Map<String, Value>,
    /// What it would change, as far as that is known.
    pub preview: &'a [ToolCallContent],
    /// What speaks against just running it.
    pub why: Option<&'a str>,
    /// Which answers there are beside yes and no.
    pub answers: OfferedAnswers<'a>,
}

/// What a yes would be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionSubject {
    /// A call of the model.
    #[default]
    Call,
    /// Something that Crow would do beyond what was asked for. Nothing fails without it.
    Offer,
    /// Going on where the model goes in circles. Whoever says yes to everything unseen is who it would go on for.
    GoOn,
}

/// Which answers a question has beside a yes and a no that hold once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedAnswers<'a> {
    /// None.
    Once,
    /// A yes and a no for the rest of the session.
    Session,
    /// A call's: what is remembered of a yes, and a no with words.
    Remembered {
        /// What a yes may be remembered as.
        offer: &'a GrantOffer,
        /// Whether the person can say what to do instead.
        can_tell: bool,
    },
}

impl Client {
    pub(crate) fn new(connection: sdk::v1::ConnectionTo<sdk::Client>, outbox: Arc<Outbox>) -> Self {
        Self { connection, outbox }
    }

    /// Tells the client something; it leaves in the order told, within a session.
    pub fn send_update(&self, session: &SessionId, update: SessionUpdate) {
        self.outbox.push_update(session, update);
    }

    /// Waits until the client has caught up enough to be told more.
    pub async fn wait_for_capacity(&self) {
        self.outbox.wait_for_capacity().await;
    }

    /// Waits until all that was told of a session is on its way, so that an answer cannot overtake it.
    pub async fn flush_updates(&self, session: &SessionId) {
        self.outbox.flush_updates(session).await;
    }

    /// Tells whether the client has closed its end: nothing is asked of a model for it any longer.
    pub fn is_gone(&self) -> bool {
        self.outbox.gone.load(Ordering::Relaxed)
    }

    /// What the client can do.
    pub fn capabilities(&self) -> AcpClientCapabilities {
        self.outbox.said.get()
    }

    /// The client's files and terminals, for a session.
    pub fn editor(&self, session: &SessionId) -> ClientEditor {
        ClientEditor::new(self.clone(), session.clone())
    }

    pub(crate) async fn send_request<R: sdk::JsonRpcRequest>(
        &self,
        request: R,
    ) -> Result<R::Response, sdk::Error>
    where
        R::Response: Send,
    {
        self.connection.send_request(request).block_task().await
    }

    /// Asks for something whose answer changes nothing.
    pub(crate) fn send_detached_request<R: sdk::JsonRpcRequest>(&self, request: R)
    where
        R::Response: Send,
    {
        self.connection.send_request(request).detach();
    }

    /// Asks the person what a child of a session wants to know, in the place of the call that started it; nothing
    /// when nobody waits for the answer any longer.
    pub async fn request_child_permission(
        &self,
        session: &SessionId,
        (call, who): (CallId, &str),
        question: &AgentPermissionRequest,
        cut: &CancellationToken,
    ) -> Option<PermissionAnswer> {
        let answer = async {
            self.flush_updates(session).await;
            let is_child = self.capabilities().depth.is_some();
            self.send_request(v1::child_permission_request(session, (call, who), question, is_child)).await
        };
        tokio::select! {
            biased;
            () = cut.cancelled() => None,
            answered = tokio::time::timeout(ANSWER_WAIT_MAX, answer) => match answered {
                Ok(_) if self.is_gone() => None,
                Ok(answer) => v1::child_permission_answer(answer, question),
                Err(_) => Some(PermissionAnswer::Nobody { why: "nobody answered for twelve hours".into() }),
            },
        }
    }

    /// Asks a client that counts the agents of a tree for a place for one more.
    pub async fn acquire_budget_slot(&self, session: &SessionId) -> Result<u64, String> {
        let request = v1::ClaimRequest { session_id: v1::session_id(session) };
        let answer = tokio::time::timeout(CLAIM_WAIT_MAX, self.send_request(request)).await;
        match answer {
            Ok(Ok(answer)) => Ok(answer.claim),
            Ok(Err(error)) => Err(error.message),
            Err(_) => Err("the agent above did not say whether there is room".to_owned()),
        }
    }

    /// Gives such a place back.
    pub fn release_budget_slot(&self, claim: u64) {
        if let Err(error) = self.connection.send_notification(v1::ReleaseNotification { claim }) {
            tracing::debug!(%error, "the client is gone, and every place with it");
        }
    }

    /// Asks the person whether a call may run.
    pub async fn request_permission(
        &self,
        session: &SessionId,
        question: PermissionRequest<'_>,
        cut: &CancellationToken,
    ) -> PermissionOutcome {
        let answer = async {
            // The call has to be there before the question about it.
            self.flush_updates(session).await;
            let is_child = self.capabilities().depth.is_some();
            self.send_request(v1::permission_request(session, question, is_child)).await
        };
        // A dropped request tells the client by itself that nobody waits any longer.
        tokio::select! {
            biased;
            () = cut.cancelled() => PermissionOutcome::Cancelled,
            answered = tokio::time::timeout(ANSWER_WAIT_MAX, answer) => match answered {
                Ok(_) if self.is_gone() => PermissionOutcome::Cancelled,
                Ok(answer) => v1::permission_outcome(answer, question.answers),
                Err(_) => PermissionOutcome::Nobody { why: "nobody answered for twelve hours".into() },
            },
        }
    }
}

/// What waits to be told.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<OutboxState>,
    pushed: Notify,
    sent: Notify,
    credits: Semaphore,
    said: SharedCapabilities,
    gone: AtomicBool,
}

#[derive(Debug, Default)]
struct OutboxState {
    sessions: HashMap<SessionId, UpdateQueue>,
    /// Sessions with something to say, each once, in turn.
    ready: VecDeque<SessionId>,
    n_bytes: usize,
    /// How many updates were told so far.
    n_told: u64,
    closed: bool,
}

/// What waits of one session, each update with its number among all that were told; never empty.
type UpdateQueue = VecDeque<(u64, SessionUpdate)>;

impl Outbox {
    pub(crate) fn new(said: SharedCapabilities) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            pushed: Notify::new(),
            sent: Notify::new(),
            credits: Semaphore::new(CREDITS),
            said,
            gone: AtomicBool::new(false),
        })
    }

    fn push_update(&self, session: &SessionId, update: SessionUpdate) {
        self.lock().push_update(session, update);
        self.pushed.notify_one();
    }

    async fn wait_for_capacity(&self) {
        self.wait_until(|waiting| waiting.n_bytes < WAITING_BYTES_MAX).await;
    }

    /// Waits for what was told until now and no longer: a turn that goes on talking would hold it up for ever.
    async fn flush_updates(&self, session: &SessionId) {
        let n_told = self.lock().n_told;
        self.wait_until(|waiting| {
            let next = waiting.sessions.get(session).and_then(VecDeque::front);
            next.is_none_or(|(number, _)| *number > n_told)
        })
        .await;
    }

    async fn wait_until(&self, holds: impl Fn(&OutboxState) -> bool) {
        loop {
            let sent = self.sent.notified();
            tokio::pin!(sent);
            sent.as_mut().enable();
            {
                let waiting = self.lock();
                if waiting.closed || holds(&waiting) {
                    return;
                }
            }
            sent.await;
        }
    }

    /// Hands updates to the SDK for as long as the connection lives, one credit each.
    pub(crate) async fn pump_updates(&self, connection: &sdk::v1::ConnectionTo<sdk::Client>) {
        loop {
            self.pushed.notified().await;
            while self.has_ready() {
                let Ok(credit) = self.credits.acquire().await else { return };
                match self.send_next(connection) {
                    // Its line gives the credit back.
                    SendOutcome::Notification => credit.forget(),
                    SendOutcome::Nothing => drop(credit),
                    SendOutcome::Closed => return,
                }
            }
        }
    }

    fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// Sends under the lock, so that whoever no longer sees an update knows that it is ahead of any answer.
    fn send_next(&self, connection: &sdk::v1::ConnectionTo<sdk::Client>) -> SendOutcome {
        let mut waiting = self.lock();
        let Some((session, update)) = waiting.pop_update() else { return SendOutcome::Nothing };
        let notification = v1::session_notification(self.said.get(), &session, update);
        let sent = match notification.map(|said| connection.send_notification(said)) {
            Some(Ok(())) => SendOutcome::Notification,
            Some(Err(_)) => SendOutcome::Closed,
            None => SendOutcome::Nothing,
        };
        drop(waiting);
        self.sent.notify_waiters();
        sent
    }

    /// Gives a credit back once a notification left the SDK; tells whether the line is one.
    pub(crate) fn on_line(&self, line: &str) -> bool {
        let is_update = v1::is_update_line(line);
        if is_update {
            self.credits.add_permits(1);
        }
        is_update
    }

    /// Remembers that the client says nothing more; the SDK fails what was asked of it only after that.
    pub(crate) fn on_gone(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// Ends all waiting: nobody reads any longer.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        *waiting = OutboxState { closed: true, ..OutboxState::default() };
        drop(waiting);
        self.credits.close();
        self.sent.notify_waiters();
        self.pushed.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OutboxState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of the next update.
enum SendOutcome {
    /// It is on its way as a notification.
    Notification,
    /// There was none, or this version of the protocol has no word for it.
    Nothing,
    /// The connection takes no more.
    Closed,
}

impl OutboxState {
    fn push_update(&mut self, session: &SessionId, mut update: SessionUpdate) {
        if self.closed {
            return;
        }
        self.n_told += 1;
        self.n_bytes += update_bytes(&update);
        match self.sessions.get_mut(session) {
            Some(queue) => match merge_update(queue, &mut update) {
                Some(n_replaced) => self.n_bytes = self.n_bytes.saturating_sub(n_replaced),
                None => queue.push_back((self.n_told, update)),
            },
            None => {
                self.sessions.insert(session.clone(), VecDeque::from([(self.n_told, update)]));
                self.ready.push_back(session.clone());
            }
        }
    }

    /// Takes the next update, one of each session in turn.
    fn pop_update(&mut self) -> Option<(SessionId, SessionUpdate)> {
        let session = self.ready.pop_front()?;
        let queue = self.sessions.get_mut(&session)?;
        let (_, update) = queue.pop_front()?;
        if queue.is_empty() {
            self.sessions.remove(&session);
        } else {
            self.ready.push_back(session.clone());
        }
        self.n_bytes = self.n_bytes.saturating_sub(update_bytes(&update));
        Some((session, update))
    }
}

/// Puts an update into one that waits where nothing is lost by it; tells how many bytes it replaced.
fn merge_update(queue: &mut UpdateQueue, next: &mut SessionUpdate) -> Option<usize> {
    if let SessionUpdate::CallChanged { .. } | SessionUpdate::Output { .. } = next {
        // Behind the output of the calls that run beside it too.
        return queue.iter_mut().rev().find_map(|(_, earlier)| replace_output(earlier, next));
    }
    let (_, last) = queue.back_mut()?;
    append_text(last, next)
}

fn append_text(last: &mut SessionUpdate, next: &SessionUpdate) -> Option<usize> {
    match (last, next) {
        (SessionUpdate::Text { message, text }, SessionUpdate::Text { message: of, text: more })
        | (SessionUpdate::Thought { message, text }, SessionUpdate::Thought { message: of, text: more })
            if message == of && text.len() + more.len() <= CHUNK_BYTES =>
        {
            text.push_str(more);
            Some(0)
        }
        _ => None,
    }
}

fn replace_output(earlier: &mut SessionUpdate, next: &mut SessionUpdate) -> Option<usize> {
    match (earlier, next) {
        (
            SessionUpdate::CallChanged { call, status: ToolCallStatus::Running, content: Some(content) },
            SessionUpdate::CallChanged { call: of, status: ToolCallStatus::Running, content: Some(newer) },
        ) if call == of => {
            let n_replaced = content_bytes(content);
            *content = std::mem::take(newer);
            Some(n_replaced)
        }
        (SessionUpdate::Output { call, text }, SessionUpdate::Output { call: of, text: more })
            if call == of =>
        {
            text.push_str(more);
            Some(keep_end(text))
        }
        _ => None,
    }
}

/// Drops the beginning of an output that is too long to wait; tells how many bytes.
fn keep_end(text: &mut String) -> usize {
    let over = text.len().saturating_sub(OUTPUT_BYTES);
    let from = text.ceil_char_boundary(over);
    text.drain(..from);
    from
}

#[cfg(test)]
mod tests;
