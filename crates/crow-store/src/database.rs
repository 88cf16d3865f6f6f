//! One open database: every statement there is, written once for all of them.

mod asides;
mod blobs;
mod brought;
mod changes;
mod compactions;
mod copies;
mod sessions;
mod speckit;
mod tasks;

use crow_core::{Entry, SessionId, Usage};

use crate::{
    Hit, Message, Range, SearchQuery, StoreError, Stored, Timestamp, Tip, row,
    row::Row,
    search,
    sql::{Backend, Columns, Fault, Kind, Right, Sql, Synced, values},
};

pub(crate) use self::{
    brought::bring_in,
    sessions::{Change, own_type},
};

/// The tables that a person may ask with their own tools, and what is in their columns.
pub const TABLES: &str = include_str!("database/tables.txt");

/// A client shows pages; nobody reads a longer one.
const PAGE_MAX: u32 = 500;

/// An open database.
pub(crate) struct Database {
    backend: Box<dyn Backend>,
}

impl Database {
    pub(crate) fn new(backend: impl Backend + 'static) -> Self {
        Self { backend: Box::new(backend) }
    }

    pub(crate) fn close(self) -> Result<(), StoreError> {
        self.backend.close()
    }

    pub(crate) fn is_lost(&mut self) -> bool {
        self.backend.is_lost()
    }

    pub(crate) fn claim(&mut self, right: &Right) -> Result<(), StoreError> {
        self.backend.claim(right)
    }

    pub(crate) fn release(&mut self, right: &Right) {
        self.backend.release(right);
    }

    pub(crate) fn sync(&mut self, done: Synced) {
        self.backend.sync(done);
    }

    pub(crate) fn check(&mut self) -> Result<Vec<String>, StoreError> {
        self.backend.check()
    }

    pub(crate) fn append(
        &mut self,
        session: &SessionId,
        seq: u64,
        row: &Row,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|sql| put(sql, session, seq, row, now))
    }

    pub(crate) fn load(&mut self, session: &SessionId) -> Result<Option<Stored>, StoreError> {
        self.read(|sql| {
            let Some((row, system_prompt)) = sessions::find(sql, session)? else { return Ok(None) };
            let images = blobs::images(sql, session)?;
            let mut entries = Vec::new();
            sql.query(
                "SELECT seq, data, input_tokens, output_tokens FROM messages WHERE session_id = $1 ORDER BY seq",
                values![session],
                &mut |columns| {
                    entries.push(read_entry(session, Some(entries.len() as u64), columns, Some(&images))?);
                    Ok(())
                },
            )?;
            let compactions = compactions::in_force(sql, session)?;
            let asides = asides::of(sql, session)?;
            Ok(Some(Stored { session: row, system_prompt, entries, compactions, asides, unfinished: None }))
        })
    }

    /// Reads some messages of a session in their order, without images.
    pub(crate) fn messages(&mut self, session: &SessionId, range: Range) -> Result<Vec<Message>, StoreError> {
        let Range { from, limit } = range;
        self.read(|sql| {
            sql.all(
                "SELECT seq, data, input_tokens, output_tokens, created FROM messages
                 WHERE session_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
                values![session, from, i64::from(limit.min(PAGE_MAX))],
                |columns| {
                    let entry = read_entry(session, None, columns, None)?;
                    let created = Timestamp(columns.number(4)?);
                    Ok(Message { seq: columns.count(0)?, entry, created })
                },
            )
        })
    }

    pub(crate) fn tip(&mut self, session: &SessionId) -> Result<Option<Tip>, StoreError> {
        self.read(|sql| {
            let find = "SELECT n_messages, config FROM sessions WHERE id = $1";
            let found =
                sql.one(find, values![session], |columns| Ok((columns.count(0)?, columns.string(1)?)))?;
            let Some((n_messages, config)) = found else { return Ok(None) };
            let compaction = compactions::newest(sql, session)?;
            Ok(Some(Tip { n_messages, compaction, config }))
        })
    }

    pub(crate) fn search(&mut self, query: &SearchQuery) -> Result<Vec<Hit>, StoreError> {
        let words = search::words(&query.text);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|sql| {
            let dialect = sql.dialect();
            let expression = (dialect.expression)(&words);
            let session = query.session.as_ref();
            let limit = i64::from(query.limit.min(PAGE_MAX));
            let mut hits = Vec::new();
            let values = values![&expression, session, limit, i64::from(query.offset)];
            sql.query(dialect.search, values, &mut |columns| {
                let session = SessionId::new(columns.string(4)?);
                // Loading its session says what is wrong with a message; the others are found all the same.
                let Ok(entry) = read_entry(&session, None, columns, None) else {
                    return Ok(());
                };
                let snippet = search::snippet(&row::searched(&entry), &words);
                let (seq, created) = (columns.count(0)?, Timestamp(columns.number(5)?));
                hits.push(Hit { session, seq, created, speaker: row::speaker(&entry), snippet });
                Ok(())
            })?;
            Ok(hits)
        })
    }

    /// Runs one transaction that writes.
    fn write<T>(&mut self, work: impl FnOnce(&mut dyn Sql) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(Kind::Writes, work)
    }

    /// Runs one transaction that reads, so that all it reads is of one moment.
    fn read<T>(&mut self, work: impl FnOnce(&mut dyn Sql) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.transact(Kind::Reads, work)
    }

    fn transact<T>(
        &mut self,
        kind: Kind,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let (mut work, mut result) = (Some(work), None);
        self.backend.transact(kind, &mut |sql| {
            if let Some(work) = work.take() {
                result = Some(work(sql)?);
            }
            Ok(())
        })?;
        // A transaction that was committed has run its work.
        result.ok_or(StoreError::Closed)
    }
}

