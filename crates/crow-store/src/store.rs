//! The handle everyone holds, and the one thread per open database that touches it.
//!
//! Each method is one message to that thread, one transaction there, and one answer back. What a method
//! answered is safe from the death of the process; [`Store::sync`] makes it safe from a loss of power.

mod owner;
mod rights;
mod speckit;
mod tasks;

use std::{collections::HashSet, io, path::Path, sync::Arc, thread};

use crow_core::{Compaction, ContentHash, Mode, Reply, SessionId, ThoughtLevel, TokenUsage, TranscriptEntry};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub use self::rights::{SessionLease, TaskLease};
use self::{
    owner::{OpenDatabase, StoreActor, send_answer},
    rights::{LeaseGuard, ReleasedLeases},
};
use crate::{
    ChangeId, DatabaseAddress, Draft, FileChange, ListQuery, LoadedSession, MessageRange, NewFileChange,
    NewSession, SearchHit, SearchQuery, SessionRow, SessionTip, StoreError, StoredMessage, Timestamp,
    database::{Database, SessionChange},
    draft, row,
    sql::LeaseKey,
};

/// A session waits for each answer before it asks again, so this is more sessions at once than a person has.
const REQUESTS_MAX: usize = 64;

/// Each holds a file open while it is erased, and a process may have a thousand.
const ERASED_AT_ONCE: usize = 128;

/// A database. Clones share it; it closes when the last one goes.
#[derive(Debug, Clone)]
pub struct Store {
    requests: mpsc::Sender<StoreRequest>,
    given_back: ReleasedLeases,
    drafts: Arc<Path>,
}

type AnswerSender<T> = oneshot::Sender<Result<T, StoreError>>;
type StoreJob = Box<dyn FnOnce(Result<&mut OpenDatabase, StoreError>) + Send>;

enum StoreRequest {
    Work(StoreJob),
    Close(AnswerSender<()>),
}

impl Store {
    /// Names a database. Its thread opens it at once, or makes it when there is none; what stands in the way is the
    /// answer to whatever is asked, and each time it is tried again.
    pub fn open_in_background(address: &DatabaseAddress) -> Result<Self, StoreError> {
        let address = address.resolve_links();
        let opened = address.clone();
        Self::start(&address, move || opened.open())
    }

    /// Opens a database as [`Store::open_in_background`] does, and waits until it is open.
    pub async fn open(address: &DatabaseAddress) -> Result<Self, StoreError> {
        let store = Self::open_in_background(address)?;
        store.run_on_thread(|_| Ok(())).await?;
        Ok(store)
    }

    /// Opens a database only if it is there: looking at one must not make it.
    pub async fn open_existing(address: &DatabaseAddress) -> Result<Option<Self>, StoreError> {
        match address {
            DatabaseAddress::File(path) if !path.exists() => Ok(None),
            DatabaseAddress::File(_) | DatabaseAddress::Server { .. } => Self::open(address).await.map(Some),
        }
    }

    pub(crate) fn start<F>(address: &DatabaseAddress, open: F) -> Result<Self, StoreError>
    where
        F: Fn() -> Result<Database, StoreError> + Send + 'static,
    {
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let given_back = ReleasedLeases::default();
        let owner =
            StoreActor { open, inbox, given_back: given_back.clone(), gone: HashSet::new(), state: None };
        thread::Builder::new().name("crow-store".into()).spawn(move || owner.run()).map_err(
            |error: io::Error| StoreError::CannotOpen {
                database: address.to_string(),
                why: error.to_string(),
            },
        )?;
        Ok(Self { requests, given_back, drafts: address.drafts_folder().into() })
    }

    /// Begins a session under a name that nobody has; see [`invent_name`](crate::invent_name).
    pub async fn create_session(&self, id: &SessionId, new: NewSession) -> Result<(), StoreError> {
        let id = id.clone();
        self.run_on_thread(move |open| open.database.create_session(&id, &new)).await
    }

    /// Takes the right to write in a session, which another process may have at the moment.
    pub async fn acquire_session_lease(&self, session: &SessionId) -> Result<SessionLease, StoreError> {
        self.acquire_lease(LeaseKey::Write(session.clone())).await.map(SessionLease)
    }

    /// Gives the right to write in a session back, and waits until others can have it.
    pub async fn release_session_lease(&self, writer: SessionLease) {
        drop(writer);
        // A database that cannot answer has nobody waiting for it.
        drop(self.run_on_thread(|_| Ok(())).await);
    }

    /// Stores an entry at place `seq` of a session, which nobody else may have taken.
    pub async fn append_entry(
        &self,
        writer: &SessionLease,
        seq: u64,
        entry: &TranscriptEntry,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::encode_entry(entry).map_err(|error| bad_row_error(writer.session(), seq, &error))?;
        self.with_session_lease(writer, move |database, session| {
            database.append_entry(session, seq, &row, now)
        })
        .await
    }

    /// Begins the draft of the reply at place `seq`, which outlives the process until the reply is stored.
    pub fn begin_draft(&self, writer: &SessionLease, seq: u64) -> Draft {
        Draft::new(&self.drafts, writer.session(), seq)
    }

