//! Saves what can be read of a damaged file into a new one in its place; the damaged one stays beside it.
//!
//! Reads row by row and passes over what SQLite cannot give; of a session it keeps the messages up to the first that is
//! missing, since a history with a hole is none.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{
    Connection, OpenFlags, Row, Transaction, TransactionBehavior, params_from_iter, types::Value,
};

use super::{from_io, from_sqlite, open};
use crate::{StoreError, row};

/// Damaged files that were never cleared away; nobody has more.
const KEPT_MAX: u32 = 100;
/// Rows that are looked for in vain, one after the other, before the rest of a table counts as lost.
const GAP_MAX: i64 = 100_000;

/// What was saved of a damaged database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageReport {
    /// How many sessions.
    pub n_sessions: u64,
    /// How many messages in them.
    pub n_messages: u64,
    /// Where the damaged file is now.
    pub damaged: PathBuf,
}

/// Puts a sound database in the place of a damaged one. Nobody else may use it meanwhile.
pub fn salvage_database(path: &Path) -> Result<SalvageReport, StoreError> {
    let new = with_suffix(path, ".salvaged");
    remove_if_exists(&new)?;
    let (n_sessions, n_messages) = copy_readable(path, &new)?;
    let damaged =
        (1..=KEPT_MAX).map(|n| with_suffix(path, &format!(".damaged-{n}"))).find(|path| !path.exists());
    let Some(damaged) = damaged else {
        let why = "too many damaged files stand beside it".to_owned();
        return Err(StoreError::CannotOpen { database: super::display_path(path), why });
    };
    // With its log, which belongs to it and would be read into the new one.
    for end in ["", "-wal", "-shm"] {
        rename_if_exists(&with_suffix(path, end), &with_suffix(&damaged, end))?;
    }
    rename_if_exists(&new, path)?;
    Ok(SalvageReport { n_sessions, n_messages, damaged })
}

fn copy_readable(path: &Path, new: &Path) -> Result<(u64, u64), StoreError> {
    let in_new = |error: rusqlite::Error| from_sqlite(new, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let from = Connection::open_with_flags(path, flags).map_err(|error| from_sqlite(path, &error))?;
    let mut to = open::open_connection(new)?;
    let step = to.transaction_with_behavior(TransactionBehavior::Immediate).map_err(in_new)?;
    let saved = copy_sessions(&from, &step).map_err(in_new)?;
    copy_tasks(&from, &step).map_err(in_new)?;
    copy_session_extras(&from, &step).map_err(in_new)?;
    step.commit().map_err(in_new)?;
    // One file is easier to move than three.
    to.pragma_update(None, "journal_mode", "DELETE").map_err(in_new)?;
    to.close().map_err(|(_, error)| in_new(error))?;
    Ok(saved)
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
    // Stands for those that cannot be read; whoever goes on is told of our tools anew.
    let nothing = [Value::Integer(i64::MAX), Value::Integer(0), Value::Text(String::new())];
    insert_row(to, "system_prompts", &["id", "hash", "text"], &nothing)?;

    let mut sessions: HashMap<String, i64> = HashMap::new();
    scan_table(from, "sessions", &SESSION_COLUMNS, |values| {
        let Value::Text(id) = &values[0] else { return Ok(()) };
        sessions.insert(id.clone(), 0);
        let mut values = values.to_vec();
        // Its parent may come later, or not at all.
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
            let index = "INSERT INTO message_search (rowid, text) VALUES (?1, ?2)";
            to.prepare_cached(index)?.execute((to.last_insert_rowid(), text))?;
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

/// Tasks whose session was saved with its parent, and their mailboxes.
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
    scan_table(from, "mailbox", &["id", "task_id", "text", "created", "delivered_seq"], |values| {
        // What stood in a message that could not be saved waits again.
        let post = "INSERT OR IGNORE INTO mailbox (id, task_id, text, created, delivered_seq)
             SELECT ?1, t.session_id, ?3, ?4, CASE WHEN ?5 < p.n_messages THEN ?5 END
             FROM tasks t JOIN sessions s ON s.id = t.session_id JOIN sessions p ON p.id = s.parent_session_id
             WHERE t.session_id = ?2";
        to.prepare_cached(post)?.execute(params_from_iter(values)).map(drop)
    })
}

/// Where the sessions that were saved stand in Spec Kit, and what its commands came to there; what they asked a model
/// aside.
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

/// Images and compactions, as far as what they belong to was saved.
fn copy_message_extras(
    from: &Connection,
    to: &Transaction<'_>,
    sessions: &HashMap<String, i64>,
) -> rusqlite::Result<()> {
    let mut blobs = HashSet::new();
    scan_table(from, "blobs", &["hash", "data"], |values| {
        if let [Value::Text(hash), Value::Blob(data)] = values
            && crate::hashing::content_hash(data).to_string() == *hash
        {
            blobs.insert(hash.clone());
            insert_row(to, "blobs", &["hash", "data"], values)?;
        }
        Ok(())
    })?;
    // This table has no row numbers to go by; what cannot be read at once is not read.
    if let Ok(mut uses) = from.prepare("SELECT session_id, hash, purpose FROM blob_uses") {
        let mut rows = uses.query([])?;
        while let Ok(Some(found)) = rows.next() {
            let values: Vec<Value> = (0..3).filter_map(|place| found.get(place).ok()).collect();
            if let [Value::Text(session), Value::Text(hash), _] = values.as_slice()
                && sessions.contains_key(session)
                && blobs.contains(hash)
            {
                insert_row(to, "blob_uses", &["session_id", "hash", "purpose"], &values)?;
            }
        }
    }
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

/// Reads a table row by row in the order of its numbers, past whatever cannot be read.
fn scan_table(
    from: &Connection,
    table: &str,
    columns: &[&str],
    mut each: impl FnMut(&[Value]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let sql = format!("SELECT rowid, {} FROM {table} WHERE rowid > ?1 ORDER BY rowid", columns.join(", "));
    let last = format!("SELECT max(rowid) FROM {table}");
    let last: Option<i64> = from.query_row(&last, [], |row| row.get(0)).ok().flatten();
    let Ok(mut statement) = from.prepare(&sql) else { return Ok(()) };
    let read = |row: &Row<'_>| -> rusqlite::Result<(i64, Vec<Value>)> {
        let values = (1..=columns.len()).map(|place| row.get(place));
        Ok((row.get(0)?, values.collect::<rusqlite::Result<_>>()?))
    };
    let (mut at, mut n_missed) = (0, 0);
    loop {
        let mut rows = statement.query([at])?;
        loop {
            match rows.next().and_then(|row| row.map(read).transpose()) {
                Ok(Some((rowid, values))) => {
                    (at, n_missed) = (rowid, 0);
                    each(&values)?;
                }
                Ok(None) => return Ok(()),
                Err(_) => break,
            }
        }
        (at, n_missed) = (at + 1, n_missed + 1);
        if n_missed > GAP_MAX || last.is_some_and(|last| at >= last) {
            return Ok(());
        }
    }
}

fn insert_row(to: &Transaction<'_>, table: &str, columns: &[&str], values: &[Value]) -> rusqlite::Result<()> {
    let places = (1..=columns.len()).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
    // What a rule of the table refuses was damaged.
    let sql = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({places})", columns.join(", "));
    to.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
}

fn integer_or_minus_one(value: &Value) -> i64 {
    match value {
        Value::Integer(int) => *int,
        Value::Null | Value::Real(_) | Value::Text(_) | Value::Blob(_) => -1,
    }
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
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
