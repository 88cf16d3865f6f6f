//! The generations of a session: what the model saw from which message on.

use crow_core::{CallId, Compaction, SessionId};

use super::handle::Database;
use crate::{
    StoreError, Timestamp,
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

impl Database {
    pub(crate) fn record_compaction(
        &mut self,
        session: &SessionId,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| begin_generation(sql, session, compaction))
    }

    pub(crate) fn undo_compaction(
        &mut self,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Option<Compaction>, StoreError> {
        self.write_transaction(|sql| {
            let Some(last) = newest_compaction(sql, session)? else { return Ok(None) };
            sql.execute(
                "UPDATE compaction_history SET undone = $1
                 WHERE session_id = $2 AND generation = (
                     SELECT max(generation) FROM compaction_history WHERE session_id = $2 AND undone IS NULL)",
                values![now.0, session],
            )?;
            Ok(Some(last))
        })
    }
}

/// Reads the newest compaction that was not undone.
pub(super) fn newest_compaction(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
) -> Result<Option<Compaction>, SqlError> {
    sql.query_one(
        "SELECT n_messages, new_first, said, summary, pruned, tokens_before, tokens_after, created
         FROM compaction_history WHERE session_id = $1 AND undone IS NULL ORDER BY generation DESC LIMIT 1",
        values![session],
        |columns| read_compaction(session, columns),
    )
}

/// Adds a generation to a session.
pub(super) fn begin_generation(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
    compaction: &Compaction,
) -> Result<(), SqlError> {
    let verbatim_prompts: Vec<String> = compaction.verbatim_prompts.iter().map(u64::to_string).collect();
    let pruned: Vec<String> = compaction.pruned.iter().map(CallId::to_string).collect();
    let newest = "SELECT max(generation) FROM compaction_history WHERE session_id = $1";
    let last_generation = sql.query_one(newest, values![session], |columns| columns.read_int(0))?;
    let old_first = newest_compaction(sql, session)?.map_or(0, |before| before.keep_from);
    let result = sql.execute(
        "INSERT INTO compaction_history (session_id, generation, old_first, new_first, n_messages,
             summary, said, pruned, tokens_before, tokens_after, created)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        values![
            session,
            last_generation.unwrap_or_default() + 1,
            old_first,
            compaction.keep_from,
            compaction.at_seq,
            compaction.summary.as_ref(),
            &verbatim_prompts.join(" "),
            &pruned.join(" "),
            compaction.tokens_before,
            compaction.tokens_after,
            compaction.began_ms,
        ],
    );
    match result {
        Ok(_) => Ok(()),
        Err(SqlError::Constraint(_)) => Err(StoreError::NoSession(session.clone()).into()),
        Err(error) => Err(error),
    }
}

/// Reads the compactions that were not undone, oldest first.
pub(super) fn active_compactions(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
) -> Result<Vec<Compaction>, SqlError> {
    sql.query_all(
        "SELECT n_messages, new_first, said, summary, pruned, tokens_before, tokens_after, created
         FROM compaction_history WHERE session_id = $1 AND undone IS NULL ORDER BY generation",
        values![session],
        |columns| read_compaction(session, columns),
    )
}

fn read_compaction(session: &SessionId, columns: &dyn SqlRow) -> Result<Compaction, SqlError> {
    let at_seq = columns.read_count(0)?;
    let bad_row = |what: &str| StoreError::BadRow {
        session: session.clone(),
        seq: at_seq,
        reason: format!("its compaction has the invalid value `{what}`"),
    };
    let verbatim_prompts = columns.read_string(2)?;
    let verbatim_prompts =
        verbatim_prompts.split_whitespace().map(|word| word.parse().map_err(|_| bad_row(word)));
    let pruned = columns.read_string(4)?;
    let pruned = pruned.split_whitespace().map(|word| CallId::parse(word).ok_or_else(|| bad_row(word)));
    Ok(Compaction {
        at_seq,
        keep_from: columns.read_count(1)?,
        verbatim_prompts: verbatim_prompts.collect::<Result<_, _>>()?,
        summary: columns.read_optional_string(3)?,
        pruned: pruned.collect::<Result<_, _>>()?,
        tokens_before: columns.read_count(5)?,
        tokens_after: columns.read_count(6)?,
        began_ms: columns.read_int(7)?,
    })
}
