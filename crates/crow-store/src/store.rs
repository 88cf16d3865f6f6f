//! The handle everyone holds, and the one thread per open database that touches it.
//!
//! Each method is one message to that thread, one transaction there, and one answer back. What a method
//! answered is safe from the death of the process; [`Store::sync`] makes it safe from a loss of power.

mod owner;
mod rights;
mod speckit;
mod tasks;

use std::{collections::HashSet, io, path::Path, sync::Arc, thread};

use crow_core::{Compaction, ContentHash, Entry, Mode, Reply, SessionId, ThoughtLevel, Usage};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub use self::rights::{Attending, Writer};
use self::{
    owner::{Open, Owner, give},
    rights::{GivenBack, Held},
};
use crate::{
    Address, ChangeId, Draft, FileChange, Hit, ListQuery, Message, NewFileChange, NewSession, Range,
    SearchQuery, SessionRow, StoreError, Stored, Timestamp, Tip,
    database::{Change, Database},
    draft, row,
    sql::Right,
};

/// A session waits for each answer before it asks again, so this is more sessions at once than a person has.
const REQUESTS_MAX: usize = 64;

/// Each holds a file open while it is erased, and a process may have a thousand.
const ERASED_AT_ONCE: usize = 128;

/// A database. Clones share it; it closes when the last one goes.
#[derive(Debug, Clone)]
pub struct Store {
    requests: mpsc::Sender<Request>,
    given_back: GivenBack,
    drafts: Arc<Path>,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
type Work = Box<dyn FnOnce(Result<&mut Open, StoreError>) + Send>;

enum Request {
    Work(Work),
    Close(Answer<()>),
}

impl Store {
    /// Names a database. Its thread opens it at once, or makes it when there is none; what stands in the way is the
    /// answer to whatever is asked, and each time it is tried again.
    pub fn at(address: &Address) -> Result<Self, StoreError> {
        let address = address.resolved();
        let opened = address.clone();
        Self::start(&address, move || opened.open())
    }

    /// Opens a database as [`Store::at`] does, and waits until it is open.
    pub async fn open(address: &Address) -> Result<Self, StoreError> {
        let store = Self::at(address)?;
        store.ask(|_| Ok(())).await?;
        Ok(store)
    }

    /// Opens a database only if it is there: looking at one must not make it.
    pub async fn open_existing(address: &Address) -> Result<Option<Self>, StoreError> {
        match address {
            Address::File(path) if !path.exists() => Ok(None),
            Address::File(_) | Address::Server { .. } => Self::open(address).await.map(Some),
        }
    }

    pub(crate) fn start<F>(address: &Address, open: F) -> Result<Self, StoreError>
    where
        F: Fn() -> Result<Database, StoreError> + Send + 'static,
    {
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let given_back = GivenBack::default();
        let owner = Owner { open, inbox, given_back: given_back.clone(), gone: HashSet::new(), state: None };
        thread::Builder::new().name("crow-store".into()).spawn(move || owner.run()).map_err(
            |error: io::Error| StoreError::CannotOpen {
                database: address.to_string(),
                why: error.to_string(),
            },
        )?;
        Ok(Self { requests, given_back, drafts: address.drafts().into() })
    }

    /// Begins a session under a name that nobody has; see [`invent_name`](crate::invent_name).
    pub async fn create_session(&self, id: &SessionId, new: NewSession) -> Result<(), StoreError> {
        let id = id.clone();
        self.ask(move |open| open.database.create_session(&id, &new)).await
    }

    /// Takes the right to write in a session, which another process may have at the moment.
    pub async fn begin_writing(&self, session: &SessionId) -> Result<Writer, StoreError> {
        self.take(Right::Write(session.clone())).await.map(Writer)
    }

    /// Gives the right to write in a session back, and waits until others can have it.
    pub async fn end_writing(&self, writer: Writer) {
        drop(writer);
        // A database that cannot answer has nobody waiting for it.
        drop(self.ask(|_| Ok(())).await);
    }

    /// Stores an entry at place `seq` of a session, which nobody else may have taken.
    pub async fn append(
        &self,
        writer: &Writer,
        seq: u64,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::write(entry).map_err(|error| bad_row(writer.session(), seq, &error))?;
        self.write(writer, move |database, session| database.append(session, seq, &row, now)).await
    }

    /// Begins the draft of the reply at place `seq`, which outlives the process until the reply is stored.
    pub fn draft(&self, writer: &Writer, seq: u64) -> Draft {
        Draft::new(&self.drafts, writer.session(), seq)
    }

    /// Reads what a reply at place `seq` of a session came to, where nobody has stored it.
    pub async fn read_draft(&self, session: &SessionId, seq: u64) -> Option<Reply> {
        let (folder, session) = (self.drafts.clone(), session.clone());
        // On the thread that waits for disks anyway.
        self.ask(move |_| Ok(draft::read(&folder, &session, seq))).await.ok().flatten()
    }

