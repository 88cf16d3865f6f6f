//! Messages: appending, loading and finding them.

use crow_core::{SessionId, TokenUsage, TranscriptEntry};

use super::{
    blobs, compactions,
    handle::{Database, PAGE_MAX},
    sessions, side_requests,
};
use crate::{
    LoadedSession, MessageRange, SearchHit, SearchQuery, SessionTip, StoreError, StoredMessage, Timestamp,
    row::{self, EncodedMessage},
    search,
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

impl Database {
    pub(crate) fn append_entry(
        &mut self,
        session: &SessionId,
        seq: u64,
        row: &EncodedMessage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| append_message(sql, session, seq, row, now))
    }

    pub(crate) fn load_session(&mut self, session: &SessionId) -> Result<Option<LoadedSession>, StoreError> {
        self.read_transaction(|sql| {
            let Some((row, system_prompt)) = sessions::find_session(sql, session)? else { return Ok(None) };
            let images = blobs::load_images(sql, session)?;
            let mut entries = Vec::new();
            sql.query(
                "SELECT seq, data, input_tokens, output_tokens FROM messages WHERE session_id = $1 ORDER BY seq",
                values![session],
                &mut |columns| {
                    entries.push(read_entry(session, Some(entries.len() as u64), columns, Some(&images))?);
                    Ok(())
                },
            )?;
            let compactions = compactions::active_compactions(sql, session)?;
            let side_requests = side_requests::list_side_requests(sql, session)?;
            Ok(Some(LoadedSession { session: row, system_prompt, entries, compactions, side_requests, unfinished_reply: None }))
        })
    }

    /// Reads messages of a session in order, without images.
    pub(crate) fn load_messages(
        &mut self,
        session: &SessionId,
        range: MessageRange,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let MessageRange { from, limit } = range;
        self.read_transaction(|sql| {
            sql.query_all(
                "SELECT seq, data, input_tokens, output_tokens, created FROM messages
                 WHERE session_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
                values![session, from, i64::from(limit.min(PAGE_MAX))],
                |columns| {
                    let entry = read_entry(session, None, columns, None)?;
                    let created = Timestamp(columns.read_int(4)?);
                    Ok(StoredMessage { seq: columns.read_count(0)?, entry, created })
                },
            )
        })
    }

    pub(crate) fn session_tip(&mut self, session: &SessionId) -> Result<Option<SessionTip>, StoreError> {
        self.read_transaction(|sql| {
            let find = "SELECT n_messages, config FROM sessions WHERE id = $1";
            let found = sql.query_one(find, values![session], |columns| {
                Ok((columns.read_count(0)?, columns.read_string(1)?))
            })?;
            let Some((n_messages, config)) = found else { return Ok(None) };
            let compaction = compactions::newest_compaction(sql, session)?;
            Ok(Some(SessionTip { n_messages, compaction, config }))
        })
    }

    pub(crate) fn search_messages(&mut self, query: &SearchQuery) -> Result<Vec<SearchHit>, StoreError> {
        let words = search::search_words(&query.text);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.read_transaction(|sql| {
            let dialect = sql.dialect();
            let expression = (dialect.search_expression)(&words);
            let session = query.session.as_ref();
            let limit = i64::from(query.limit.min(PAGE_MAX));
            let mut hits = Vec::new();
            let values = values![&expression, session, limit, i64::from(query.offset)];
            sql.query(dialect.search_sql, values, &mut |columns| {
                let session = SessionId::new(columns.read_string(4)?);
                // Loading its session reports a broken message; the others are found all the same.
                let Ok(entry) = read_entry(&session, None, columns, None) else {
                    return Ok(());
                };
                let snippet = search::extract_snippet(&row::searchable_text(&entry), &words);
                let (seq, created) = (columns.read_count(0)?, Timestamp(columns.read_int(5)?));
                hits.push(SearchHit { session, seq, created, role: row::entry_role(&entry), snippet });
                Ok(())
            })?;
            Ok(hits)
        })
    }
}

/// Inserts a message at its sequence number, which must be free, and counts it.
pub(super) fn append_message(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
    seq: u64,
    row: &EncodedMessage,
    now: Timestamp,
) -> Result<(), SqlError> {
    let n_found = sql.execute(
        "UPDATE sessions SET n_messages = n_messages + 1,
             updated = CASE WHEN updated < $1 THEN $1 ELSE updated END
         WHERE id = $2",
        values![now.0, session],
    )?;
    if n_found == 0 {
        return Err(StoreError::NoSession(session.clone()).into());
    }
    insert_message(sql, session, seq, row, now).map_err(|error| match error {
        SqlError::Constraint(_) => StoreError::ConcurrentWrite { session: session.clone(), seq }.into(),
        SqlError::Other(_) => error,
    })
}

/// Inserts a message and indexes it for search.
pub(super) fn insert_message(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
    seq: u64,
    row: &EncodedMessage,
    now: Timestamp,
) -> Result<(), SqlError> {
    let (input, output) = (row.usage.map(|usage| usage.input), row.usage.map(|usage| usage.output));
    let id = sql.query_one(
        "INSERT INTO messages (session_id, seq, role, data, input_tokens, output_tokens, created, turn)
         VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $3 = 'user' THEN 1 ELSE 0 END + COALESCE(
             (SELECT m.turn FROM messages m WHERE m.session_id = $1 AND m.seq < $2 ORDER BY m.seq DESC LIMIT 1), 0))
         RETURNING id",
        values![session, seq, row.role, &row.data, input, output, now.0],
        |columns| columns.read_int(0),
    )?;
    for (hash, bytes) in &row.images {
        blobs::insert_blob(sql, session, blobs::BlobPurpose::Image, *hash, bytes)?;
    }
    if !row.text.is_empty() {
        let dialect = sql.dialect();
        let text = (dialect.index_text)(&row.text);
        sql.execute(dialect.index_sql, values![id, text.as_ref()])?;
    }
    Ok(())
}

/// Reads a message from the columns `seq, data, input_tokens, output_tokens`.
fn read_entry(
    session: &SessionId,
    expected_seq: Option<u64>,
    columns: &dyn SqlRow,
    images: Option<&row::ImagesByHash>,
) -> Result<TranscriptEntry, StoreError> {
    let stored_seq = columns.read_count(0)?;
    let seq = expected_seq.unwrap_or(stored_seq);
    let bad_row = |reason: String| StoreError::BadRow { session: session.clone(), seq, reason };
    if stored_seq != seq {
        return Err(bad_row("it is missing".into()));
    }
    let read = || -> Result<_, SqlError> {
        let usage = columns.get_int(2)?.zip(columns.get_int(3)?);
        let usage =
            usage.map(|(input, output)| TokenUsage::new(input.cast_unsigned(), output.cast_unsigned()));
        Ok((columns.get_text(1)?.unwrap_or_default(), usage))
    };
    let (data, usage) = read().map_err(|error| bad_row(StoreError::from(error).to_string()))?;
    row::decode_entry(data, usage, images).map_err(bad_row)
}
