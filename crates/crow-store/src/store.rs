//! The store handle, and the one thread per open database.
//!
//! Each method is one message to that thread, one transaction there, and one answer back. When a method has answered,
//! its effect survives the death of the process; [`Store::sync`] makes it survive a power failure.

mod actor;
mod leases;
mod simulated;
mod speckit;
mod tasks;

use std::{collections::HashSet, io, path::Path, sync::Arc, thread};

use crow_core::{Compaction, ContentHash, Mode, Reply, SessionId, ThoughtLevel, TokenUsage, TranscriptEntry};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub use self::leases::{SessionLease, TaskLease};
use self::{
    actor::{OpenDatabase, StoreActor, send_answer},
    leases::{LeaseGuard, ReleasedLeases},
};
use crate::{
    ChangeId, DatabaseAddress, Draft, FileChange, ListQuery, LoadedSession, MessageRange, NewFileChange,
    NewSession, PeriodUsage, SearchHit, SearchQuery, SessionRow, SessionTip, StoreError, StoredMessage,
    StoredPrompt, Timestamp,
    database::{Database, SessionChange},
    draft, row,
    simulated_disk::StoreSimulation,
    sql::LeaseKey,
};

/// A session waits for each answer before its next request, so this is more sessions at once than a user has.
const REQUESTS_MAX: usize = 64;

/// Each holds a file open while it is deleted, and a process may have a thousand.
const ERASE_BATCH: usize = 128;

/// A database. Clones share it; it closes when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Store {
    requests: mpsc::Sender<StoreRequest>,
    released: ReleasedLeases,
    drafts: Arc<Path>,
    /// `None` outside of simulations.
    simulation: Option<StoreSimulation>,
}

type AnswerSender<T> = oneshot::Sender<Result<T, StoreError>>;
type StoreJob = Box<dyn FnOnce(Result<&mut OpenDatabase, StoreError>) + Send>;

enum StoreRequest {
    Run(StoreJob),
    Close(AnswerSender<()>),
}

impl Store {
    pub(crate) fn start<F>(address: &DatabaseAddress, open: F) -> Result<Self, StoreError>
    where
        F: Fn() -> Result<Database, StoreError> + Send + 'static,
    {
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let released = ReleasedLeases::default();
        let actor = StoreActor {
            open,
            inbox,
            released: released.clone(),
            lost_leases: HashSet::new(),
            state: None,
            opening_failure: None,
        };
        thread::Builder::new().name("crow-store".into()).spawn(move || actor.run()).map_err(
            |error: io::Error| StoreError::CannotOpen {
                database: address.to_string(),
                reason: error.to_string(),
            },
        )?;
        Ok(Self { requests, released, drafts: address.drafts_folder().into(), simulation: None })
    }

    /// Creates a session under a new ID; see [`invent_name`](crate::invent_name).
    pub async fn create_session(&self, id: &SessionId, new: NewSession) -> Result<(), StoreError> {
        let id = id.clone();
        self.run_on_thread(move |open| open.database.create_session(&id, &new)).await
    }

    /// Acquires the exclusive right to write in a session, which another process may hold.
    pub async fn acquire_session_lease(&self, session: &SessionId) -> Result<SessionLease, StoreError> {
        self.acquire_lease(LeaseKey::Session(session.clone())).await.map(SessionLease)
    }

    /// Releases the right to write in a session, and waits until others can acquire it.
    pub async fn release_session_lease(&self, lease: SessionLease) {
        drop(lease);
        // If the database does not answer, no process is waiting for it.
        drop(self.run_on_thread(|_| Ok(())).await);
    }

    /// Stores an entry at sequence number `seq` of a session, which must be free.
    pub async fn append_entry(
        &self,
        lease: &SessionLease,
        seq: u64,
        entry: &TranscriptEntry,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::encode_entry(entry).map_err(|error| bad_row_error(lease.session(), seq, &error))?;
        self.with_session_lease(lease, move |database, session| {
            database.append_entry(session, seq, &row, now)
        })
        .await
    }

