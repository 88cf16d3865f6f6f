//! Usage of models over time.

use std::collections::{BTreeMap, HashMap};

use crow_core::{SessionId, TokenUsage};

use super::handle::Database;
use crate::{
    PeriodUsage, StoreError, Timestamp, USAGE_PERIOD_MS, row,
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

/// Replies with token counts since `$1`. Messages that a fork copied are older than the fork; those of any other session
/// may be, if the clock was ahead when it began.
const REPLIES_SQL: &str = "SELECT m.session_id, m.created, m.input_tokens, m.output_tokens, m.data
     FROM messages m JOIN sessions s ON s.id = m.session_id
     WHERE m.role = 'assistant' AND m.created >= $1 AND (s.forked_from IS NULL OR m.created >= s.created)
       AND m.input_tokens IS NOT NULL";

/// Requests since `$1` that are not messages.
const SIDE_REQUESTS_SQL: &str =
    "SELECT a.session_id, a.created, a.input_tokens, a.output_tokens, a.cached_tokens,
         a.cache_written_tokens, a.cost
     FROM asides a JOIN sessions s ON s.id = a.session_id
     WHERE a.created >= $1 AND (s.forked_from IS NULL OR a.created >= s.created)";

impl Database {
    pub(crate) fn usage_since(&mut self, since: Timestamp) -> Result<Vec<PeriodUsage>, StoreError> {
        self.read_transaction(|sql| {
            let mut totals = UsageTotals { sessions: list_settings(sql)?, periods: BTreeMap::new() };
            sql.query(REPLIES_SQL, values![since.0], &mut |columns| {
                let reply =
                    row::decode_reply_usage(columns.get_text(4)?.unwrap_or_default(), read_counts(columns)?);
                totals.add_request(columns, reply.usage, reply.fallback_model)
            })?;
            sql.query(SIDE_REQUESTS_SQL, values![since.0], &mut |columns| {
                let usage = TokenUsage {
                    cached: columns.read_count(4)?,
                    cache_written: columns.read_count(5)?,
                    cost: columns.get_int(6)?.map(i64::cast_unsigned),
                    ..read_counts(columns)?
                };
                totals.add_request(columns, usage, None)
            })?;
            Ok(totals.periods.into_values().collect())
        })
    }
}

/// The settings of a session that its usage names.
struct SessionSettings {
    cwd: String,
    model: String,
}

fn list_settings(sql: &mut dyn SqlTransaction) -> Result<HashMap<String, SessionSettings>, SqlError> {
    let mut sessions = HashMap::new();
    sql.query("SELECT id, cwd, model FROM sessions", values![], &mut |columns| {
        let settings = SessionSettings { cwd: columns.read_string(1)?, model: columns.read_string(2)? };
        sessions.insert(columns.read_string(0)?, settings);
        Ok(())
    })?;
    Ok(sessions)
}

fn read_counts(columns: &dyn SqlRow) -> Result<TokenUsage, SqlError> {
    Ok(TokenUsage::new(columns.read_count(2)?, columns.read_count(3)?))
}

/// Sums by session, period and model.
struct UsageTotals {
    sessions: HashMap<String, SessionSettings>,
    periods: BTreeMap<(String, i64, String), PeriodUsage>,
}

impl UsageTotals {
    /// Adds a request, whose session and time are the first two columns.
    fn add_request(
        &mut self,
        columns: &dyn SqlRow,
        usage: TokenUsage,
        fallback_model: Option<String>,
    ) -> Result<(), SqlError> {
        let session = columns.read_string(0)?;
        let Some(SessionSettings { cwd, model }) = self.sessions.get(&session) else { return Ok(()) };
        let model = fallback_model.unwrap_or_else(|| model.clone());
        let created = columns.read_int(1)?;
        let start = created - created.rem_euclid(USAGE_PERIOD_MS);
        let period =
            self.periods.entry((session.clone(), start, model.clone())).or_insert_with(|| PeriodUsage {
                session: SessionId::new(session),
                cwd: cwd.clone(),
                model,
                start: Timestamp(start),
                n_requests: 0,
                usage: TokenUsage::default(),
            });
        period.n_requests += 1;
        period.usage = period.usage.saturating_add(usage);
        Ok(())
    }
}