    /// Reads what a reply at place `seq` of a session came to, where nobody has stored it.
    pub async fn read_draft(&self, session: &SessionId, seq: u64) -> Option<Reply> {
        let (folder, session) = (self.drafts.clone(), session.clone());
        // On the thread that waits for disks anyway.
        self.run_on_thread(move |_| Ok(draft::read_draft(&folder, &session, seq))).await.ok().flatten()
    }

    /// Begins a generation: from here on the model sees what the compaction leaves.
    pub async fn record_compaction(
        &self,
        writer: &SessionLease,
        compaction: &Compaction,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let compaction = compaction.clone();
        self.with_session_lease(writer, move |database, session| {
            database.record_compaction(session, &compaction, now)
        })
        .await
    }

    /// Takes the newest compaction back; gives it, when there was one.
    pub async fn undo_compaction(
        &self,
        writer: &SessionLease,
        now: Timestamp,
    ) -> Result<Option<Compaction>, StoreError> {
        self.with_session_lease(writer, move |database, session| database.undo_compaction(session, now)).await
    }

    /// Remembers what a question to a model took that is no message.
    pub async fn record_side_request(
        &self,
        writer: &SessionLease,
        usage: TokenUsage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.with_session_lease(writer, move |database, session| {
            database.record_side_request(session, usage, now)
        })
        .await
    }

    /// Keeps what is at a path before it is changed.
    pub async fn record_change(
        &self,
        writer: &SessionLease,
        change: NewFileChange,
        now: Timestamp,
    ) -> Result<ChangeId, StoreError> {
        self.with_session_lease(writer, move |database, session| {
            database.record_change(session, &change, now)
        })
        .await
    }

    /// Remembers that a change left something else than was meant; `None` is no file.
    pub async fn set_change_after(
        &self,
        writer: &SessionLease,
        id: ChangeId,
        after: Option<ContentHash>,
    ) -> Result<(), StoreError> {
        self.with_session_lease(writer, move |database, _| database.set_change_after(id, after)).await
    }