    /// Begins the draft of the reply at `seq`, which outlives the process until the reply is stored.
    pub fn begin_draft(&self, lease: &SessionLease, seq: u64) -> Draft {
        Draft::new(&self.drafts, lease.session(), seq)
    }

    /// Reads the draft of the reply at `seq` of a session, if the reply was not stored.
    pub async fn read_draft(&self, session: &SessionId, seq: u64) -> Option<Reply> {
        let (directory, session) = (self.drafts.clone(), session.clone());
        // On the thread that waits for disks anyway.
        self.run_on_thread(move |_| Ok(draft::read_draft(&directory, &session, seq))).await.ok().flatten()
    }

    /// Begins a generation: from here on the model sees what the compaction retains.
    pub async fn record_compaction(
        &self,
        lease: &SessionLease,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        let compaction = compaction.clone();
        self.with_session_lease(lease, move |database, session| {
            database.record_compaction(session, &compaction)
        })
        .await
    }

    /// Undoes the newest compaction; returns it, if there was one.
    pub async fn undo_compaction(
        &self,
        lease: &SessionLease,
        now: Timestamp,
    ) -> Result<Option<Compaction>, StoreError> {
        self.with_session_lease(lease, move |database, session| database.undo_compaction(session, now)).await
    }

    /// Records the usage of a request that is not a message.
    pub async fn record_side_request(
        &self,
        lease: &SessionLease,
        usage: TokenUsage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.with_session_lease(lease, move |database, session| {
            database.record_side_request(session, usage, now)
        })
        .await
    }

    /// Stores the content at a path before it is changed.
    pub async fn record_change(
        &self,
        lease: &SessionLease,
        change: NewFileChange,
        now: Timestamp,
    ) -> Result<ChangeId, StoreError> {
        self.with_session_lease(lease, move |database, session| database.record_change(session, &change, now))
            .await
    }

    /// Records that the result of a change differs from the plan; `None` is no file.
    pub async fn set_change_after(
        &self,
        lease: &SessionLease,
        id: ChangeId,
        after: Option<ContentHash>,
    ) -> Result<(), StoreError> {
        self.with_session_lease(lease, move |database, _| database.set_change_after(id, after)).await
    }

