//! The agent's changes to files.

use crow_core::{CallId, ContentHash, SessionId};

use super::{blobs, handle::Database};
use crate::{
    ChangeId, FileChange, NewFileChange, StoreError, StoredPrompt, Timestamp, UndoSnapshot, row,
    sql::{SqlError, SqlRow, values},
};

impl Database {
    pub(crate) fn record_change(
        &mut self,
        session: &SessionId,
        change: &NewFileChange,
        now: Timestamp,
    ) -> Result<ChangeId, StoreError> {
        self.write_transaction(|sql| {
            let (before, blob, mode) = match &change.before {
                UndoSnapshot::Missing => ("missing", None, None),
                UndoSnapshot::TooLarge => ("unknown", None, None),
                UndoSnapshot::Content { bytes, mode } => {
                    let hash = crow_files::hash_content(bytes);
                    blobs::insert_blob(sql, session, blobs::BlobPurpose::File, hash, bytes)?;
                    ("content", Some(hash.to_string()), mode.map(i64::from))
                }
            };
            let id = sql.query_one(
                "INSERT INTO file_changes (session_id, turn, call, path, before, blob, mode, after, created)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id",
                values![
                    session,
                    change.turn,
                    &change.call.to_string(),
                    &change.path,
                    before,
                    blob.as_ref(),
                    mode,
                    change.after.map(|hash| hash.to_string()).as_ref(),
                    now.0,
                ],
                |columns| columns.read_int(0),
            );
            match id {
                Err(SqlError::Constraint(_)) => Err(StoreError::NoSession(session.clone()).into()),
                id => Ok(ChangeId(id?.unwrap_or_default())),
            }
        })
    }

    pub(crate) fn set_change_after(
        &mut self,
        id: ChangeId,
        after: Option<ContentHash>,
    ) -> Result<(), StoreError> {
        let after = after.map(|hash| hash.to_string());
        self.write_transaction(|sql| {
            let set = "UPDATE file_changes SET after = $1 WHERE id = $2";
            sql.execute(set, values![after.as_ref(), id.0]).map(drop)
        })
    }

    /// Reads the changes of the newest turn that still has changes to undo, oldest first.
    pub(crate) fn last_changes(&mut self, session: &SessionId) -> Result<Vec<FileChange>, StoreError> {
        self.read_transaction(|sql| {
            sql.query_all(
                "SELECT f.id, f.turn, f.call, f.path, f.before, f.mode, f.after, f.created, b.data
                 FROM file_changes f LEFT JOIN blobs b ON b.hash = f.blob
                 WHERE f.session_id = $1 AND f.undone IS NULL AND f.turn = (
                     SELECT max(turn) FROM file_changes WHERE session_id = $1 AND undone IS NULL)
                 ORDER BY f.id",
                values![session],
                |columns| read_file_change(session, columns),
            )
        })
    }

    /// Lists the newest prompts, newest first.
    pub(crate) fn list_prompts(
        &mut self,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<StoredPrompt>, StoreError> {
        self.read_transaction(|sql| {
            sql.query_all(
                "SELECT m.seq, m.data,
                     (SELECT count(DISTINCT f.turn) FROM file_changes f
                      WHERE f.session_id = $1 AND f.turn >= m.seq AND f.undone IS NULL),
                     (SELECT count(DISTINCT f.path) FROM file_changes f
                      WHERE f.session_id = $1 AND f.turn >= m.seq AND f.undone IS NULL)
                 FROM messages m WHERE m.session_id = $1 AND m.role = 'user'
                 ORDER BY m.seq DESC LIMIT $2",
                values![session, i64::from(limit)],
                |columns| {
                    let seq = columns.read_count(0)?;
                    let entry = row::decode_entry(columns.get_text(1)?.unwrap_or_default(), None, None);
                    let entry = entry.map_err(|reason| StoreError::BadRow {
                        session: session.clone(),
                        seq,
                        reason,
                    })?;
                    Ok(StoredPrompt {
                        seq,
                        entry,
                        n_undoable_turns: columns.read_count(2)?,
                        n_undoable_files: columns.read_count(3)?,
                    })
                },
            )
        })
    }

    pub(crate) fn mark_changes_undone(
        &mut self,
        session: &SessionId,
        ids: &[ChangeId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            for id in ids {
                let set = "UPDATE file_changes SET undone = $1 WHERE id = $2 AND session_id = $3";
                sql.execute(set, values![now.0, id.0, session])?;
            }
            Ok(())
        })
    }
}

fn read_file_change(session: &SessionId, columns: &dyn SqlRow) -> Result<FileChange, SqlError> {
    let turn = columns.read_count(1)?;
    let bad_row = |what: &str| StoreError::BadRow {
        session: session.clone(),
        seq: turn,
        reason: format!("a file change has the invalid value `{what}`"),
    };
    let (call, after) = (columns.read_string(2)?, columns.read_optional_string(6)?);
    let before = match columns.read_string(4)?.as_str() {
        "missing" => UndoSnapshot::Missing,
        "content" => UndoSnapshot::Content {
            bytes: columns.get_bytes(8)?.ok_or_else(|| bad_row("a missing content"))?.to_vec(),
            mode: columns.get_int(5)?.and_then(|mode| u32::try_from(mode).ok()),
        },
        _ => UndoSnapshot::TooLarge,
    };
    Ok(FileChange {
        id: ChangeId(columns.read_int(0)?),
        turn,
        call: CallId::parse(&call).ok_or_else(|| bad_row(&call))?,
        path: columns.read_string(3)?,
        before,
        after: after.map(|hash| ContentHash::parse(&hash).ok_or_else(|| bad_row(&hash))).transpose()?,
        created: Timestamp(columns.read_int(7)?),
    })
}
