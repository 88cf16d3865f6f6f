//! One open database: every statement there is.

use std::path::{Path, PathBuf};

use crow_core::{Entry, Mode, SessionId, ThoughtLevel, Usage};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, ToSql, Transaction, TransactionBehavior, named_params, params,
};

use crate::{
    Cursor, Hit, ListQuery, NewSession, SessionRow, StoreError, Stored, Timestamp, open,
    row::{self, Row},
    search,
};

/// A client shows pages; nobody reads a longer one.
const PAGE_MAX: u32 = 500;

const SESSION_COLUMNS: &str =
    "id, cwd, title, model, mode, parent_session_id, agent_type, created, updated, n_messages, thought_level";

/// What may change of a session that goes on.
#[derive(Debug)]
pub(crate) enum Change {
    Title(String),
    Mode(Mode),
    Model(String),
    ThoughtLevel(ThoughtLevel),
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: open::open(path)?, path: path.to_path_buf() })
    }

    /// Lets a test set limits that a machine would have.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn close(self) -> Result<(), StoreError> {
        let path = self.path;
        self.connection.close().map_err(|(_, error)| StoreError::from_sqlite(&path, error))
    }

    pub(crate) fn create_session(&mut self, id: &SessionId, new: &NewSession) -> Result<(), StoreError> {
        self.write(|write| {
            let prompt = prompt_id(write, &new.system_prompt)?;
            let mut insert = write.prepare_cached(
                "INSERT INTO sessions
                     (id, parent_session_id, agent_type, cwd, model, mode, thought_level, prompt_id, created, updated)
                 VALUES (:id, :parent, :agent_type, :cwd, :model, :mode, :thought_level, :prompt, :now, :now)
                 ON CONFLICT (id) DO NOTHING",
            )?;
            let done = insert.execute(named_params! {
                ":id": id.as_str(),
                ":parent": new.parent.as_ref().map(SessionId::as_str),
                ":agent_type": new.agent_type,
                ":cwd": new.cwd,
                ":model": new.model,
                ":mode": new.mode.as_str(),
                ":thought_level": new.thought_level.as_str(),
                ":prompt": prompt,
                ":now": new.now.0,
            });
            match (done, &new.parent) {
                (Ok(0), _) => Err(StoreError::NameTaken(id.clone()).into()),
                (Ok(_), _) => Ok(()),
                (Err(error), Some(parent)) if is_constraint(&error) => {
                    Err(StoreError::NoSession(parent.clone()).into())
                }
                (Err(error), _) => Err(error.into()),
            }
        })
    }

    pub(crate) fn append(
        &mut self,
        session: &SessionId,
        seq: u64,
        row: &Row,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|write| {
            let n_found = write
                .prepare_cached(
                    "UPDATE sessions SET n_messages = n_messages + 1, updated = max(updated, ?2)
                     WHERE id = ?1",
                )?
                .execute(params![session.as_str(), now.0])?;
            if n_found == 0 {
                return Err(StoreError::NoSession(session.clone()).into());
            }
            let done = write
                .prepare_cached(
                    "INSERT INTO messages (session_id, seq, role, data, input_tokens, output_tokens, created)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    session.as_str(),
                    seq.cast_signed(),
                    row.role,
                    row.data,
                    row.usage.map(|usage| usage.input.cast_signed()),
                    row.usage.map(|usage| usage.output.cast_signed()),
                    now.0
                ]);
            match done {
                Err(error) if is_constraint(&error) => {
                    return Err(StoreError::OtherWriter { session: session.clone(), seq }.into());
                }
                done => done?,
            };
            if !row.text.is_empty() {
                let id = write.last_insert_rowid();
                write
                    .prepare_cached("INSERT INTO message_search (rowid, text) VALUES (?1, ?2)")?
                    .execute(params![id, row.text])?;
            }
            Ok(())
        })
    }

    pub(crate) fn load(&mut self, session: &SessionId) -> Result<Option<Stored>, StoreError> {
        self.read(|read| {
            let sql = format!(
                "SELECT {SESSION_COLUMNS}, (SELECT text FROM prompts WHERE prompts.id = prompt_id)
                 FROM sessions WHERE id = ?1"
            );
            let found = read
                .prepare_cached(&sql)?
                .query_row([session.as_str()], |columns| Ok((session_row(columns)?, columns.get(11)?)))
                .optional()?;
            let Some((row, system_prompt)) = found else { return Ok(None) };
            let mut statement = read.prepare_cached(
                "SELECT seq, data, input_tokens, output_tokens FROM messages
                 WHERE session_id = ?1 AND generation = 0 ORDER BY seq",
            )?;
            let mut rows = statement.query([session.as_str()])?;
            let mut entries = Vec::new();
            while let Some(columns) = rows.next()? {
                entries.push(read_entry(session, entries.len() as u64, columns)?);
            }
            Ok(Some(Stored { session: row, system_prompt, entries }))
        })
    }

    pub(crate) fn n_messages(&mut self, session: &SessionId) -> Result<Option<u64>, StoreError> {
        self.read(|read| {
            let count = "SELECT n_messages FROM sessions WHERE id = ?1";
            let found = read.prepare_cached(count)?.query_row([session.as_str()], |columns| columns.get(0));
            Ok(found.optional()?.map(i64::cast_unsigned))
        })
    }

    pub(crate) fn list(&mut self, query: &ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.read(|read| {
            let sql = format!(
                "SELECT {SESSION_COLUMNS} FROM sessions
                 WHERE n_messages > 0 AND (:cwd IS NULL OR cwd = :cwd) AND (:id IS NULL OR (updated, id) < (:updated, :id))
                 ORDER BY updated DESC, id DESC LIMIT :limit"
            );
            let place = query.before.as_ref();
            let mut statement = read.prepare_cached(&sql)?;
            let rows = statement.query_map(
                named_params! {
                    ":cwd": query.cwd,
                    ":updated": place.map(|Cursor { updated, .. }| updated.0),
                    ":id": place.map(|Cursor { id, .. }| id.as_str()),
                    ":limit": query.limit.min(PAGE_MAX),
                },
                session_row,
            )?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub(crate) fn change(&mut self, session: &SessionId, change: &Change) -> Result<(), StoreError> {
        self.write(|write| {
            let (sql, value): (_, &dyn ToSql) = match change {
                Change::Title(title) => ("UPDATE sessions SET title = ?2 WHERE id = ?1", title),
                Change::Mode(mode) => ("UPDATE sessions SET mode = ?2 WHERE id = ?1", &mode.as_str()),
                Change::Model(model) => ("UPDATE sessions SET model = ?2 WHERE id = ?1", model),
                Change::ThoughtLevel(level) => {
                    ("UPDATE sessions SET thought_level = ?2 WHERE id = ?1", &level.as_str())
                }
            };
            match write.prepare_cached(sql)?.execute(params![session.as_str(), value])? {
                0 => Err(StoreError::NoSession(session.clone()).into()),
                _ => Ok(()),
            }
        })
    }

    pub(crate) fn delete(&mut self, session: &SessionId) -> Result<bool, StoreError> {
        let existed = self.write(|write| {
            if write.execute("DELETE FROM sessions WHERE id = ?1", [session.as_str()])? == 0 {
                return Ok(false);
            }
            write.execute("DELETE FROM prompts WHERE id NOT IN (SELECT prompt_id FROM sessions)", [])?;
            // The index only marks words as gone; merging it drops them.
            write.execute("INSERT INTO message_search (message_search) VALUES ('optimize')", [])?;
            Ok(true)
        })?;
        if existed {
            // What was erased stands in the log until that is emptied; a reader elsewhere only delays it.
            let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            emptied.map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        }
        Ok(existed)
    }

    pub(crate) fn forget_empty(&mut self, before: Timestamp) -> Result<(), StoreError> {
        self.write(|write| {
            let empty = "DELETE FROM sessions WHERE n_messages = 0 AND created < ?1";
            write.execute(empty, [before.0])?;
            Ok(())
        })
    }

    pub(crate) fn search(&mut self, text: &str, limit: u32) -> Result<Vec<Hit>, StoreError> {
        let words = search::words(text);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|read| {
            let mut statement = read.prepare_cached(
                "SELECT seq, data, input_tokens, output_tokens, session_id
                 FROM message_search JOIN messages ON messages.id = message_search.rowid
                 WHERE message_search MATCH ?1 ORDER BY rank LIMIT ?2",
            )?;
            let mut rows = statement.query(params![search::expression(&words), limit.min(PAGE_MAX)])?;
            let mut hits = Vec::new();
            while let Some(columns) = rows.next()? {
                let (session, seq) =
                    (SessionId::new(columns.get::<_, String>(4)?), columns.get::<_, i64>(0)?);
                let seq = seq.cast_unsigned();
                // Loading its session says what is wrong with a message; the others are found all the same.
                let Ok(entry) = read_entry(&session, seq, columns) else { continue };
                hits.push(Hit { session, seq, snippet: search::snippet(&row::searched(&entry), &words) });
            }
            Ok(hits)
        })
    }

    /// Commits with the log flushed to the disk, and with it every commit before; the format number is
    /// written once more because only a commit that wrote something flushes.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        self.pragma_synchronous("FULL")?;
        let written = self.write(|write| {
            let format: i64 = write.pragma_query_value(None, "user_version", |row| row.get(0))?;
            Ok(write.pragma_update(None, "user_version", format)?)
        });
        self.pragma_synchronous("NORMAL")?;
        written
    }

    fn pragma_synchronous(&self, level: &str) -> Result<(), StoreError> {
        let set = self.connection.pragma_update(None, "synchronous", level);
        set.map_err(|error| StoreError::from_sqlite(&self.path, error))
    }

    /// Runs one transaction that writes. It takes the lock at its start: a transaction that reads first
    /// and writes later fails at once when another process writes in between, however patient we are.
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(TransactionBehavior::Immediate, work)
    }

    /// Runs one transaction that reads, so that all it reads is of one moment.
    fn read<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(TransactionBehavior::Deferred, work)
    }

    fn transact<T>(
        &mut self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let done = self.connection.transaction_with_behavior(behavior).map_err(Fault::from).and_then(
            |transaction| {
                let result = work(&transaction)?;
                transaction.commit()?;
                Ok(result)
            },
        );
        done.map_err(|fault| match fault {
            Fault::Ours(error) => error,
            Fault::Sqlite(error) => StoreError::from_sqlite(&self.path, error),
        })
    }
}

