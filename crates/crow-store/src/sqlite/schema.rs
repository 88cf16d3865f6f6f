//! The tables of a file: whose they are, their format, and how to make ours.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};

use super::foreign_format::ForeignFormat;

/// `CROW`, in the header of every database of ours.
const APPLICATION_ID: i64 = 0x4352_4f57;
/// Each migrates a database from the previous format to its own index in this list.
pub(super) const MIGRATIONS: [&str; 9] = [
    include_str!("../../migrations/sqlite/0001_sessions.sql"),
    include_str!("../../migrations/sqlite/0002_thought_level.sql"),
    include_str!("../../migrations/sqlite/0003_lasting.sql"),
    include_str!("../../migrations/sqlite/0004_tasks.sql"),
    include_str!("../../migrations/sqlite/0005_speckit.sql"),
    include_str!("../../migrations/sqlite/0006_asides.sql"),
    include_str!("../../migrations/sqlite/0007_templates.sql"),
    include_str!("../../migrations/sqlite/0008_task_places.sql"),
    include_str!("../../migrations/sqlite/0009_search_index.sql"),
];

/// The migration to this format removes messages from the search index, which have to be indexed again.
pub(super) const SEARCH_INDEX_FORMAT: i64 = 9;

/// The tables of the newest format. A new database is made by them, because each `ALTER TABLE` reads all tables again.
const NEWEST_TABLES: &str = include_str!("../../migrations/sqlite/newest_tables.sql");

/// The program that a database belongs to.
pub(super) enum FileOwner<'a> {
    Crow,
    /// A program whose sessions can be imported.
    Known(&'a ForeignFormat),
    Other,
}

/// Finds out which program a database belongs to.
pub(super) fn detect_owner<'a>(
    connection: &Connection,
    foreign_formats: &'a [ForeignFormat],
) -> rusqlite::Result<FileOwner<'a>> {
    if is_crow_database(connection)? {
        return Ok(FileOwner::Crow);
    }
    for format in foreign_formats {
        if (format.recognizes)(connection)? {
            return Ok(FileOwner::Known(format));
        }
    }
    Ok(FileOwner::Other)
}

/// Whether a database is ours, even if it is still empty.
pub(super) fn is_crow_database(connection: &Connection) -> rusqlite::Result<bool> {
    // In this order: another process may be creating the file, and its pages are written with its application ID.
    Ok(read_pragma(connection, "page_count")? == 0
        || read_pragma(connection, "application_id")? == APPLICATION_ID)
}

/// Creates the tables of the newest format, from those of an older format or from nothing.
pub(super) fn make_tables(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let format = usize::try_from(schema_version(transaction)?).unwrap_or_default();
    match format {
        0 => transaction.execute_batch(NEWEST_TABLES)?,
        format => run_migrations(transaction, format)?,
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)
}

/// Migrates the tables of a format to the newest one; those of format 0 are none.
fn run_migrations(connection: &Connection, format: usize) -> rusqlite::Result<()> {
    MIGRATIONS.iter().skip(format).try_for_each(|script| connection.execute_batch(script))
}

/// Creates the empty tables of an older format.
pub(super) fn make_older_tables(transaction: &Transaction<'_>, format: usize) -> rusqlite::Result<()> {
    MIGRATIONS.iter().take(format).try_for_each(|script| transaction.execute_batch(script))?;
    transaction.pragma_update(None, "user_version", format as i64)
}

/// The URI of a file that never changes.
pub(super) fn immutable_uri(path: &Path) -> PathBuf {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// The number of migrations that were applied.
pub(super) fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    read_pragma(connection, "user_version")
}