/// Puts a message in its place, which nobody else may have taken, and counts it.
fn put(sql: &mut dyn Sql, session: &SessionId, seq: u64, row: &Row, now: Timestamp) -> Result<(), Fault> {
    let n_found = sql.execute(
        "UPDATE sessions SET n_messages = n_messages + 1,
             updated = CASE WHEN updated < $1 THEN $1 ELSE updated END
         WHERE id = $2",
        values![now.0, session],
    )?;
    if n_found == 0 {
        return Err(StoreError::NoSession(session.clone()).into());
    }
    insert(sql, session, seq, row, now).map_err(|fault| match fault {
        Fault::Constraint(_) => StoreError::OtherWriter { session: session.clone(), seq }.into(),
        Fault::Other(_) => fault,
    })
}

/// Puts a message in its place and makes it findable.
fn insert(sql: &mut dyn Sql, session: &SessionId, seq: u64, row: &Row, now: Timestamp) -> Result<(), Fault> {
    let (input, output) = (row.usage.map(|usage| usage.input), row.usage.map(|usage| usage.output));
    let id = sql.one(
        "INSERT INTO messages (session_id, seq, role, data, input_tokens, output_tokens, created, turn)
         VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $3 = 'user' THEN 1 ELSE 0 END + COALESCE(
             (SELECT m.turn FROM messages m WHERE m.session_id = $1 AND m.seq < $2 ORDER BY m.seq DESC LIMIT 1), 0))
         RETURNING id",
        values![session, seq, row.role, &row.data, input, output, now.0],
        |columns| columns.number(0),
    )?;
    for (hash, bytes) in &row.images {
        blobs::keep(sql, session, blobs::Purpose::Image, (*hash, bytes))?;
    }
    if !row.text.is_empty() {
        let dialect = sql.dialect();
        let text = (dialect.indexed)(&row.text);
        sql.execute(dialect.index, values![id, text.as_ref()])?;
    }
    Ok(())
}

/// Reads the message at a place from the columns `seq, data, input_tokens, output_tokens`.
fn read_entry(
    session: &SessionId,
    wanted: Option<u64>,
    columns: &dyn Columns,
    images: Option<&row::Images>,
) -> Result<Entry, StoreError> {
    let place = columns.count(0)?;
    let seq = wanted.unwrap_or(place);
    let bad = |why: String| StoreError::BadRow { session: session.clone(), seq, why };
    if place != seq {
        return Err(bad("it is missing".into()));
    }
    let read = || -> Result<_, Fault> {
        let usage = columns.int(2)?.zip(columns.int(3)?);
        let usage = usage.map(|(input, output)| Usage::new(input.cast_unsigned(), output.cast_unsigned()));
        Ok((columns.text(1)?.unwrap_or_default(), usage))
    };
    let (data, usage) = read().map_err(|fault| bad(StoreError::from(fault).to_string()))?;
    row::read(data, usage, images).map_err(bad)
}