/// What ended a transaction, before the file's name is added.
enum Fault {
    Ours(StoreError),
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// Finds a system prompt's row, or makes it.
fn prompt_id(write: &Transaction<'_>, text: &str) -> rusqlite::Result<i64> {
    let hash = hash(text);
    let found = write
        .prepare_cached("SELECT id FROM prompts WHERE hash = ?1 AND text = ?2")?
        .query_row(params![hash, text], |columns| columns.get(0))
        .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    write.prepare_cached("INSERT INTO prompts (hash, text) VALUES (?1, ?2)")?.execute(params![hash, text])?;
    Ok(write.last_insert_rowid())
}

/// FNV-1a, which stays the same in every version; two texts with one hash are told apart by comparing them.
fn hash(text: &str) -> i64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const FACTOR: u64 = 0x0100_0000_01b3;
    text.bytes().fold(START, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FACTOR)).cast_signed()
}

fn session_row(columns: &rusqlite::Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: SessionId::new(columns.get::<_, String>(0)?),
        cwd: columns.get(1)?,
        title: columns.get(2)?,
        model: columns.get(3)?,
        // A mode this version does not know is taken for the most careful one.
        mode: Mode::parse(&columns.get::<_, String>(4)?).unwrap_or_default(),
        parent: columns.get::<_, Option<String>>(5)?.map(SessionId::new),
        agent_type: columns.get(6)?,
        created: Timestamp(columns.get(7)?),
        updated: Timestamp(columns.get(8)?),
        n_messages: columns.get::<_, i64>(9)?.cast_unsigned(),
        thought_level: ThoughtLevel::parse(&columns.get::<_, String>(10)?).unwrap_or_default(),
    })
}

/// Reads the message at a place from the columns `seq, data, input_tokens, output_tokens`.
fn read_entry(session: &SessionId, wanted: u64, columns: &rusqlite::Row<'_>) -> Result<Entry, StoreError> {
    let bad = |why| StoreError::BadRow { session: session.clone(), seq: wanted, why };
    let place = columns.get::<_, i64>(0).map_err(|error| bad(error.to_string()))?;
    if place.cast_unsigned() != wanted {
        return Err(bad("it is missing".into()));
    }
    let read = || -> rusqlite::Result<_> {
        let input: Option<i64> = columns.get(2)?;
        let output: Option<i64> = columns.get(3)?;
        let usage = input.zip(output);
        let usage = usage
            .map(|(input, output)| Usage { input: input.cast_unsigned(), output: output.cast_unsigned() });
        Ok((columns.get_ref(1)?.as_str()?, usage))
    };
    let (data, usage) = read().map_err(|error| bad(error.to_string()))?;
    row::read(data, usage).map_err(bad)
}