    /// Reads the changes of the newest turn that still has changes to undo, oldest first.
    pub async fn last_changes(&self, session: &SessionId) -> Result<Vec<FileChange>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.last_changes(&session)).await
    }

    /// Lists the newest prompts of a session, newest first.
    pub async fn list_prompts(
        &self,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<StoredPrompt>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.list_prompts(&session, limit)).await
    }

    /// Marks changes as undone.
    pub async fn mark_changes_undone(
        &self,
        lease: &SessionLease,
        ids: Vec<ChangeId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.with_session_lease(lease, move |database, session| {
            database.mark_changes_undone(session, &ids, now)
        })
        .await
    }

    /// Reads a session with all of its messages; `None` if there is no such session.
    pub async fn load_session(&self, session: &SessionId) -> Result<Option<LoadedSession>, StoreError> {
        let (session, drafts) = (session.clone(), self.drafts.clone());
        self.run_on_thread(move |open| {
            let mut stored = open.database.load_session(&session)?;
            if let Some(stored) = &mut stored {
                stored.unfinished_reply = draft::read_draft(&drafts, &session, stored.session.n_messages);
            }
            Ok(stored)
        })
        .await
    }

    /// Reads messages of a session in order, without images.
    pub async fn load_messages(
        &self,
        session: &SessionId,
        range: MessageRange,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.load_messages(&session, range)).await
    }

    /// Returns the latest state of a session; `None` if there is no such session.
    pub async fn session_tip(&self, session: &SessionId) -> Result<Option<SessionTip>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.session_tip(&session)).await
    }

    /// Lists the sessions that have messages, the one with the newest message first.
    pub async fn list_sessions(&self, query: ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.run_on_thread(move |open| open.database.list_sessions(&query)).await
    }

    /// Lists a session with all descendants that it and its children started, parents before children.
    pub async fn session_tree(&self, session: &SessionId) -> Result<Vec<SessionRow>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.session_tree(&session)).await
    }

    /// Returns the usage of models since a time, ordered by session and period. Messages that a fork copied count once.
    pub async fn usage_since(&self, since: Timestamp) -> Result<Vec<PeriodUsage>, StoreError> {
        self.run_on_thread(move |open| open.database.usage_since(since)).await
    }

    /// Lists the sessions that a user started and whose last message is older than a time, oldest first.
    pub async fn sessions_older_than(&self, before: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
        self.run_on_thread(move |open| open.database.sessions_older_than(before)).await
    }

    /// Stores a session's title.
    pub async fn set_title(&self, session: &SessionId, title: &str) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Title(title.to_owned())).await
    }

    /// Stores a session's mode.
    pub async fn set_mode(&self, session: &SessionId, mode: Mode) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Mode(mode)).await
    }

    /// Stores a session's model.
    pub async fn set_model(&self, session: &SessionId, model: &str) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Model(model.to_owned())).await
    }

    /// Stores a session's thought level.
    pub async fn set_thought_level(
        &self,
        session: &SessionId,
        level: ThoughtLevel,
    ) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::ThoughtLevel(level)).await
    }

    /// Stores the session ID that an external agent uses.
    pub async fn set_agent_session(&self, session: &SessionId, name: &str) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::AgentSession(name.to_owned())).await
    }

    /// Stores a session's system prompt in place of the one that it was created with.
    pub async fn set_system_prompt(&self, session: &SessionId, prompt: String) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::SystemPrompt(prompt)).await
    }

    /// Stores the template of a session's system prompt.
    pub async fn set_prompt_template(&self, session: &SessionId, template: String) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Template(template)).await
    }

    /// Stores the tool definitions of a session, as JSON.
    pub async fn set_tool_definitions(
        &self,
        session: &SessionId,
        definitions: String,
    ) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Tools(definitions)).await
    }

    /// Stores one more setting of a session under a key; `None` removes it.
    pub async fn set_config(
        &self,
        session: &SessionId,
        key: &'static str,
        value: Option<Value>,
    ) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Config { key, value }).await
    }

    /// Creates a session with the messages of another, up to the prompt `before` if that is given; returns
    /// whether the session and the prompt exist.
    pub async fn fork_session(
        &self,
        session: &SessionId,
        copy: &SessionId,
        before: Option<u64>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (session, copy) = (session.clone(), copy.clone());
        self.run_on_thread(move |open| open.database.fork_session(&session, &copy, before, now)).await
    }

    /// Deletes a session and the sessions it started; returns whether it existed.
    pub async fn delete_session(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.erase_sessions(vec![session.clone()]).await.map(|n_deleted| n_deleted > 0)
    }

    /// Deletes sessions with those they started, and returns their space to the disk if it is much and no process works
    /// on a session; returns how many existed.
    pub async fn prune_sessions(&self, sessions: Vec<SessionId>) -> Result<u64, StoreError> {
        let n_deleted = self.erase_sessions(sessions).await?;
        self.run_on_thread(|open| open.database.reclaim_space()).await?;
        Ok(n_deleted)
    }

    /// Deletes the sessions without messages that were created before a time.
    pub async fn delete_empty_sessions(&self, before: Timestamp) -> Result<(), StoreError> {
        self.run_on_thread(move |open| open.database.delete_empty_sessions(before)).await
    }

    /// Finds messages of users and models, the best first.
    pub async fn search_messages(&self, query: SearchQuery) -> Result<Vec<SearchHit>, StoreError> {
        self.run_on_thread(move |open| open.database.search_messages(&query)).await
    }

    /// Checks for damage; each finding is a sentence.
    pub async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        self.run_on_thread(|open| open.database.check_integrity()).await
    }

    /// Starts to flush what was stored so far, without waiting; for the end of a step.
    pub fn sync_soon(&self) {
        let job: StoreJob = Box::new(|open| {
            if let Ok(open) = open {
                open.database.sync(None);
            }
        });
        // If the queue is full, another step is being stored, and its end flushes too.
        drop(self.requests.try_send(StoreRequest::Run(job)));
    }

    /// Makes everything stored so far survive a power failure; for the end of a turn.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        let job: StoreJob = Box::new(move |open| match open {
            Ok(open) => open.database.sync(Some(Box::new(|flushed| send_answer(answer, flushed)))),
            Err(error) => send_answer(answer, Err(error)),
        });
        self.requests.send(StoreRequest::Run(job)).await.map_err(|_| StoreError::Closed)?;
        let answer = reply.await.map_err(|_| StoreError::Closed)?;
        self.wait_for_answer().await;
        answer
    }

    /// Closes the database, for every clone, after all earlier requests.
    pub async fn close(self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        self.requests.send(StoreRequest::Close(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits until the database is open.
    pub(crate) async fn wait_until_open(&self) -> Result<(), StoreError> {
        self.run_on_thread(|_| Ok(())).await
    }

    async fn update_session(&self, session: &SessionId, change: SessionChange) -> Result<(), StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.update_session(&session, &change)).await
    }

    async fn erase_sessions(&self, sessions: Vec<SessionId>) -> Result<u64, StoreError> {
        let drafts = self.drafts.clone();
        self.run_on_thread(move |open| {
            let mut n_deleted = 0;
            for sessions in sessions.chunks(ERASE_BATCH) {
                let (mut erased_ids, mut keys) = (HashSet::new(), Vec::new());
                for session in sessions {
                    // The sessions they started are deleted with them.
                    for row in open.database.session_tree(session)? {
                        if erased_ids.insert(row.id.clone()) {
                            // Only a session with a parent can be a task.
                            keys.extend(row.parent.map(|_| LeaseKey::Task(row.id.clone())));
                            keys.push(LeaseKey::Session(row.id));
                        }
                    }
                }
                n_deleted += open.delete_sessions(sessions, &keys)?;
                erased_ids.iter().for_each(|session| draft::delete_draft(&drafts, session));
            }
            Ok(n_deleted)
        })
        .await
    }

    /// Runs what only the holder of a session lease may do.
    async fn with_session_lease<T: Send + 'static>(
        &self,
        lease: &SessionLease,
        work: impl FnOnce(&mut Database, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.with_lease(&lease.0, work).await
    }

    /// Runs what only the holder of a lease may do.
    async fn with_lease<T: Send + 'static>(
        &self,
        guard: &LeaseGuard,
        work: impl FnOnce(&mut Database, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let key = guard.key.clone();
        self.run_on_thread(move |open| work(open.database_with_lease(&key)?, key.session())).await
    }

    async fn acquire_lease(&self, key: LeaseKey) -> Result<LeaseGuard, StoreError> {
        let (released, requests) = (self.released.clone(), self.requests.downgrade());
        // Created there, so that a caller who goes away meanwhile leaves no lease held.
        self.run_on_thread(move |open| {
            open.acquire_lease(&key)?;
            Ok(LeaseGuard { key, released, requests })
        })
        .await
    }

    async fn run_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OpenDatabase) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        let job: StoreJob = Box::new(move |open| send_answer(answer, open.and_then(work)));
        self.requests.send(StoreRequest::Run(job)).await.map_err(|_| StoreError::Closed)?;
        let answer = reply.await.map_err(|_| StoreError::Closed)?;
        self.wait_for_answer().await;
        answer
    }
}

fn bad_row_error(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::BadRow { session: session.clone(), seq, reason: error.to_string() }
}
