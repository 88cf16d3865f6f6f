//! The Spec Kit state of sessions, and the outcomes of its commands.

use crow_core::{ContentHash, SessionId};

use super::handle::{Database, PAGE_MAX};
use crate::{
    SpeckitEvent, SpeckitRow, StoreError, Timestamp,
    sql::{SqlError, SqlRow, values},
};

/// A feature takes a few dozen commands; older events are not needed.
const EVENTS_MAX: i64 = 1_000;

impl Database {
    pub(crate) fn speckit_state(&mut self, session: &SessionId) -> Result<Option<SpeckitRow>, StoreError> {
        self.read_transaction(|sql| {
            let find = "SELECT project_root, feature_dir, last_command, updated
                 FROM speckit_session WHERE session_id = $1";
            sql.query_one(find, values![session], read_speckit_row)
        })
    }

    pub(crate) fn set_speckit_state(
        &mut self,
        session: &SessionId,
        row: &SpeckitRow,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            let result = sql.execute(
                "INSERT INTO speckit_session (session_id, project_root, feature_dir, last_command, updated)
                 VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (session_id) DO UPDATE
                     SET project_root = $2, feature_dir = $3, last_command = $4, updated = $5",
                values![
                    session,
                    &row.project_root,
                    row.feature_dir.as_ref(),
                    row.last_command.as_ref(),
                    row.updated.0,
                ],
            );
            result.map(drop).map_err(|error| constraint_to_no_session(session, error))
        })
    }

    /// Stores an event and deletes those that are too old.
    pub(crate) fn log_speckit_event(
        &mut self,
        session: &SessionId,
        event: &SpeckitEvent,
    ) -> Result<(), StoreError> {
        let args_sha = event.args_sha.map(|hash| hash.to_string());
        let n_files = event.files.len().min(SpeckitEvent::FILES_MAX);
        let files = serde_json::Value::from(&event.files[..n_files]).to_string();
        self.write_transaction(|sql| {
            let result = sql.execute(
                "INSERT INTO speckit_event (session_id, ts, command, args_sha, outcome, files)
                 VALUES ($1, $2, $3, $4, $5, $6)",
                values![session, event.ts.0, &event.command, args_sha.as_ref(), &event.outcome, &files],
            );
            result.map_err(|error| constraint_to_no_session(session, error))?;
            sql.execute(
                "DELETE FROM speckit_event WHERE session_id = $1 AND id <= (
                     SELECT id FROM speckit_event WHERE session_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)",
                values![session, EVENTS_MAX],
            )
            .map(drop)
        })
    }

    /// Lists the outcomes of a session's commands, newest first.
    pub(crate) fn speckit_events(
        &mut self,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<SpeckitEvent>, StoreError> {
        self.read_transaction(|sql| {
            let find = "SELECT ts, command, args_sha, outcome, files FROM speckit_event
                 WHERE session_id = $1 ORDER BY id DESC LIMIT $2";
            sql.query_all(find, values![session, i64::from(limit.min(PAGE_MAX))], read_speckit_event)
        })
    }
}

fn constraint_to_no_session(session: &SessionId, error: SqlError) -> SqlError {
    match error {
        SqlError::Constraint(_) => StoreError::NoSession(session.clone()).into(),
        SqlError::Other(_) => error,
    }
}

fn read_speckit_row(columns: &dyn SqlRow) -> Result<SpeckitRow, SqlError> {
    Ok(SpeckitRow {
        project_root: columns.read_string(0)?,
        feature_dir: columns.read_optional_string(1)?,
        last_command: columns.read_optional_string(2)?,
        updated: Timestamp(columns.read_int(3)?),
    })
}

fn read_speckit_event(columns: &dyn SqlRow) -> Result<SpeckitEvent, SqlError> {
    Ok(SpeckitEvent {
        ts: Timestamp(columns.read_int(0)?),
        command: columns.read_string(1)?,
        args_sha: read_hash(columns, 2)?,
        outcome: columns.read_string(3)?,
        // A value that is not a list of ours contains no file names.
        files: serde_json::from_str(columns.get_text(4)?.unwrap_or_default()).unwrap_or_default(),
    })
}

/// Reads a hash; an invalid one counts as unknown.
fn read_hash(columns: &dyn SqlRow, index: usize) -> Result<Option<ContentHash>, SqlError> {
    Ok(columns.get_text(index)?.and_then(ContentHash::parse))
}
