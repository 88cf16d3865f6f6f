//! Copies what can be read of a damaged file to a new one in its place; the damaged one is kept next to it.
//!
//! Reads row by row and skips what SQLite cannot return; of a session it keeps the messages up to the first missing
//! one, because a history with a gap is invalid.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{
    Connection, OpenFlags, Row, Transaction, TransactionBehavior, params_from_iter, types::Value,
};

use super::{
    errors::{display_path, from_io, from_sqlite},
    open,
    schema::{MIGRATIONS, make_older_tables, make_tables, schema_version},
    statements::DIALECT,
};
use crate::{StoreError, row};

/// Damaged files that were never removed; there are no more.
const COPIES_MAX: u32 = 100;
/// Missing rows in sequence before the rest of a table counts as lost.
const GAP_MAX: i64 = 100_000;

/// The contents saved from a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageReport {
    pub n_sessions: u64,
    pub n_messages: u64,
    /// The new path of the damaged file.
    pub damaged: PathBuf,
}

/// Replaces a damaged database by a sound one. No other process may use it meanwhile.
pub fn salvage_database(path: &Path) -> Result<SalvageReport, StoreError> {
    let new = with_suffix(path, ".salvaged");
    remove_if_exists(&new)?;
    let (n_sessions, n_messages) = copy_readable(path, &new)?;
    let damaged =
        (1..=COPIES_MAX).map(|n| with_suffix(path, &format!(".damaged-{n}"))).find(|path| !path.exists());
    let Some(damaged) = damaged else {
        let reason = "there are too many damaged files next to it".to_owned();
        return Err(StoreError::CannotOpen { database: display_path(path), reason });
    };
    // With its log, which belongs to it and would otherwise be read into the new one.
    for suffix in ["", "-wal", "-shm"] {
        rename_if_exists(&with_suffix(path, suffix), &with_suffix(&damaged, suffix))?;
    }
    rename_if_exists(&new, path)?;
    Ok(SalvageReport { n_sessions, n_messages, damaged })
}

fn copy_readable(path: &Path, new: &Path) -> Result<(u64, u64), StoreError> {
    let in_new = |error: rusqlite::Error| from_sqlite(new, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut from = Connection::open_with_flags(path, flags).map_err(|error| from_sqlite(path, &error))?;
    // Without a readable header no table can be read either.
    let (format, known_format) = (schema_version(&from).unwrap_or_default(), MIGRATIONS.len() as i64);
    if format > known_format {
        return Err(StoreError::NewerFormat { database: display_path(path), format, known_format });
    }
    let older = with_suffix(path, ".older");
    if let Some(format) = usize::try_from(format).ok().filter(|format| (1..MIGRATIONS.len()).contains(format))
    {
        remove_if_exists(&older)?;
        crow_files::create_private_file(&older).map_err(|error| from_io(&older, &error))?;
        from = copy_older(&from, format, &older).map_err(|error| from_sqlite(&older, &error))?;
    }
    let mut to = open::open_connection(new, open::SqliteOptions::default())?;
    let transaction = to.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_new)?;
    let counts = copy_sessions(&from, &transaction).map_err(in_new)?;
    copy_tasks(&from, &transaction).map_err(in_new)?;
    copy_session_extras(&from, &transaction).map_err(in_new)?;
    transaction.commit().map_err(in_new)?;
    // One file is easier to move than three.
    to.pragma_update(None, "journal_mode", "DELETE").map_err(in_new)?;
    to.close().map_err(|(_, error)| in_new(error))?;
    drop(from);
    remove_if_exists(&older)?;
    Ok(counts)
}

/// Copies all readable rows of an older format to another file, and migrates that, which the damaged file may prevent.
fn copy_older(from: &Connection, format: usize, path: &Path) -> rusqlite::Result<Connection> {
    let mut older = Connection::open(path)?;
    older.pragma_update(None, "journal_mode", "OFF")?;
    // Rows may refer to others that are lost.
    older.pragma_update(None, "foreign_keys", false)?;
    let transaction = older.transaction()?;
    make_older_tables(&transaction, format)?;
    let tables = read_names(
        &transaction,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'message_search%'",
    )?;
    for table in tables {
        let columns = read_names(&transaction, &format!("SELECT name FROM pragma_table_info('{table}')"))?;
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        scan_table(from, &table, &columns, |values| insert_row(&transaction, &table, &columns, values))?;
    }
    make_tables(&transaction)?;
    transaction.commit()?;
    Ok(older)
}

fn read_names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

const SESSION_COLUMNS: [&str; 15] = [
    "id",
    "parent_session_id",
    "agent_type",
    "cwd",
    "model",
    "mode",
    "title",
    "system_prompt_id",
    "n_messages",
    "created",
    "updated",
    "thought_level",
    "agent_session_id",
    "config",
    "forked_from",
];

const MESSAGE_COLUMNS: [&str; 8] =
    ["session_id", "seq", "role", "data", "input_tokens", "output_tokens", "created", "turn"];

