//! The handle everyone holds, and the one thread per open database that touches the file.
//!
//! Each method is one message to that thread, one transaction there, and one answer back. What a method
//! answered is safe from the death of the process; [`Store::sync`] makes it safe from a loss of power.

use std::{path::Path, thread};

use crow_core::{Entry, Mode, SessionId};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Hit, ListQuery, NewSession, SessionRow, StoreError, Stored, Timestamp,
    database::{Change, Database},
    row::{self, Row},
};

/// A session waits for each answer before it asks again, so this is more sessions at once than a person has.
const REQUESTS_MAX: usize = 64;

/// An open database. Clones share it; it closes when the last one goes.
#[derive(Debug, Clone)]
pub struct Store {
    requests: mpsc::Sender<Request>,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

enum Request {
    Create(NewSession, Answer<SessionId>),
    Append { session: SessionId, seq: u64, row: Row, now: Timestamp, answer: Answer<()> },
    Load(SessionId, Answer<Option<Stored>>),
    List(ListQuery, Answer<Vec<SessionRow>>),
    Change(SessionId, Change, Answer<()>),
    Delete(SessionId, Answer<bool>),
    Search { text: String, limit: u32, answer: Answer<Vec<Hit>> },
    Sync(Answer<()>),
    Close(Answer<()>),
}

impl Store {
    /// Opens the database at a path; makes it, and its folder, when there is none.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::start(path, Database::open).await
    }

    pub(crate) async fn start<F>(path: &Path, open: F) -> Result<Self, StoreError>
    where
        F: FnOnce(&Path) -> Result<Database, StoreError> + Send + 'static,
    {
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let (answer, opened) = oneshot::channel();
        let file = path.to_path_buf();
        let owner = move || match open(&file) {
            Ok(database) => {
                if answer.send(Ok(())).is_ok() {
                    Owner { database, inbox }.run();
                }
            }
            Err(error) => give(answer, Err(error)),
        };
        thread::Builder::new()
            .name("crow-store".into())
            .spawn(owner)
            .map_err(|error| StoreError::from_io(path, &error))?;
        opened.await.map_err(|_| StoreError::Closed)??;
        Ok(Self { requests })
    }

    /// Begins a session and makes up its name.
    pub async fn create_session(&self, new: NewSession) -> Result<SessionId, StoreError> {
        self.ask(|answer| Request::Create(new, answer)).await
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
        self.ask(|answer| Request::Append { session, seq, row, now, answer }).await
    }

    /// Reads a session with everything said in it; `None` when there is no such session.
    pub async fn load(&self, session: &SessionId) -> Result<Option<Stored>, StoreError> {
        self.ask(|answer| Request::Load(session.clone(), answer)).await
    }

    /// Lists the sessions that have messages, the one with the newest first.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.ask(|answer| Request::List(query, answer)).await
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

    /// Remembers what a session's model is told first; it is rendered after the session opened.
    pub async fn set_system_prompt(&self, session: &SessionId, text: &str) -> Result<(), StoreError> {
        self.change(session, Change::SystemPrompt(text.to_owned())).await
    }

    /// Erases a session and the sessions it started; tells whether there was one.
    pub async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.ask(|answer| Request::Delete(session.clone(), answer)).await
    }

    /// Finds messages of people and models that have all these words, the best first.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Vec<Hit>, StoreError> {
        let text = text.to_owned();
        self.ask(|answer| Request::Search { text, limit, answer }).await
    }

    /// Makes everything stored so far survive a loss of power; meant for the end of a turn.
    pub async fn sync(&self) -> Result<(), StoreError> {
        self.ask(Request::Sync).await
    }

    /// Closes the database, for every clone, after everything asked before.
    pub async fn close(self) -> Result<(), StoreError> {
        self.ask(Request::Close).await
    }

    async fn change(&self, session: &SessionId, change: Change) -> Result<(), StoreError> {
        self.ask(|answer| Request::Change(session.clone(), change, answer)).await
    }

    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        self.requests.send(request(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }
}

fn bad_row(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::BadRow { session: session.clone(), seq, why: error.to_string() }
}

struct Owner {
    database: Database,
    inbox: mpsc::Receiver<Request>,
}

impl Owner {
    fn run(mut self) {
        while let Some(request) = self.inbox.blocking_recv() {
            let database = &mut self.database;
            match request {
                Request::Create(new, answer) => give(answer, database.create_session(&new)),
                Request::Append { session, seq, row, now, answer } => {
                    give(answer, database.append(&session, seq, &row, now));
                }
                Request::Load(session, answer) => give(answer, database.load(&session)),
                Request::List(query, answer) => give(answer, database.list(&query)),
                Request::Change(session, change, answer) => give(answer, database.change(&session, &change)),
                Request::Delete(session, answer) => give(answer, database.delete(&session)),
                Request::Search { text, limit, answer } => give(answer, database.search(&text, limit)),
                Request::Sync(answer) => give(answer, database.sync()),
                Request::Close(answer) => return give(answer, self.database.close()),
            }
        }
    }
}

/// A caller that went away has no use for its answer; the work stands.
fn give<T>(answer: Answer<T>, result: Result<T, StoreError>) {
    drop(answer.send(result));
}
