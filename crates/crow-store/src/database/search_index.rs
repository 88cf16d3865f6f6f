//! The search index: messages that get into it after they were stored.

use crow_core::SessionId;

use crate::{
    row,
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

/// Messages that are indexed at a time, so that a long session is not in memory twice.
const BATCH: i64 = 256;

/// A stored message by what orders the messages, with the text to index.
struct UnindexedMessage {
    id: i64,
    position: i64,
    text: String,
}

impl UnindexedMessage {
    /// Reads one from the columns `id, position, data`.
    fn from_row(columns: &dyn SqlRow) -> Result<Self, SqlError> {
        // A message that cannot be decoded cannot be found; loading the session reports it.
        let entry = row::decode_entry(columns.get_text(2)?.unwrap_or_default(), None, None);
        let text = entry.map(|entry| row::searchable_text(&entry)).unwrap_or_default();
        Ok(Self { id: columns.read_int(0)?, position: columns.read_int(1)?, text })
    }
}

/// Indexes the messages of a session.
pub(super) fn index_messages(sql: &mut dyn SqlTransaction, session: &SessionId) -> Result<(), SqlError> {
    index_in_batches(sql, 0, |sql, from| {
        sql.query_all(
            "SELECT id, seq, data FROM messages
             WHERE session_id = $1 AND seq >= $2 AND role <> 'tool' ORDER BY seq LIMIT $3",
            values![session, from, BATCH],
            UnindexedMessage::from_row,
        )
    })
}

/// Indexes the messages of all sessions that are not in the index, as after a migration that removed them from it.
pub(crate) fn index_missing_messages(sql: &mut dyn SqlTransaction) -> Result<(), SqlError> {
    index_in_batches(sql, i64::MIN, |sql, from| {
        sql.query_all(sql.dialect().missing_sql, values![from, BATCH], UnindexedMessage::from_row)
    })
}

/// Indexes the batches that a query returns, each from a position on.
fn index_in_batches(
    sql: &mut dyn SqlTransaction,
    mut from: i64,
    read_batch: impl Fn(&mut dyn SqlTransaction, i64) -> Result<Vec<UnindexedMessage>, SqlError>,
) -> Result<(), SqlError> {
    let dialect = sql.dialect();
    loop {
        let messages = read_batch(sql, from)?;
        let Some(last) = messages.last() else { return Ok(()) };
        from = last.position + 1;
        for message in messages.iter().filter(|message| !message.text.is_empty()) {
            let text = (dialect.index_text)(&message.text);
            sql.execute(dialect.index_sql, values![message.id, text.as_ref()])?;
        }
    }
}
