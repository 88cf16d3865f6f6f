//! Sessions that are a copy of another.

use crow_core::SessionId;

use super::{handle::Database, search_index::index_messages};
use crate::{
    StoreError, Timestamp,
    sql::{SqlError, SqlTransaction, values},
};

impl Database {
    /// Creates a session with the messages of another, up to the prompt `before` if that is given; returns whether the
    /// session and the prompt exist.
    pub(crate) fn fork_session(
        &mut self,
        session: &SessionId,
        copy: &SessionId,
        before: Option<u64>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write_transaction(|sql| {
            if let Some(before) = before
                && !has_prompt(sql, session, before)?
            {
                return Ok(false);
            }
            let end = before.unwrap_or(i64::MAX as u64);
            let result = sql.execute(
                "INSERT INTO sessions (id, agent_type, cwd, model, mode, title, system_prompt_id, prompt_id, tools_id,
                     n_messages, created, updated, thought_level, config, forked_from)
                 SELECT $1, CASE agent_type WHEN 'crow-child' THEN 'crow-cli' ELSE agent_type END, cwd, model, mode, title,
                     system_prompt_id, prompt_id, tools_id, CASE WHEN n_messages > $4 THEN $4 ELSE n_messages END, $2, $2,
                     thought_level, config, id
                 FROM sessions WHERE id = $3",
                values![copy, now.0, session, end],
            );
            match result {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(SqlError::Constraint(_)) => return Err(StoreError::NameTaken(copy.clone()).into()),
                Err(error) => return Err(error),
            }
            // On a server, later statements see what another process appends meanwhile.
            let count = "SELECT n_messages FROM sessions WHERE id = $1";
            let end = sql.query_one(count, values![copy], |columns| columns.read_count(0))?.unwrap_or_default();
            for copy_sql in [
                "INSERT INTO messages (session_id, seq, turn, role, data, input_tokens, output_tokens, created)
                 SELECT $1, seq, turn, role, data, input_tokens, output_tokens, created
                 FROM messages WHERE session_id = $2 AND seq < $3 ORDER BY seq",
                "INSERT INTO compaction_history (session_id, generation, old_first, new_first, n_messages, summary,
                     said, pruned, tokens_before, tokens_after, created, undone)
                 SELECT $1, generation, old_first, new_first, n_messages, summary, said, pruned, tokens_before,
                     tokens_after, created, undone
                 FROM compaction_history WHERE session_id = $2 AND n_messages <= $3",
                "INSERT INTO asides (session_id, seq, input_tokens, output_tokens, cached_tokens,
                     cache_written_tokens, cost, created)
                 SELECT $1, seq, input_tokens, output_tokens, cached_tokens, cache_written_tokens, cost, created
                 FROM asides WHERE session_id = $2 AND seq <= $3 ORDER BY id",
            ] {
                sql.execute(copy_sql, values![copy, session, end])?;
            }
            for copy_sql in [
                "INSERT INTO blob_uses (session_id, hash, purpose)
                 SELECT $1, hash, purpose FROM blob_uses WHERE session_id = $2 AND purpose = 'image'",
                "INSERT INTO speckit_session (session_id, project_root, feature_dir, last_command, updated)
                 SELECT $1, project_root, feature_dir, last_command, updated
                 FROM speckit_session WHERE session_id = $2",
            ] {
                sql.execute(copy_sql, values![copy, session])?;
            }
            if before.is_some() {
                copy_changes(sql, session, copy, end)?;
            }
            index_messages(sql, copy)?;
            Ok(true)
        })
    }
}

/// Whether a message is a prompt. Before one, no call is without its result.
fn has_prompt(sql: &mut dyn SqlTransaction, session: &SessionId, seq: u64) -> Result<bool, SqlError> {
    let find = "SELECT seq FROM messages WHERE session_id = $1 AND seq = $2 AND role = 'user'";
    Ok(sql.query_one(find, values![session, seq], |columns| columns.read_count(0))?.is_some())
}

/// Copies the changes of files before a prompt: a copy from there replaces the session, and its turns can be undone.
fn copy_changes(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
    copy: &SessionId,
    end: u64,
) -> Result<(), SqlError> {
    sql.execute(
        "INSERT INTO blob_uses (session_id, hash, purpose)
         SELECT $1, hash, purpose FROM blob_uses WHERE session_id = $2 AND purpose = 'file'",
        values![copy, session],
    )?;
    sql.execute(
        "INSERT INTO file_changes (session_id, turn, call, path, before, blob, mode, after, created, undone)
         SELECT $1, turn, call, path, before, blob, mode, after, created, undone
         FROM file_changes WHERE session_id = $2 AND turn < $3 ORDER BY id",
        values![copy, session, end],
    )?;
    Ok(())
}
