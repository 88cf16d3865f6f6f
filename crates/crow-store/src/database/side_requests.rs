//! Usage of requests that are not messages.

use crow_core::{SessionId, SideRequestUsage, TokenUsage};

use super::handle::Database;
use crate::{
    StoreError, Timestamp,
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

impl Database {
    /// Records the usage of a request, before the next message.
    pub(crate) fn record_side_request(
        &mut self,
        session: &SessionId,
        usage: TokenUsage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
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

/// Reads the usages of a session in order.
pub(super) fn list_side_requests(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
) -> Result<Vec<SideRequestUsage>, SqlError> {
    sql.query_all(
        "SELECT seq, input_tokens, output_tokens, cached_tokens, cache_written_tokens, cost
         FROM asides WHERE session_id = $1 ORDER BY id",
        values![session],
        read_side_request,
    )
}

fn read_side_request(columns: &dyn SqlRow) -> Result<SideRequestUsage, SqlError> {
    let usage = TokenUsage {
        input: columns.read_count(1)?,
        output: columns.read_count(2)?,
        cached: columns.read_count(3)?,
        cache_written: columns.read_count(4)?,
        cost: columns.get_int(5)?.map(i64::cast_unsigned),
    };
    Ok(SideRequestUsage { seq: columns.read_count(0)?, usage })
}
