//! A database of the Python version: whatever its rows have, each session that is read is a valid conversation.
//!
//! Each line of the input is a row: `A` and the columns of an agent, or `M` and those of a message, separated by tabs.
#![no_main]

use std::collections::BTreeSet;
use std::path::Path;

use crow_core::Transcript;
use crow_import::PYTHON_FORMAT;
use crow_store::{ForeignDatabase, ImportedSession};
use libfuzzer_sys::fuzz_target;
use rusqlite::{Connection, params_from_iter};

const SCHEMA: &str = include_str!("../../crates/crow-import/src/database/tests/0.1.48.sql");

const AGENT: &str = "INSERT INTO agents (agent_id, session_id, agent_idx, fork_idx, forked_at, cwd, created_at,
    system_prompt, tool_definitions, request_params, model_identifier, status)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'You are Crow', '[]', '{}', 'qwen3', 'active')";
const MESSAGE: &str = "INSERT INTO messages (agent_id, fork_idx, created_at, role, data) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Rows of one input.
const ROWS_MAX: usize = 40;

fn check_session(session: &ImportedSession) {
    let mut transcript = Transcript::new("You are Crow");
    for (entry, _) in &session.entries {
        transcript.push(entry.clone()).expect("the entries are in an order that a transcript accepts");
    }
    assert!(transcript.open_calls().is_empty(), "{session:?}");
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(connection) = Connection::open_in_memory() else { return };
    connection.execute_batch(SCHEMA).expect("the schema is valid");
    for line in text.lines().take(ROWS_MAX) {
        let mut columns = line.split('\t');
        let (statement, n_columns) = match columns.next() {
            Some("A") => (AGENT, 7),
            Some("M") => (MESSAGE, 5),
            _ => continue,
        };
        let values = columns.chain(std::iter::repeat("")).take(n_columns);
        // A row that the database does not take is not there.
        drop(connection.execute(statement, params_from_iter(values)));
    }
    assert!((PYTHON_FORMAT.recognizes)(&connection).expect("the schema can be read"));
    let database = ForeignDatabase { connection: &connection, directory: Path::new("/nonexistent") };
    let mut ids = BTreeSet::new();
    let result = (PYTHON_FORMAT.read_sessions)(database, &mut |session| {
        assert!(session.parent.as_ref().is_none_or(|parent| ids.contains(parent)));
        check_session(&session);
        assert!(ids.insert(session.id));
        Ok(())
    });
    result.expect("any row can be read or skipped");
});