    /// Reads the changes of the newest turn that has some left to undo, oldest first.
    pub async fn last_changes(&self, session: &SessionId) -> Result<Vec<FileChange>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.last_changes(&session)).await
    }

    /// Remembers that changes were undone.
    pub async fn mark_changes_undone(
        &self,
        writer: &SessionLease,
        ids: Vec<ChangeId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.with_session_lease(writer, move |database, session| {
            database.mark_changes_undone(session, &ids, now)
        })
        .await
    }

    /// Reads a session with everything said in it; `None` when there is no such session.
    pub async fn load_session(&self, session: &SessionId) -> Result<Option<LoadedSession>, StoreError> {
        let (session, drafts) = (session.clone(), self.drafts.clone());
        self.run_on_thread(move |open| {
            let mut stored = open.database.load_session(&session)?;
            if let Some(stored) = &mut stored {
                stored.unfinished = draft::read_draft(&drafts, &session, stored.session.n_messages);
            }
            Ok(stored)
        })
        .await
    }

    /// Reads some messages of a session in their order, without images.
    pub async fn load_messages(
        &self,
        session: &SessionId,
        range: MessageRange,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.load_messages(&session, range)).await
    }

    /// Tells where a session stands; `None` when there is no such session.
    pub async fn session_tip(&self, session: &SessionId) -> Result<Option<SessionTip>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.session_tip(&session)).await
    }

    /// Lists the sessions that have messages, the one with the newest first.
    pub async fn list_sessions(&self, query: ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.run_on_thread(move |open| open.database.list_sessions(&query)).await
    }

    /// Lists a session with all that it and its children started, parents before children.
    pub async fn session_tree(&self, session: &SessionId) -> Result<Vec<SessionRow>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.session_tree(&session)).await
    }

    /// Lists the sessions that nobody started but a person and whose last message came before a time, oldest first.
    pub async fn sessions_older_than(&self, before: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
        self.run_on_thread(move |open| open.database.sessions_older_than(before)).await
    }

    /// Remembers what a session is about.
    pub async fn set_title(&self, session: &SessionId, title: &str) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Title(title.to_owned())).await
    }

    /// Remembers how much a session may do on its own.
    pub async fn set_mode(&self, session: &SessionId, mode: Mode) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Mode(mode)).await
    }

    /// Remembers which model a session asks.
    pub async fn set_model(&self, session: &SessionId, model: &str) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Model(model.to_owned())).await
    }

    /// Remembers how hard a session's model should think.
    pub async fn set_thought_level(
        &self,
        session: &SessionId,
        level: ThoughtLevel,
    ) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::ThoughtLevel(level)).await
    }

    /// Remembers what the agent of others that a session runs calls it.
    pub async fn set_agent_session(&self, session: &SessionId, name: &str) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::AgentSession(name.to_owned())).await
    }

    /// Remembers the template that a session's system prompt was made of.
    pub async fn set_prompt_template(&self, session: &SessionId, template: String) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Template(template)).await
    }

    /// Remembers the tools that a session's model is offered, as JSON.
    pub async fn set_tool_definitions(
        &self,
        session: &SessionId,
        definitions: String,
    ) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Tools(definitions)).await
    }

    /// Remembers one more thing that is set in a session, under a key of its own; `None` forgets it.
    pub async fn set_config(
        &self,
        session: &SessionId,
        key: &'static str,
        value: Option<Value>,
    ) -> Result<(), StoreError> {
        self.update_session(session, SessionChange::Config { key, value }).await
    }

    /// Begins a session with all that was said in another; tells whether there is that other.
    pub async fn fork_session(
        &self,
        session: &SessionId,
        copy: &SessionId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (session, copy) = (session.clone(), copy.clone());
        self.run_on_thread(move |open| open.database.fork_session(&session, &copy, now)).await
    }

    /// Erases a session and the sessions it started; tells whether there was one.
    pub async fn delete_session(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.erase_sessions(vec![session.clone()]).await.map(|n_deleted| n_deleted > 0)
    }

    /// Erases sessions with those they started, and gives their room back to the disk; tells how many were there.
    pub async fn prune_sessions(&self, sessions: Vec<SessionId>) -> Result<u64, StoreError> {
        let n_deleted = self.erase_sessions(sessions).await?;
        self.run_on_thread(|open| open.database.reclaim_space()).await?;
        Ok(n_deleted)
    }

    /// Erases the sessions that nobody spoke in and that began before a time.
    pub async fn delete_empty_sessions(&self, before: Timestamp) -> Result<(), StoreError> {
        self.run_on_thread(move |open| open.database.delete_empty_sessions(before)).await
    }

    /// Finds messages of people and models, the best first.
    pub async fn search_messages(&self, query: SearchQuery) -> Result<Vec<SearchHit>, StoreError> {
        self.run_on_thread(move |open| open.database.search_messages(&query)).await
    }

    /// Looks for damage; each finding is a sentence.
    pub async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        self.run_on_thread(|open| open.database.check_integrity()).await
    }

    /// Has the disk keep what was stored so far, without waiting for it; meant for the end of a step.
    pub fn sync_soon(&self) {
        let work: StoreJob = Box::new(|open| {
            if let Ok(open) = open {
                open.database.sync(None);
            }
        });
        // Where it does not fit, a step is stored right now whose end comes.
        drop(self.requests.try_send(StoreRequest::Work(work)));
    }

    /// Makes everything stored so far survive a loss of power; meant for the end of a turn.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        let work: StoreJob = Box::new(move |open| match open {
            Ok(open) => open.database.sync(Some(Box::new(|flushed| send_answer(answer, flushed)))),
            Err(error) => send_answer(answer, Err(error)),
        });
        self.requests.send(StoreRequest::Work(work)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }

    /// Closes the database, for every clone, after everything asked before.
    pub async fn close(self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        self.requests.send(StoreRequest::Close(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }

    async fn update_session(&self, session: &SessionId, change: SessionChange) -> Result<(), StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.update_session(&session, &change)).await
    }

    async fn erase_sessions(&self, sessions: Vec<SessionId>) -> Result<u64, StoreError> {
        let drafts = self.drafts.clone();
        self.run_on_thread(move |open| {
            let mut n_deleted = 0;
            for sessions in sessions.chunks(ERASED_AT_ONCE) {
                let (mut going, mut rights) = (HashSet::new(), Vec::new());
                for session in sessions {
                    // What they started goes with them.
                    for row in open.database.session_tree(session)? {
                        if going.insert(row.id.clone()) {
                            // Only what a session started can be a task.
                            rights.extend(row.parent.map(|_| LeaseKey::Attend(row.id.clone())));
                            rights.push(LeaseKey::Write(row.id));
                        }
                    }
                }
                n_deleted += open.delete_sessions(sessions, &rights)?;
                going.iter().for_each(|session| draft::delete_draft(&drafts, session));
            }
            Ok(n_deleted)
        })
        .await
    }

    /// Does what only the writer of a session may.
    async fn with_session_lease<T: Send + 'static>(
        &self,
        writer: &SessionLease,
        work: impl FnOnce(&mut Database, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.with_lease(&writer.0, work).await
    }

    /// Does what only who has a right may.
    async fn with_lease<T: Send + 'static>(
        &self,
        held: &LeaseGuard,
        work: impl FnOnce(&mut Database, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let right = held.right.clone();
        self.run_on_thread(move |open| work(open.database_with_lease(&right)?, right.session())).await
    }

    async fn acquire_lease(&self, right: LeaseKey) -> Result<LeaseGuard, StoreError> {
        let (given_back, requests) = (self.given_back.clone(), self.requests.downgrade());
        // Made there, so that a caller who goes away meanwhile leaves nothing held.
        self.run_on_thread(move |open| {
            open.acquire_lease(&right)?;
            Ok(LeaseGuard { right, given_back, requests })
        })
        .await
    }

    async fn run_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OpenDatabase) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        let work: StoreJob = Box::new(move |open| send_answer(answer, open.and_then(work)));
        self.requests.send(StoreRequest::Work(work)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }
}

fn bad_row_error(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::BadRow { session: session.clone(), seq, why: error.to_string() }
}