fn copy_sessions(from: &Connection, to: &Transaction<'_>) -> rusqlite::Result<(u64, u64)> {
    let mut prompts = HashSet::new();
    scan_table(from, "system_prompts", &["id", "hash", "text"], |values| {
        prompts.insert(integer_or_minus_one(&values[0]));
        insert_row(to, "system_prompts", &["id", "hash", "text"], values)
    })?;
    // Replaces those that cannot be read; a continued session gets our tools anew.
    let empty_prompt = [Value::Integer(i64::MAX), Value::Integer(0), Value::Text(String::new())];
    insert_row(to, "system_prompts", &["id", "hash", "text"], &empty_prompt)?;

    let mut sessions: HashMap<String, i64> = HashMap::new();
    scan_table(from, "sessions", &SESSION_COLUMNS, |values| {
        let Value::Text(id) = &values[0] else { return Ok(()) };
        sessions.insert(id.clone(), 0);
        let mut values = values.to_vec();
        // Its parent may follow later, or not at all.
        values[1] = Value::Null;
        if !prompts.contains(&integer_or_minus_one(&values[7])) {
            values[7] = Value::Integer(i64::MAX);
        }
        insert_row(to, "sessions", &SESSION_COLUMNS, &values)
    })?;

    let mut n_messages = 0;
    scan_table(from, "messages", &MESSAGE_COLUMNS, |values| {
        let (Value::Text(session), Value::Text(data)) = (&values[0], &values[3]) else { return Ok(()) };
        let Some(next) = sessions.get_mut(session).filter(|next| **next == integer_or_minus_one(&values[1]))
        else {
            return Ok(());
        };
        let Ok(entry) = row::decode_entry(data, None, None) else { return Ok(()) };
        insert_row(to, "messages", &MESSAGE_COLUMNS, values)?;
        let text = row::searchable_text(&entry);
        if !text.is_empty() {
            let text = (DIALECT.index_text)(&text);
            to.prepare_cached(DIALECT.index_sql)?.execute((to.last_insert_rowid(), text))?;
        }
        *next += 1;
        n_messages += 1;
        Ok(())
    })?;
    for (session, n_messages) in &sessions {
        to.execute("UPDATE sessions SET n_messages = ?1 WHERE id = ?2", (n_messages, session))?;
    }
    copy_parents(from, to, &sessions)?;
    copy_message_extras(from, to, &sessions)?;
    Ok((sessions.len() as u64, n_messages))
}

fn copy_parents(
    from: &Connection,
    to: &Transaction<'_>,
    sessions: &HashMap<String, i64>,
) -> rusqlite::Result<()> {
    scan_table(from, "sessions", &["id", "parent_session_id"], |values| match values {
        [Value::Text(id), Value::Text(parent)] if sessions.contains_key(parent) => {
            to.execute("UPDATE sessions SET parent_session_id = ?1 WHERE id = ?2", (parent, id)).map(drop)
        }
        _ => Ok(()),
    })
}

/// Copies tasks whose session was saved with its parent, their places and their mailboxes.
fn copy_tasks(from: &Connection, to: &Transaction<'_>) -> rusqlite::Result<()> {
    const TASK: [&str; 7] = ["session_id", "state", "n_rounds", "n_tokens", "started", "ended", "branch"];
    scan_table(from, "tasks", &TASK, |values| {
        let is_child =
            "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1 AND parent_session_id IS NOT NULL)";
        match to.prepare_cached(is_child)?.query_row([&values[0]], |row| row.get(0))? {
            true => insert_row(to, "tasks", &TASK, values),
            false => Ok(()),
        }
    })?;
    scan_table(from, "task_places", &["session_id", "place"], |values| {
        let is_saved = "SELECT EXISTS (SELECT 1 FROM tasks WHERE session_id = ?1)";
        match to.prepare_cached(is_saved)?.query_row([&values[0]], |row| row.get(0))? {
            true => insert_row(to, "task_places", &["session_id", "place"], values),
            false => Ok(()),
        }
    })?;
    scan_table(from, "mailbox", &["id", "task_id", "text", "created", "delivered_seq"], |values| {
        // A delivery in a message that could not be saved waits again.
        let insert = "INSERT OR IGNORE INTO mailbox (id, task_id, text, created, delivered_seq)
             SELECT ?1, t.session_id, ?3, ?4, CASE WHEN ?5 < p.n_messages THEN ?5 END
             FROM tasks t JOIN sessions s ON s.id = t.session_id JOIN sessions p ON p.id = s.parent_session_id
             WHERE t.session_id = ?2";
        to.prepare_cached(insert)?.execute(params_from_iter(values)).map(drop)
    })
}

