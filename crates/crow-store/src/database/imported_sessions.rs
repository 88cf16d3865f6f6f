//! Sessions imported from another program.

use crow_core::{Mode, SessionId, ThoughtLevel};

use super::{compactions, messages::insert_message, sessions};
use crate::{
    ImportedSession, StoreError, row,
    session::own_agent_type,
    sql::{SqlError, SqlTransaction, values},
};

/// Stores an imported session. Its system prompt is empty: the session gets ours when it continues.
pub(crate) fn import_session(sql: &mut dyn SqlTransaction, old: &ImportedSession) -> Result<(), SqlError> {
    let prompt = sessions::intern_text(sql, &sessions::SYSTEM_PROMPTS, "")?;
    sql.execute(
        "INSERT INTO sessions (id, parent_session_id, agent_type, cwd, model, mode, thought_level, title, system_prompt_id,
             n_messages, created, updated)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        values![
            &old.id,
            old.parent.as_ref(),
            own_agent_type(old.parent.is_some()),
            &old.cwd,
            &old.model,
            Mode::default().as_str(),
            ThoughtLevel::Default.as_str(),
            old.title.as_ref(),
            prompt,
            old.entries.len() as u64,
            old.created.0,
            old.updated.0,
        ],
    )?;
    for (seq, (entry, created)) in (0..).zip(&old.entries) {
        let row = row::encode_entry(entry).map_err(|error| bad_row_error(&old.id, seq, &error))?;
        insert_message(sql, &old.id, seq, &row, *created)?;
    }
    for compaction in &old.compactions {
        compactions::begin_generation(sql, &old.id, compaction)?;
    }
    Ok(())
}

fn bad_row_error(session: &SessionId, seq: u64, error: &serde_json::Error) -> StoreError {
    StoreError::BadRow { session: session.clone(), seq, reason: error.to_string() }
}
