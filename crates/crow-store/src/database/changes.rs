//! What the agent did to files.

use crow_core::{CallId, ContentHash, SessionId};

use super::{Database, blobs};
use crate::{
    Before, ChangeId, FileChange, NewFileChange, StoreError, Timestamp, hashing,
    sql::{Columns, Fault, values},
};

impl Database {
    pub(crate) fn keep_change(
        &mut self,
        session: &SessionId,
        change: &NewFileChange,
        now: Timestamp,
    ) -> Result<ChangeId, StoreError> {
        self.write(|sql| {
            let (before, blob, mode) = match &change.before {
                Before::Missing => ("missing", None, None),
                Before::Unknown => ("unknown", None, None),
                Before::Content { bytes, mode } => {
                    let hash = hashing::long(bytes);
                    blobs::keep(sql, session, blobs::Purpose::File, (hash, bytes))?;
                    ("content", Some(hash.to_string()), mode.map(i64::from))
                }
            };
            let id = sql.one(
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
                |columns| columns.number(0),
            );
            match id {
                Err(Fault::Constraint(_)) => Err(StoreError::NoSession(session.clone()).into()),
                id => Ok(ChangeId(id?.unwrap_or_default())),
            }
        })
    }

    pub(crate) fn change_left(&mut self, id: ChangeId, after: Option<ContentHash>) -> Result<(), StoreError> {
        let after = after.map(|hash| hash.to_string());
        self.write(|sql| {
            let set = "UPDATE file_changes SET after = $1 WHERE id = $2";
            sql.execute(set, values![after.as_ref(), id.0]).map(drop)
        })
    }

    /// Reads the changes of the newest turn that has some left to undo, oldest first.
    pub(crate) fn last_changes(&mut self, session: &SessionId) -> Result<Vec<FileChange>, StoreError> {
        self.read(|sql| {
            sql.all(
                "SELECT f.id, f.turn, f.call, f.path, f.before, f.mode, f.after, f.created, b.data
                 FROM file_changes f LEFT JOIN blobs b ON b.hash = f.blob
                 WHERE f.session_id = $1 AND f.undone IS NULL AND f.turn = (
                     SELECT max(turn) FROM file_changes WHERE session_id = $1 AND undone IS NULL)
                 ORDER BY f.id",
                values![session],
                |columns| read(session, columns),
            )
        })
    }

    pub(crate) fn changes_undone(
        &mut self,
        session: &SessionId,
        ids: &[ChangeId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(|sql| {
            for id in ids {
                let set = "UPDATE file_changes SET undone = $1 WHERE id = $2 AND session_id = $3";
                sql.execute(set, values![now.0, id.0, session])?;
            }
            Ok(())
        })
    }
}

fn read(session: &SessionId, columns: &dyn Columns) -> Result<FileChange, Fault> {
    let turn = columns.count(1)?;
    let bad = |what: &str| StoreError::BadRow {
        session: session.clone(),
        seq: turn,
        why: format!("a change of a file names `{what}`"),
    };
    let (call, after) = (columns.string(2)?, columns.maybe_string(6)?);
    let before = match columns.string(4)?.as_str() {
        "missing" => Before::Missing,
        "content" => Before::Content {
            bytes: columns.bytes(8)?.ok_or_else(|| bad("a content that is gone"))?.to_vec(),
            mode: columns.int(5)?.and_then(|mode| u32::try_from(mode).ok()),
        },
        _ => Before::Unknown,
    };
    Ok(FileChange {
        id: ChangeId(columns.number(0)?),
        turn,
        call: CallId::parse(&call).ok_or_else(|| bad(&call))?,
        path: columns.string(3)?,
        before,
        after: after.map(|hash| ContentHash::parse(&hash).ok_or_else(|| bad(&hash))).transpose()?,
        created: Timestamp(columns.number(7)?),
    })
}
