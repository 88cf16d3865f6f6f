//! Contents that are stored once, however often they are used.

use crow_core::{ContentHash, SessionId};

use crate::{
    row::{self, ImagesByHash},
    sql::{SqlError, SqlTransaction, values},
};

/// The purpose of a content.
#[derive(Debug, Clone, Copy)]
pub(super) enum BlobPurpose {
    Image,
    File,
}

/// Stores a content for a session.
pub(super) fn insert_blob(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
    purpose: BlobPurpose,
    hash: ContentHash,
    bytes: &[u8],
) -> Result<(), SqlError> {
    let hash = hash.to_string();
    let purpose = match purpose {
        BlobPurpose::Image => "image",
        BlobPurpose::File => "file",
    };
    sql.execute(
        "INSERT INTO blobs (hash, data) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING",
        values![&hash, bytes],
    )?;
    sql.execute(
        "INSERT INTO blob_uses (session_id, hash, purpose) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        values![session, &hash, purpose],
    )?;
    Ok(())
}

/// Reads the images of a session's messages.
pub(super) fn load_images(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
) -> Result<ImagesByHash, SqlError> {
    let mut images = ImagesByHash::new();
    sql.query(
        "SELECT b.hash, b.data FROM blob_uses u JOIN blobs b ON b.hash = u.hash
         WHERE u.session_id = $1 AND u.purpose = 'image'",
        values![session],
        &mut |columns| {
            images.insert(
                columns.read_string(0)?,
                row::encode_base64(columns.get_bytes(1)?.unwrap_or_default()),
            );
            Ok(())
        },
    )?;
    Ok(images)
}

/// Deletes contents that no session uses.
pub(super) fn delete_unused_blobs(sql: &mut dyn SqlTransaction) -> Result<(), SqlError> {
    sql.execute(
        "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.hash = blobs.hash)",
        values![],
    )?;
    Ok(())
}
