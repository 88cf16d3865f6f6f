//! The handle everyone holds, and the one thread per open database that touches the file.
//!
//! Each method is one message to that thread, one transaction there, and one answer back. What a method
//! answered is safe from the death of the process; [`Store::sync`] makes it safe from a loss of power.

use std::{
    path::{Path, PathBuf},
    thread,
};

use crow_core::{Entry, Mode, SessionId, ThoughtLevel};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Hit, ListQuery, NewSession, SessionRow, StoreError, Stored, Timestamp,
    database::{Change, Database},
    row,
};

/// A session waits for each answer before it asks again, so this is more sessions at once than a person has.
const REQUESTS_MAX: usize = 64;

/// A database. Clones share it; it closes when the last one goes.
#[derive(Debug, Clone)]
pub struct Store {
    requests: mpsc::Sender<Request>,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
type Work = Box<dyn FnOnce(Result<&mut Database, StoreError>) + Send>;

enum Request {
    Work(Work),
    Close(Answer<()>),
}

impl Store {
    /// Names the database at a path. Its thread opens it at once, or makes it, and its folder, when there is none;
    /// what stands in the way is the answer to whatever is asked, and each time it is tried again.
    pub fn at(path: &Path) -> Result<Self, StoreError> {
        Self::start(path, Database::open)
    }

    /// Opens the database at a path, as [`Store::at`] does, and waits until it is open.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self::at(path)?;
        store.ask(|_| Ok(())).await?;
        Ok(store)
    }

    pub(crate) fn start<F>(path: &Path, open: F) -> Result<Self, StoreError>
    where
        F: Fn(&Path) -> Result<Database, StoreError> + Send + 'static,
    {
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let file = path.to_path_buf();
        thread::Builder::new()
            .name("crow-store".into())
            .spawn(move || Owner { database: open(&file).ok(), open, file, inbox }.run())
            .map_err(|error| StoreError::from_io(path, &error))?;
        Ok(Self { requests })
    }

    /// Begins a session under a name that nobody has; see [`invent_name`](crate::invent_name).
    pub async fn create_session(&self, id: &SessionId, new: NewSession) -> Result<(), StoreError> {
        let id = id.clone();
        self.ask(move |database| database.create_session(&id, &new)).await
    }

    /// Stores an entry at place `seq` of a session, which nobody else may have taken.
    pub async fn append(
        &self,
        session: &SessionId,
        seq: u64,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::write(entry).map_err(|error| bad_row(session, seq, &error))?;
        let session = session.clone();
        self.ask(move |database| database.append(&session, seq, &row, now)).await
    }

    /// Reads a session with everything said in it; `None` when there is no such session.
    pub async fn load(&self, session: &SessionId) -> Result<Option<Stored>, StoreError> {
        let session = session.clone();
        self.ask(move |database| database.load(&session)).await
    }

    /// Counts the messages of a session; `None` when there is no such session.
    pub async fn n_messages(&self, session: &SessionId) -> Result<Option<u64>, StoreError> {
        let session = session.clone();
        self.ask(move |database| database.n_messages(&session)).await
    }

    /// Lists the sessions that have messages, the one with the newest first.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(move |database| database.list(&query)).await
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

    /// Erases a session and the sessions it started; tells whether there was one.
    pub async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let session = session.clone();
        self.ask(move |database| database.delete(&session)).await
    }

    /// Erases the sessions that nobody spoke in and that began before a time.
    pub async fn forget_empty(&self, before: Timestamp) -> Result<(), StoreError> {
        self.ask(move |database| database.forget_empty(before)).await
    }

    /// Finds messages of people and models that have all these words, the best first.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Vec<Hit>, StoreError> {
        let text = text.to_owned();
        self.ask(move |database| database.search(&text, limit)).await
    }

    /// Makes everything stored so far survive a loss of power; meant for the end of a turn.
    pub async fn sync(&self) -> Result<(), StoreError> {
        self.ask(Database::sync).await
    }

    /// Closes the database, for every clone, after everything asked before.
    pub async fn close(self) -> Result<(), StoreError> {
        let (answer, reply) = oneshot::channel();
        self.requests.send(Request::Close(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }

    async fn change(&self, session: &SessionId, change: Change) -> Result<(), StoreError> {
        let session = session.clone();
        self.ask(move |database| database.change(&session, &change)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        let work: Work = Box::new(move |database| give(answer, database.and_then(work)));
        self.requests.send(Request::Work(work)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }
}

fn bad_row(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::BadRow { session: session.clone(), seq, why: error.to_string() }
}

struct Owner<F> {
    open: F,
    file: PathBuf,
    database: Option<Database>,
    inbox: mpsc::Receiver<Request>,
}

impl<F: Fn(&Path) -> Result<Database, StoreError>> Owner<F> {
    fn run(mut self) {
        while let Some(request) = self.inbox.blocking_recv() {
            match request {
                Request::Work(work) => work(self.database()),
                Request::Close(answer) => return give(answer, self.database.map_or(Ok(()), Database::close)),
            }
        }
    }

    fn database(&mut self) -> Result<&mut Database, StoreError> {
        let open = match self.database.take() {
            Some(open) => open,
            None => (self.open)(&self.file)?,
        };
        Ok(self.database.insert(open))
    }
}

/// A caller that went away has no use for its answer; the work stands.
fn give<T>(answer: Answer<T>, result: Result<T, StoreError>) {
    drop(answer.send(result));
}