    /// Begins a generation: from here on the model sees what the compaction leaves.
    pub async fn compact(
        &self,
        writer: &Writer,
        compaction: &Compaction,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let compaction = compaction.clone();
        self.write(writer, move |database, session| database.compact(session, &compaction, now)).await
    }

    /// Takes the newest compaction back; gives it, when there was one.
    pub async fn undo_compaction(
        &self,
        writer: &Writer,
        now: Timestamp,
    ) -> Result<Option<Compaction>, StoreError> {
        self.write(writer, move |database, session| database.undo_compaction(session, now)).await
    }

    /// Remembers what a question to a model took that is no message.
    pub async fn note_aside(&self, writer: &Writer, usage: Usage, now: Timestamp) -> Result<(), StoreError> {
        self.write(writer, move |database, session| database.note_aside(session, usage, now)).await
    }

    /// Keeps what is at a path before it is changed.
    pub async fn keep_change(
        &self,
        writer: &Writer,
        change: NewFileChange,
        now: Timestamp,
    ) -> Result<ChangeId, StoreError> {
        self.write(writer, move |database, session| database.keep_change(session, &change, now)).await
    }

    /// Remembers that a change left something else than was meant; `None` is no file.
    pub async fn change_left(
        &self,
        writer: &Writer,
        id: ChangeId,
        after: Option<ContentHash>,
    ) -> Result<(), StoreError> {
        self.write(writer, move |database, _| database.change_left(id, after)).await
    }