/// Copies the Spec Kit state and events of the saved sessions, and their side requests.
fn copy_session_extras(from: &Connection, to: &Transaction<'_>) -> rusqlite::Result<()> {
    const ASIDE: [&str; 9] = [
        "session_id",
        "id",
        "seq",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cache_written_tokens",
        "cost",
        "created",
    ];
    const ROW: [&str; 5] = ["session_id", "project_root", "feature_dir", "last_command", "updated"];
    const EVENT: [&str; 7] = ["session_id", "id", "ts", "command", "args_sha", "outcome", "files"];
    for (table, columns) in
        [("speckit_session", &ROW[..]), ("speckit_event", &EVENT[..]), ("asides", &ASIDE[..])]
    {
        scan_table(from, table, columns, |values| {
            let is_saved = "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)";
            match to.prepare_cached(is_saved)?.query_row([&values[0]], |row| row.get(0))? {
                true => insert_row(to, table, columns, values),
                false => Ok(()),
            }
        })?;
    }
    Ok(())
}

/// Copies images and compactions whose session was saved.
fn copy_message_extras(
    from: &Connection,
    to: &Transaction<'_>,
    sessions: &HashMap<String, i64>,
) -> rusqlite::Result<()> {
    let mut blobs = HashSet::new();
    scan_table(from, "blobs", &["hash", "data"], |values| {
        if let [Value::Text(hash), Value::Blob(data)] = values
            && crow_files::hash_content(data).to_string() == *hash
        {
            blobs.insert(hash.clone());
            insert_row(to, "blobs", &["hash", "data"], values)?;
        }
        Ok(())
    })?;
    const USE: [&str; 3] = ["session_id", "hash", "purpose"];
    scan_table(from, "blob_uses", &USE, |values| {
        if let [Value::Text(session), Value::Text(hash), _] = values
            && sessions.contains_key(session)
            && blobs.contains(hash)
        {
            insert_row(to, "blob_uses", &USE, values)?;
        }
        Ok(())
    })?;
    const COMPACTION: [&str; 12] = [
        "session_id",
        "generation",
        "old_first",
        "new_first",
        "n_messages",
        "summary",
        "said",
        "pruned",
        "tokens_before",
        "tokens_after",
        "created",
        "undone",
    ];
    scan_table(from, "compaction_history", &COMPACTION, |values| {
        if let Value::Text(session) = &values[0]
            && sessions.get(session).is_some_and(|n_messages| *n_messages >= integer_or_minus_one(&values[4]))
        {
            insert_row(to, "compaction_history", &COMPACTION, values)?;
        }
        Ok(())
    })
}

/// Reads a table in the order of its row numbers, skipping what cannot be read. Of a table without row numbers, only the
/// rows before the first that cannot be read.
fn scan_table(
    from: &Connection,
    table: &str,
    columns: &[&str],
    mut on_row: impl FnMut(&[Value]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let sql = format!("SELECT rowid, {} FROM {table} WHERE rowid > ?1 ORDER BY rowid", columns.join(", "));
    let rowid_max = format!("SELECT max(rowid) FROM {table}");
    let rowid_max: Option<i64> = from.query_row(&rowid_max, [], |row| row.get(0)).ok().flatten();
    let Ok(mut statement) = from.prepare(&sql) else {
        return scan_unnumbered_table(from, table, columns, on_row);
    };
    let read = |row: &Row<'_>| -> rusqlite::Result<(i64, Vec<Value>)> {
        let values = (1..=columns.len()).map(|index| row.get(index));
        Ok((row.get(0)?, values.collect::<rusqlite::Result<_>>()?))
    };
    let (mut last_rowid, mut n_missing) = (0, 0);
    loop {
        let mut rows = statement.query([last_rowid])?;
        loop {
            match rows.next().and_then(|row| row.map(read).transpose()) {
                Ok(Some((rowid, values))) => {
                    (last_rowid, n_missing) = (rowid, 0);
                    on_row(&values)?;
                }
                Ok(None) => return Ok(()),
                Err(_) => break,
            }
        }
        (last_rowid, n_missing) = (last_rowid + 1, n_missing + 1);
        if n_missing > GAP_MAX || rowid_max.is_some_and(|rowid_max| last_rowid >= rowid_max) {
            return Ok(());
        }
    }
}

fn scan_unnumbered_table(
    from: &Connection,
    table: &str,
    columns: &[&str],
    mut on_row: impl FnMut(&[Value]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    // A table that cannot be read at all is damaged, or has other columns in this format.
    let Ok(mut statement) = from.prepare(&format!("SELECT {} FROM {table}", columns.join(", "))) else {
        return Ok(());
    };
    let mut rows = statement.query([])?;
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..columns.len()).map(|index| row.get(index)).collect();
        if let Ok(values) = values {
            on_row(&values)?;
        }
    }
    Ok(())
}

fn insert_row(to: &Transaction<'_>, table: &str, columns: &[&str], values: &[Value]) -> rusqlite::Result<()> {
    let placeholders = (1..=columns.len()).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
    // A row that a constraint of the table rejects was damaged.
    let sql = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({placeholders})", columns.join(", "));
    to.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
}

fn integer_or_minus_one(value: &Value) -> i64 {
    match value {
        Value::Integer(int) => *int,
        Value::Null | Value::Real(_) | Value::Text(_) | Value::Blob(_) => -1,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn rename_if_exists(from: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(from_io(from, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remove_if_exists(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(from_io(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
