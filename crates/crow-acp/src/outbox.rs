//! The way out to a client. Between a session and the SDK's endless queues: text coalesces while the client is
//! behind, a running call's output is latest-wins, nothing else is dropped or reordered, and a client that stops
//! reading costs bounded memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol as sdk;
use crow_core::{CallId, Content, Facets, Part, SessionId, Status, Update};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::v1;

/// Notifications that may be on their way inside the SDK.
const CREDITS: usize = 32;

/// Text that gathers into one chunk; clients redraw per chunk, and some limit the length of a line.
const CHUNK_BYTES: usize = 32 * 1024;

/// Bytes waiting for one client beyond which producers are held back.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

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
pub enum Answered {
    /// Yes, this once.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this once.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
    /// The turn was stopped while the question was open.
    Cancelled,
    /// Nobody could be asked.
    Nobody {
        /// Why not.
        why: String,
    },
}

/// A call that needs a person's word.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Which call.
    pub call: CallId,
    /// What it would do.
    pub facets: &'a Facets,
    /// With what.
    pub arguments: &'a Map<String, Value>,
    /// Whether "always" is among the answers.
    pub offer_always: OfferAlways,
}

/// Whether "always" is among the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferAlways {
    /// It is.
    Yes,
    /// It is asked each time.
    No,
}

impl Client {
    pub(crate) fn new(connection: sdk::v1::ConnectionTo<sdk::Client>, outbox: Arc<Outbox>) -> Self {
        Self { connection, outbox }
    }

    /// Tells the client something; it leaves in the order told, within a session.
    pub fn tell(&self, session: &SessionId, update: Update) {
        self.outbox.push(session, update);
    }

    /// Waits until the client has caught up enough to be told more.
    pub async fn room(&self) {
        self.outbox.room().await;
    }

    /// Waits until all that was told of a session is on its way, so that an answer cannot overtake it.
    pub async fn flushed(&self, session: &SessionId) {
        self.outbox.flushed(session).await;
    }

    /// Asks the person whether a call may run.
    pub async fn ask(
        &self,
        session: &SessionId,
        question: Question<'_>,
        cut: &CancellationToken,
    ) -> Answered {
        let answer = async {
            // The call has to be there before the question about it.
            self.flushed(session).await;
            self.connection.send_request(v1::permission_request(session, question)).block_task().await
        };
        // A dropped request tells the client by itself that nobody waits any longer.
        tokio::select! {
            biased;
            () = cut.cancelled() => Answered::Cancelled,
            answer = answer => v1::answered(answer, question.offer_always),
        }
    }
}

/// What waits to be told.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    pushed: Notify,
    sent: Notify,
    credits: Semaphore,
}

#[derive(Debug, Default)]
struct Waiting {
    sessions: HashMap<SessionId, Queue>,
    /// Sessions with something to say, each once, in turn.
    ready: VecDeque<SessionId>,
    n_bytes: usize,
    /// How many updates were told so far.
    n_told: u64,
    closed: bool,
}

/// What waits of one session, each update with its number among all that were told; never empty.
type Queue = VecDeque<(u64, Update)>;

