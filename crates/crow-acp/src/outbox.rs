//! The queue of updates to a client, in front of the SDK's unbounded queues: text is merged while the client is
//! behind, of a running call's output only the latest is kept, nothing else is dropped or reordered, and a client
//! that stops reading costs bounded memory.

mod replay_hold;
mod update_size;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::{SessionId, SessionUpdate, ToolCallStatus};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

pub use self::replay_hold::ReplayHold;
use self::update_size::{content_bytes, update_bytes};
use crate::capabilities::{AcpClientCapabilities, SharedCapabilities};
use crate::v1;

/// Notifications that may be queued inside the SDK.
const CREDITS_MAX: usize = 32;

/// The maximum text of one chunk; clients redraw per chunk, and some limit the length of a line.
const CHUNK_BYTES_MAX: usize = 32 * 1024;

/// Bytes queued for one client beyond which producers are held back.
const QUEUED_BYTES_MAX: usize = 1024 * 1024;

/// Queued output of a call for a slow client; a terminal shows the end, so the end is kept.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// The wait between the answer that opens a session and the session's first update. Clients learn a session's ID from
/// the answer, and some drop what arrives in the milliseconds that they need to store it, or fail.
const OPENING_PAUSE: Duration = Duration::from_millis(50);

/// The queued updates.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    pushed: Notify,
    sent: Notify,
    credits: Semaphore,
    capabilities: SharedCapabilities,
    is_gone: AtomicBool,
}

#[derive(Debug, Default)]
struct OutboxState {
    sessions: HashMap<SessionId, UpdateQueue>,
    /// Sessions with queued updates, each once, in turn.
    ready: VecDeque<SessionId>,
    /// Sessions that were opened just now, whose updates wait until then.
    paused: HashMap<SessionId, Instant>,
    n_bytes: usize,
    /// The updates of sessions that are being replayed, which wait for the end of that.
    held: HashMap<SessionId, UpdateQueue>,
    n_held_bytes: usize,
    /// The number of updates sent so far.
    n_pushed: u64,
    is_closed: bool,
}

/// The queue of one session, each update with its number among all.
type UpdateQueue = VecDeque<(u64, SessionUpdate)>;

