//! The generations of a session: what the model saw from when on.

use crow_core::{CallId, Compaction, SessionId};

use super::Database;
use crate::{
    StoreError, Timestamp,
    sql::{Columns, Fault, Sql, values},
};

impl Database {
    pub(crate) fn compact(
        &mut self,
        session: &SessionId,
        compaction: &Compaction,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|sql| begin_generation(sql, session, compaction, now))
    }

    pub(crate) fn undo_compaction(
        &mut self,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Option<Compaction>, StoreError> {
        self.write(|sql| {
            let Some(last) = newest(sql, session)? else { return Ok(None) };
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

/// Reads the newest compaction that was not taken back.
pub(super) fn newest(sql: &mut dyn Sql, session: &SessionId) -> Result<Option<Compaction>, Fault> {
    sql.one(
        "SELECT n_messages, new_first, said, summary, pruned, tokens_before, tokens_after
         FROM compaction_history WHERE session_id = $1 AND undone IS NULL ORDER BY generation DESC LIMIT 1",
        values![session],
        |columns| read(session, columns),
    )
}

/// Adds a generation to those of a session.
pub(super) fn begin_generation(
    sql: &mut dyn Sql,
    session: &SessionId,
    compaction: &Compaction,
    now: Timestamp,
) -> Result<(), Fault> {
    let said: Vec<String> = compaction.said.iter().map(u64::to_string).collect();
    let pruned: Vec<String> = compaction.pruned.iter().map(CallId::to_string).collect();
    let count = "SELECT count(*) FROM compaction_history WHERE session_id = $1";
    let n_before = sql.one(count, values![session], |columns| columns.number(0))?;
    let old_first = newest(sql, session)?.map_or(0, |before| before.keep_from);
    let done = sql.execute(
        "INSERT INTO compaction_history (session_id, generation, old_first, new_first, n_messages,
             summary, said, pruned, tokens_before, tokens_after, created)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        values![
            session,
            n_before.unwrap_or_default() + 1,
            old_first,
            compaction.keep_from,
            compaction.at,
            compaction.summary.as_ref(),
            &said.join(" "),
            &pruned.join(" "),
            compaction.tokens_before,
            compaction.tokens_after,
            now.0,
        ],
    );
    match done {
        Ok(_) => Ok(()),
        Err(Fault::Constraint(_)) => Err(StoreError::NoSession(session.clone()).into()),
        Err(fault) => Err(fault),
    }
}

/// Reads the compactions that were not taken back, oldest first.
pub(super) fn in_force(sql: &mut dyn Sql, session: &SessionId) -> Result<Vec<Compaction>, Fault> {
    sql.all(
        "SELECT n_messages, new_first, said, summary, pruned, tokens_before, tokens_after
         FROM compaction_history WHERE session_id = $1 AND undone IS NULL ORDER BY generation",
        values![session],
        |columns| read(session, columns),
    )
}

fn read(session: &SessionId, columns: &dyn Columns) -> Result<Compaction, Fault> {
    let at = columns.count(0)?;
    let bad = |what: &str| StoreError::BadRow {
        session: session.clone(),
        seq: at,
        why: format!("its compaction names `{what}`"),
    };
    let said = columns.string(2)?;
    let said = said.split_whitespace().map(|word| word.parse().map_err(|_| bad(word)));
    let pruned = columns.string(4)?;
    let pruned = pruned.split_whitespace().map(|word| CallId::parse(word).ok_or_else(|| bad(word)));
    Ok(Compaction {
        at,
        keep_from: columns.count(1)?,
        said: said.collect::<Result<_, _>>()?,
        summary: columns.maybe_string(3)?,
        pruned: pruned.collect::<Result<_, _>>()?,
        tokens_before: columns.count(5)?,
        tokens_after: columns.count(6)?,
    })
}