impl Outbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            pushed: Notify::new(),
            sent: Notify::new(),
            credits: Semaphore::new(CREDITS),
        })
    }

    fn push(&self, session: &SessionId, update: Update) {
        self.lock().push(session, update);
        self.pushed.notify_one();
    }

    async fn room(&self) {
        self.wait_until(|waiting| waiting.n_bytes < WAITING_BYTES_MAX).await;
    }

    /// Waits for what was told until now and no longer: a turn that goes on talking would hold it up for ever.
    async fn flushed(&self, session: &SessionId) {
        let n_told = self.lock().n_told;
        self.wait_until(|waiting| {
            let next = waiting.sessions.get(session).and_then(VecDeque::front);
            next.is_none_or(|(number, _)| *number > n_told)
        })
        .await;
    }

    async fn wait_until(&self, holds: impl Fn(&Waiting) -> bool) {
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
    pub(crate) async fn pump(&self, connection: &sdk::v1::ConnectionTo<sdk::Client>) {
        loop {
            self.pushed.notified().await;
            while self.has_ready() {
                let Ok(credit) = self.credits.acquire().await else { return };
                match self.send_next(connection) {
                    // Its line gives the credit back.
                    Sent::Notification => credit.forget(),
                    Sent::Nothing => drop(credit),
                    Sent::Closed => return,
                }
            }
        }
    }

    fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// Sends under the lock, so that whoever no longer sees an update knows that it is ahead of any answer.
    fn send_next(&self, connection: &sdk::v1::ConnectionTo<sdk::Client>) -> Sent {
        let mut waiting = self.lock();
        let Some((session, update)) = waiting.pop() else { return Sent::Nothing };
        let sent = match v1::notification(&session, update).map(|said| connection.send_notification(said)) {
            Some(Ok(())) => Sent::Notification,
            Some(Err(_)) => Sent::Closed,
            None => Sent::Nothing,
        };
        drop(waiting);
        self.sent.notify_waiters();
        sent
    }

    /// Gives a credit back once a notification left the SDK.
    pub(crate) fn on_line(&self, line: &str) {
        if v1::is_update_line(line) {
            self.credits.add_permits(1);
        }
    }

    /// Ends all waiting: nobody reads any longer.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        *waiting = Waiting { closed: true, ..Waiting::default() };
        drop(waiting);
        self.credits.close();
        self.sent.notify_waiters();
        self.pushed.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of the next update.
enum Sent {
    /// It is on its way as a notification.
    Notification,
    /// There was none, or this version of the protocol has no word for it.
    Nothing,
    /// The connection takes no more.
    Closed,
}

impl Waiting {
    fn push(&mut self, session: &SessionId, mut update: Update) {
        if self.closed {
            return;
        }
        self.n_told += 1;
        self.n_bytes += weight(&update);
        match self.sessions.get_mut(session) {
            Some(queue) => match merge(queue, &mut update) {
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
    fn pop(&mut self) -> Option<(SessionId, Update)> {
        let session = self.ready.pop_front()?;
        let queue = self.sessions.get_mut(&session)?;
        let (_, update) = queue.pop_front()?;
        if queue.is_empty() {
            self.sessions.remove(&session);
        } else {
            self.ready.push_back(session.clone());
        }
        self.n_bytes = self.n_bytes.saturating_sub(weight(&update));
        Some((session, update))
    }
}

/// Puts an update into one that waits where nothing is lost by it; tells how many bytes it replaced.
fn merge(queue: &mut Queue, next: &mut Update) -> Option<usize> {
    if let Update::CallChanged { .. } = next {
        // Behind the output of the calls that run beside it too.
        return queue.iter_mut().rev().find_map(|(_, earlier)| replace_output(earlier, next));
    }
    let (_, last) = queue.back_mut()?;
    gather_text(last, next)
}

fn gather_text(last: &mut Update, next: &Update) -> Option<usize> {
    match (last, next) {
        (Update::Text { message, text }, Update::Text { message: of, text: more })
        | (Update::Thought { message, text }, Update::Thought { message: of, text: more })
            if message == of && text.len() + more.len() <= CHUNK_BYTES =>
        {
            text.push_str(more);
            Some(0)
        }
        _ => None,
    }
}

fn replace_output(earlier: &mut Update, next: &mut Update) -> Option<usize> {
    match (earlier, next) {
        (
            Update::CallChanged { call, status: Status::Running, content: Some(content) },
            Update::CallChanged { call: of, status: Status::Running, content: Some(newer) },
        ) if call == of => {
            let n_replaced = content_bytes(content);
            *content = std::mem::take(newer);
            Some(n_replaced)
        }
        _ => None,
    }
}

/// What an update costs while it waits, roughly.
fn weight(update: &Update) -> usize {
    match update {
        Update::Text { text, .. } | Update::Thought { text, .. } | Update::Notice(text) => text.len(),
        Update::Prompt { part, .. } => part_bytes(part),
        Update::Call { arguments, content, .. } => object_bytes(arguments) + content_bytes(content),
        Update::CallChanged { content: Some(content), .. } => content_bytes(content),
        Update::CallChanged { content: None, .. }
        | Update::Plan(_)
        | Update::Title(_)
        | Update::Usage { .. }
        | Update::Mode(_)
        | Update::Options(_)
        | Update::Commands(_) => 0,
    }
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Image { data: text, .. } | Part::Resource { text, .. } => text.len(),
        Part::Link { uri, name } => uri.len() + name.len(),
    }
}

fn content_bytes(content: &[Content]) -> usize {
    let bytes = content.iter().map(|content| match content {
        Content::Text(text) | Content::Image { data: text, .. } => text.len(),
        Content::Diff { old, new, .. } => old.as_deref().map_or(0, str::len) + new.len(),
    });
    bytes.sum()
}

fn object_bytes(object: &Map<String, Value>) -> usize {
    object.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(object) => object_bytes(object),
    }
}

#[cfg(test)]
mod tests;