impl Outbox {
    pub(crate) fn new(capabilities: SharedCapabilities) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            pushed: Notify::new(),
            sent: Notify::new(),
            credits: Semaphore::new(CREDITS_MAX),
            capabilities,
            is_gone: AtomicBool::new(false),
        })
    }

    /// The client's capabilities.
    pub(crate) fn capabilities(&self) -> AcpClientCapabilities {
        self.capabilities.get()
    }

    /// Whether the client has disconnected.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    pub(crate) fn push_update(&self, session: &SessionId, update: SessionUpdate) {
        self.lock().push_live_update(session, update);
        self.pushed.notify_one();
    }

    /// Holds back the updates of a session whose opening is about to be answered, for a moment.
    pub(crate) fn pause_updates(&self, session: &SessionId) {
        self.lock().paused.insert(session.clone(), Instant::now() + OPENING_PAUSE);
        self.pushed.notify_one();
    }

    /// Ends all pauses: a client that sends a request knows its sessions.
    pub(crate) fn resume_updates(&self) {
        let mut state = self.lock();
        if !state.paused.is_empty() {
            state.paused.clear();
            self.pushed.notify_one();
        }
    }

    pub(crate) async fn wait_for_capacity(&self) {
        self.wait_until(|state| state.n_bytes + state.n_held_bytes < QUEUED_BYTES_MAX).await;
    }

    /// Waits for the updates queued until now and no longer: a busy turn would otherwise delay it forever.
    pub(crate) async fn flush_updates(&self, session: &SessionId) {
        self.wait_until(|state| !state.held.contains_key(session)).await;
        let n_pushed = self.lock().n_pushed;
        self.wait_until(|state| {
            let next = state.sessions.get(session).and_then(VecDeque::front);
            next.is_none_or(|(sequence, _)| *sequence > n_pushed)
        })
        .await;
    }

    async fn wait_until(&self, condition: impl Fn(&OutboxState) -> bool) {
        loop {
            let sent = self.sent.notified();
            tokio::pin!(sent);
            sent.as_mut().enable();
            {
                let state = self.lock();
                if state.is_closed || condition(&state) {
                    return;
                }
            }
            sent.await;
        }
    }

    /// Passes updates to the SDK while the connection lives, one credit each.
    pub(crate) async fn pump_updates(&self, connection: &sdk::v1::ConnectionTo<sdk::Client>) {
        loop {
            let pause_end = self.lock().paused.values().min().copied();
            tokio::select! {
                biased;
                () = self.pushed.notified() => {}
                () = sleep_until(pause_end.unwrap_or_else(Instant::now)), if pause_end.is_some() => {
                    self.lock().end_pauses(Instant::now());
                }
            }
            while self.has_ready() {
                let Ok(credit) = self.credits.acquire().await else { return };
                match self.send_next(connection) {
                    // The credit returns with its line.
                    SendOutcome::Notification => credit.forget(),
                    SendOutcome::NotSent => drop(credit),
                    SendOutcome::Closed => return,
                }
            }
        }
    }

    fn has_ready(&self) -> bool {
        self.lock().next_ready().is_some()
    }

    /// Sends under the lock, so that a caller that finds the queue empty knows that the update precedes any answer.
    fn send_next(&self, connection: &sdk::v1::ConnectionTo<sdk::Client>) -> SendOutcome {
        let mut state = self.lock();
        let Some((session, update)) = state.pop_update() else { return SendOutcome::NotSent };
        let notification = v1::session_notification(self.capabilities.get(), &session, update);
        let outcome = match notification.map(|notification| connection.send_notification(notification)) {
            Some(Ok(())) => SendOutcome::Notification,
            Some(Err(_)) => SendOutcome::Closed,
            None => SendOutcome::NotSent,
        };
        drop(state);
        self.sent.notify_waiters();
        outcome
    }

    /// Returns a credit once a notification has left the SDK; returns whether the line is one.
    pub(crate) fn on_line(&self, line: &str) -> bool {
        let is_update = v1::is_update_line(line);
        if is_update {
            self.credits.add_permits(1);
        }
        is_update
    }

    /// Records that the client has disconnected; the SDK fails pending requests only after that.
    pub(crate) fn on_gone(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Ends all waiting, because no client reads any longer.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        *state = OutboxState { is_closed: true, ..OutboxState::default() };
        drop(state);
        self.credits.close();
        self.sent.notify_waiters();
        self.pushed.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of sending the next update.
enum SendOutcome {
    /// Sent as a notification.
    Notification,
    /// There was none, or this protocol version has no equivalent.
    NotSent,
    /// The connection is closed.
    Closed,
}

impl OutboxState {
    /// Queues an update, behind a replay of its session if one is running.
    fn push_live_update(&mut self, session: &SessionId, update: SessionUpdate) {
        if self.is_closed {
            return;
        }
        match self.held.get_mut(session) {
            Some(queue) => {
                self.n_pushed += 1;
                add_to_queue(queue, &mut self.n_held_bytes, (self.n_pushed, update));
            }
            None => self.push_update(session, update),
        }
    }

    fn push_update(&mut self, session: &SessionId, update: SessionUpdate) {
        if self.is_closed {
            return;
        }
        self.n_pushed += 1;
        let queue = self.sessions.entry(session.clone()).or_default();
        if queue.is_empty() {
            self.ready.push_back(session.clone());
        }
        add_to_queue(queue, &mut self.n_bytes, (self.n_pushed, update));
    }

    fn end_pauses(&mut self, now: Instant) {
        self.paused.retain(|_, end| *end > now);
    }

    /// Returns the position of the next session whose updates may be sent.
    fn next_ready(&self) -> Option<usize> {
        self.ready.iter().position(|session| !self.paused.contains_key(session))
    }

    /// Takes the next update, one of each session in turn.
    fn pop_update(&mut self) -> Option<(SessionId, SessionUpdate)> {
        let session = self.next_ready().and_then(|position| self.ready.remove(position))?;
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

/// Adds a numbered update to a queue and its bytes to the sum.
fn add_to_queue(queue: &mut UpdateQueue, n_bytes: &mut usize, (number, mut update): (u64, SessionUpdate)) {
    *n_bytes += update_bytes(&update);
    match merge_update(queue, &mut update) {
        Some(n_replaced) => *n_bytes = n_bytes.saturating_sub(n_replaced),
        None => queue.push_back((number, update)),
    }
}

/// Merges an update into a queued one where that loses nothing; returns the bytes replaced.
fn merge_update(queue: &mut UpdateQueue, next: &mut SessionUpdate) -> Option<usize> {
    if let SessionUpdate::CallChanged { .. } | SessionUpdate::Output { .. } = next {
        // Also behind the output of parallel calls.
        return queue.iter_mut().rev().find_map(|(_, earlier)| replace_output(earlier, next));
    }
    let (_, last) = queue.back_mut()?;
    append_text(last, next)
}

fn append_text(last: &mut SessionUpdate, next: &SessionUpdate) -> Option<usize> {
    match (last, next) {
        (SessionUpdate::Text { message, text }, SessionUpdate::Text { message: other, text: next_text })
        | (
            SessionUpdate::Thought { message, text },
            SessionUpdate::Thought { message: other, text: next_text },
        ) if message == other && text.len() + next_text.len() <= CHUNK_BYTES_MAX => {
            text.push_str(next_text);
            Some(0)
        }
        _ => None,
    }
}

fn replace_output(earlier: &mut SessionUpdate, next: &mut SessionUpdate) -> Option<usize> {
    match (earlier, next) {
        (
            SessionUpdate::CallChanged { call, status: ToolCallStatus::InProgress, content: Some(content) },
            SessionUpdate::CallChanged {
                call: other,
                status: ToolCallStatus::InProgress,
                content: Some(next_content),
            },
        ) if call == other => {
            let n_replaced = content_bytes(content);
            *content = std::mem::take(next_content);
            Some(n_replaced)
        }
        (SessionUpdate::Output { call, text }, SessionUpdate::Output { call: other, text: next_text })
            if call == other =>
        {
            text.push_str(next_text);
            Some(keep_end(text))
        }
        _ => None,
    }
}

/// Drops the beginning of an output that is too long to queue; returns the number of bytes.
fn keep_end(text: &mut String) -> usize {
    let n_excess = text.len().saturating_sub(OUTPUT_BYTES_MAX);
    let start = text.ceil_char_boundary(n_excess);
    text.drain(..start);
    start
}

#[cfg(test)]
mod tests;
