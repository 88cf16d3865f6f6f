//! What questions to a model took that are no messages.

use crow_core::{SessionId, Usage};

use super::Database;
use crate::{
    Aside, StoreError, Timestamp,
    sql::{Columns, Fault, Sql, values},
};

impl Database {
    /// Takes down what a question took, before the message that comes next.
    pub(crate) fn note_aside(
        &mut self,
        session: &SessionId,
        usage: Usage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|sql| {
            let n_stored = sql.execute(
                "INSERT INTO asides (session_id, seq, input_tokens, output_tokens, cached_tokens,
                     cache_written_tokens, cost, created)
                 SELECT id, n_messages, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT),
                     CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT)
                 FROM sessions WHERE id = $1",
                values![
                    session,
                    usage.input,
                    usage.output,
                    usage.cached,
                    usage.cache_written,
                    usage.cost,
                    now.0
                ],
            )?;
            if n_stored == 0 { Err(StoreError::NoSession(session.clone()).into()) } else { Ok(()) }
        })
    }
}

/// Reads what the questions of a session took, in their order.
pub(super) fn of(sql: &mut dyn Sql, session: &SessionId) -> Result<Vec<Aside>, Fault> {
    sql.all(
        "SELECT seq, input_tokens, output_tokens, cached_tokens, cache_written_tokens, cost
         FROM asides WHERE session_id = $1 ORDER BY id",
        values![session],
        aside,
    )
}

fn aside(columns: &dyn Columns) -> Result<Aside, Fault> {
    let usage = Usage {
        input: columns.count(1)?,
        output: columns.count(2)?,
        cached: columns.count(3)?,
        cache_written: columns.count(4)?,
        cost: columns.int(5)?.map(i64::cast_unsigned),
    };
    Ok(Aside { seq: columns.count(0)?, usage })
}