    /// Reads the changes of the newest turn that has some left to undo, oldest first.
    pub async fn last_changes(&self, session: &SessionId) -> Result<Vec<FileChange>, StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.last_changes(&session)).await
    }

    /// Remembers that changes were undone.
    pub async fn changes_undone(
        &self,
        writer: &Writer,
        ids: Vec<ChangeId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(writer, move |database, session| database.changes_undone(session, &ids, now)).await
    }

    /// Reads a session with everything said in it; `None` when there is no such session.
    pub async fn load(&self, session: &SessionId) -> Result<Option<Stored>, StoreError> {
        let (session, drafts) = (session.clone(), self.drafts.clone());
        self.ask(move |open| {
            let mut stored = open.database.load(&session)?;
            if let Some(stored) = &mut stored {
                stored.unfinished = draft::read(&drafts, &session, stored.session.n_messages);
            }
            Ok(stored)
        })
        .await
    }

    /// Reads some messages of a session in their order, without images.
    pub async fn messages(&self, session: &SessionId, range: Range) -> Result<Vec<Message>, StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.messages(&session, range)).await
    }

    /// Tells where a session stands; `None` when there is no such session.
    pub async fn tip(&self, session: &SessionId) -> Result<Option<Tip>, StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.tip(&session)).await
    }

    /// Lists the sessions that have messages, the one with the newest first.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(move |open| open.database.list(&query)).await
    }

    /// Lists a session with all that it and its children started, parents before children.
    pub async fn family(&self, session: &SessionId) -> Result<Vec<SessionRow>, StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.family(&session)).await
    }

    /// Lists the sessions that nobody started but a person and whose last message came before a time, oldest first.
    pub async fn older_than(&self, before: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(move |open| open.database.older_than(before)).await
    }

    /// Remembers what a session is about.
    pub async fn set_title(&self, session: &SessionId, title: &str) -> Result<(), StoreError> {
        self.change(session, Change::Title(title.to_owned())).await
    }

    /// Remembers how much a session may do on its own.
    pub async fn set_mode(&self, session: &SessionId, mode: Mode) -> Result<(), StoreError> {
        self.change(session, Change::Mode(mode)).await
    }

    /// Remembers which model a session asks.
    pub async fn set_model(&self, session: &SessionId, model: &str) -> Result<(), StoreError> {
        self.change(session, Change::Model(model.to_owned())).await
    }

    /// Remembers how hard a session's model should think.
    pub async fn set_thought_level(
        &self,
        session: &SessionId,
        level: ThoughtLevel,
    ) -> Result<(), StoreError> {
        self.change(session, Change::ThoughtLevel(level)).await
    }

    /// Remembers what the agent of others that a session runs calls it.
    pub async fn set_agent_session(&self, session: &SessionId, name: &str) -> Result<(), StoreError> {
        self.change(session, Change::AgentSession(name.to_owned())).await
    }

    /// Remembers the template that a session's system prompt was made of.
    pub async fn set_prompt_template(&self, session: &SessionId, template: String) -> Result<(), StoreError> {
        self.change(session, Change::Template(template)).await
    }

    /// Remembers the tools that a session's model is offered, as JSON.
    pub async fn set_tool_definitions(
        &self,
        session: &SessionId,
        definitions: String,
    ) -> Result<(), StoreError> {
        self.change(session, Change::Tools(definitions)).await
    }

    /// Remembers one more thing that is set in a session, under a key of its own; `None` forgets it.
    pub async fn set_config(
        &self,
        session: &SessionId,
        key: &'static str,
        value: Option<Value>,
    ) -> Result<(), StoreError> {
        self.change(session, Change::Config { key, value }).await
    }

    /// Begins a session with all that was said in another; tells whether there is that other.
    pub async fn fork(
        &self,
        session: &SessionId,
        copy: &SessionId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (session, copy) = (session.clone(), copy.clone());
        self.ask(move |open| open.database.fork(&session, &copy, now)).await
    }

    /// Erases a session and the sessions it started; tells whether there was one.
    pub async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.erase(vec![session.clone()]).await.map(|n_deleted| n_deleted > 0)
    }

    /// Erases sessions with those they started, and gives their room back to the disk; tells how many were there.
    pub async fn prune(&self, sessions: Vec<SessionId>) -> Result<u64, StoreError> {
        let n_deleted = self.erase(sessions).await?;
        self.ask(|open| open.database.shrink()).await?;
        Ok(n_deleted)
    }

    /// Erases the sessions that nobody spoke in and that began before a time.
    pub async fn forget_empty(&self, before: Timestamp) -> Result<(), StoreError> {
        self.ask(move |open| open.database.forget_empty(before)).await
    }

    /// Finds messages of people and models, the best first.
    pub async fn search(&self, query: SearchQuery) -> Result<Vec<Hit>, StoreError> {
        self.ask(move |open| open.database.search(&query)).await
    }

    /// Looks for damage; each finding is a sentence.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.ask(|open| open.database.check()).await
    }

    /// Has the disk keep what was stored so far, without waiting for it; meant for the end of a step.
    pub fn sync_soon(&self) {
        let work: Work = Box::new(|open| {
            if let Ok(open) = open {
                open.database.sync(None);
            }
        });
        // Where it does not fit, a step is stored right now whose end comes.
        drop(self.requests.try_send(Request::Work(work)));
    }

    /// Makes everything stored so far survive a loss of power; meant for the end of a turn.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        let work: Work = Box::new(move |open| match open {
            Ok(open) => open.database.sync(Some(Box::new(|flushed| give(answer, flushed)))),
            Err(error) => give(answer, Err(error)),
        });
        self.requests.send(Request::Work(work)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }

    /// Closes the database, for every clone, after everything asked before.
    pub async fn close(self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        self.requests.send(Request::Close(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }

    async fn change(&self, session: &SessionId, change: Change) -> Result<(), StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.change(&session, &change)).await
    }

    async fn erase(&self, sessions: Vec<SessionId>) -> Result<u64, StoreError> {
        let drafts = self.drafts.clone();
        self.ask(move |open| {
            let mut n_deleted = 0;
            for sessions in sessions.chunks(ERASED_AT_ONCE) {
                let (mut going, mut rights) = (HashSet::new(), Vec::new());
                for session in sessions {
                    // What they started goes with them.
                    for row in open.database.family(session)? {
                        if going.insert(row.id.clone()) {
                            // Only what a session started can be a task.
                            rights.extend(row.parent.map(|_| Right::Attend(row.id.clone())));
                            rights.push(Right::Write(row.id));
                        }
                    }
                }
                n_deleted += open.delete(sessions, &rights)?;
                going.iter().for_each(|session| draft::forget(&drafts, session));
            }
            Ok(n_deleted)
        })
        .await
    }

    /// Does what only the writer of a session may.
    async fn write<T: Send + 'static>(
        &self,
        writer: &Writer,
        work: impl FnOnce(&mut Database, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.with(&writer.0, work).await
    }

    /// Does what only who has a right may.
    async fn with<T: Send + 'static>(
        &self,
        held: &Held,
        work: impl FnOnce(&mut Database, &SessionId) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let right = held.right.clone();
        self.ask(move |open| work(open.held_by_us(&right)?, right.session())).await
    }

    async fn take(&self, right: Right) -> Result<Held, StoreError> {
        let (given_back, requests) = (self.given_back.clone(), self.requests.downgrade());
        // Made there, so that a caller who goes away meanwhile leaves nothing held.
        self.ask(move |open| {
            open.claim(&right)?;
            Ok(Held { right, given_back, requests })
        })
        .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Open) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        let work: Work = Box::new(move |open| give(answer, open.and_then(work)));
        self.requests.send(Request::Work(work)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }
}

fn bad_row(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::BadRow { session: session.clone(), seq, why: error.to_string() }
}
