//! Creating, listing, changing and deleting sessions.

use crow_core::{Mode, SessionId, ThoughtLevel};
use serde_json::{Map, Value};

use super::{
    blobs,
    handle::{Database, PAGE_MAX},
};
use crate::{
    CreatorFilter, ListQuery, NewSession, SessionCursor, SessionRow, StoreError, Timestamp, hashing,
    session::{foreign_agent_type, own_agent_type},
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

/// The number of sessions that a tree is followed; no limit on depth permits more.
const TREE_SESSIONS_MAX: i64 = 10_000;

/// The columns that [`read_session_row`] reads.
macro_rules! columns {
    () => {
        "s.id, s.cwd, s.title, s.model, s.mode, s.parent_session_id, s.agent_type, s.created, s.updated, \
         s.n_messages, s.thought_level, s.forked_from, s.agent_session_id"
    };
}

/// A change to an existing session.
#[derive(Debug)]
pub(crate) enum SessionChange {
    Title(String),
    Mode(Mode),
    Model(String),
    ThoughtLevel(ThoughtLevel),
    AgentSession(String),
    SystemPrompt(String),
    /// The template of its system prompt.
    Template(String),
    /// The tool definitions, as JSON.
    Tools(String),
    /// One key of the other settings, with its JSON; `None` removes it.
    Config {
        key: &'static str,
        value: Option<Value>,
    },
}

impl Database {
    pub(crate) fn create_session(&mut self, id: &SessionId, new: &NewSession) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            let prompt = intern_text(sql, &SYSTEM_PROMPTS, &new.system_prompt)?;
            let parent = new.parent.as_ref();
            let result = sql.execute(
                "INSERT INTO sessions
                     (id, parent_session_id, agent_type, cwd, model, mode, thought_level, system_prompt_id, created,
                      updated)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
                 ON CONFLICT (id) DO NOTHING",
                values![
                    id,
                    parent,
                    new.agent_type.as_deref().unwrap_or(own_agent_type(parent.is_some())),
                    &new.cwd,
                    &new.model,
                    new.mode.as_str(),
                    new.thought_level.as_str(),
                    prompt,
                    new.now.0,
                ],
            );
            match (result, parent) {
                (Ok(0), _) => Err(StoreError::NameTaken(id.clone()).into()),
                (Ok(_), _) => Ok(()),
                (Err(SqlError::Constraint(_)), Some(parent)) => Err(StoreError::NoSession(parent.clone()).into()),
                (Err(error), _) => Err(error),
            }
        })
    }

    pub(crate) fn list_sessions(&mut self, query: &ListQuery) -> Result<Vec<SessionRow>, StoreError> {
        let cursor = query.before.as_ref();
        let updated = cursor.map(|SessionCursor { updated, .. }| updated.0);
        let id = cursor.map(|SessionCursor { id, .. }| id);
        let limit = i64::from(query.limit.min(PAGE_MAX));
        let with_children = i64::from(query.creator == CreatorFilter::Any);
        self.read_transaction(|sql| {
            sql.query_all(
                concat!(
                    "SELECT ",
                    columns!(),
                    " FROM sessions s
                     WHERE s.n_messages > 0 AND (CAST($1 AS TEXT) IS NULL OR s.cwd = $1)
                       AND (CAST($2 AS TEXT) IS NULL OR (s.updated, s.id) < ($3, $2))
                       AND (s.parent_session_id IS NULL OR CAST($5 AS BIGINT) = 1)
                     ORDER BY s.updated DESC, s.id DESC LIMIT $4"
                ),
                values![query.cwd.as_ref(), id, updated, limit, with_children],
                read_session_row,
            )
        })
    }

    /// Lists a session with all descendants, parents before children.
    pub(crate) fn session_tree(&mut self, session: &SessionId) -> Result<Vec<SessionRow>, StoreError> {
        self.read_transaction(|sql| {
            sql.query_all(
                concat!(
                    "WITH RECURSIVE family (id) AS (
                         SELECT id FROM sessions WHERE id = $1
                         UNION
                         SELECT c.id FROM sessions c JOIN family f ON c.parent_session_id = f.id
                     )
                     SELECT ",
                    columns!(),
                    " FROM family f JOIN sessions s ON s.id = f.id
                     ORDER BY s.id <> $1, s.created, s.id LIMIT $2"
                ),
                values![session, TREE_SESSIONS_MAX],
                read_session_row,
            )
        })
    }

    /// Lists the sessions without a parent whose last message is older than a time, oldest first.
    pub(crate) fn sessions_older_than(&mut self, before: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
        self.read_transaction(|sql| {
            sql.query_all(
                concat!(
                    "SELECT ",
                    columns!(),
                    " FROM sessions s WHERE s.parent_session_id IS NULL AND s.updated < $1 ORDER BY s.updated, s.id"
                ),
                values![before.0],
                read_session_row,
            )
        })
    }

    pub(crate) fn update_session(
        &mut self,
        session: &SessionId,
        change: &SessionChange,
    ) -> Result<(), StoreError> {
        let (sql, value) = match change {
            SessionChange::Title(title) => ("UPDATE sessions SET title = $1 WHERE id = $2", title.as_str()),
            SessionChange::Mode(mode) => ("UPDATE sessions SET mode = $1 WHERE id = $2", mode.as_str()),
            SessionChange::Model(model) => ("UPDATE sessions SET model = $1 WHERE id = $2", model.as_str()),
            SessionChange::ThoughtLevel(level) => {
                ("UPDATE sessions SET thought_level = $1 WHERE id = $2", level.as_str())
            }
            SessionChange::AgentSession(name) => {
                ("UPDATE sessions SET agent_session_id = $1 WHERE id = $2", name.as_str())
            }
            SessionChange::Config { key, value } => return self.update_config(session, key, value.as_ref()),
            SessionChange::SystemPrompt(prompt) => {
                return self.set_shared_text(session, &SYSTEM_PROMPTS, prompt);
            }
            SessionChange::Template(template) => return self.set_shared_text(session, &TEMPLATES, template),
            SessionChange::Tools(definitions) => return self.set_shared_text(session, &TOOLS, definitions),
        };
        self.write_transaction(|statements| match statements.execute(sql, values![value, session])? {
            0 => Err(StoreError::NoSession(session.clone()).into()),
            _ => Ok(()),
        })
    }

    /// Refers a session to a text that many sessions share.
    fn set_shared_text(
        &mut self,
        session: &SessionId,
        table: &SharedTextTable,
        text: &str,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            let id = intern_text(sql, table, text)?;
            match sql.execute(table.update_session, values![id, session])? {
                0 => Err(StoreError::NoSession(session.clone()).into()),
                _ => Ok(()),
            }
        })
    }

    fn update_config(
        &mut self,
        session: &SessionId,
        key: &str,
        value: Option<&Value>,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            // The update keeps another process from changing it between here and the end, on a server too.
            let find = "UPDATE sessions SET config = config WHERE id = $1 RETURNING config";
            let found = sql.query_one(find, values![session], |columns| columns.read_string(0))?;
            let Some(config) = found else { return Err(StoreError::NoSession(session.clone()).into()) };
            // A value that is not an object was not written by Crow and is ignored.
            let mut config: Map<String, Value> = serde_json::from_str(&config).unwrap_or_default();
            match value {
                Some(value) => drop(config.insert(key.to_owned(), value.clone())),
                None => drop(config.remove(key)),
            }
            let config = Value::Object(config).to_string();
            sql.execute("UPDATE sessions SET config = $1 WHERE id = $2", values![&config, session])?;
            Ok(())
        })
    }

    pub(crate) fn delete_sessions(&mut self, sessions: &[SessionId]) -> Result<u64, StoreError> {
        let n_deleted = self.write_transaction(|sql| {
            let mut n_deleted = 0;
            for session in sessions {
                n_deleted += sql.execute("DELETE FROM sessions WHERE id = $1", values![session])?;
            }
            if n_deleted > 0 {
                for table in [&SYSTEM_PROMPTS, &TEMPLATES, &TOOLS] {
                    sql.execute(table.delete_unused, values![])?;
                }
                blobs::delete_unused_blobs(sql)?;
                if let Some(tidy_index) = sql.dialect().tidy_index_sql {
                    sql.execute(tidy_index, values![])?;
                }
            }
            Ok(n_deleted)
        })?;
        if n_deleted > 0 {
            self.purge_deleted()?;
        }
        Ok(n_deleted)
    }

    pub(crate) fn delete_empty_sessions(&mut self, before: Timestamp) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            // The mailbox entries of a child without messages would be deleted with it, so a task stays; as would the
            // children of a session whose messages a salvage lost.
            let empty = "DELETE FROM sessions WHERE n_messages = 0 AND created < $1
                 AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.session_id = sessions.id)
                 AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = sessions.id)";
            sql.execute(empty, values![before.0]).map(drop)
        })
    }
}

/// Finds a session with its system prompt.
pub(super) fn find_session(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
) -> Result<Option<(SessionRow, String)>, SqlError> {
    sql.query_one(
        concat!(
            "SELECT ",
            columns!(),
            ", p.text FROM sessions s LEFT JOIN system_prompts p ON p.id = s.system_prompt_id WHERE s.id = $1"
        ),
        values![session],
        |columns| Ok((read_session_row(columns)?, columns.read_string(13)?)),
    )
}

/// A table of long texts that many sessions share, each stored once.
pub(super) struct SharedTextTable {
    find: &'static str,
    insert: &'static str,
    /// Refers a session to one of them.
    update_session: &'static str,
    /// Deletes those that no session uses.
    delete_unused: &'static str,
}

/// System prompts.
pub(super) const SYSTEM_PROMPTS: SharedTextTable = SharedTextTable {
    find: "SELECT id FROM system_prompts WHERE hash = $1 AND text = $2 LIMIT 1",
    insert: "INSERT INTO system_prompts (hash, text) VALUES ($1, $2) RETURNING id",
    update_session: "UPDATE sessions SET system_prompt_id = $1 WHERE id = $2",
    delete_unused: "DELETE FROM system_prompts WHERE NOT EXISTS
                (SELECT 1 FROM sessions s WHERE s.system_prompt_id = system_prompts.id)",
};

/// Templates of system prompts.
const TEMPLATES: SharedTextTable = SharedTextTable {
    find: "SELECT id FROM prompts WHERE hash = $1 AND template = $2 LIMIT 1",
    insert: "INSERT INTO prompts (hash, template) VALUES ($1, $2) RETURNING id",
    update_session: "UPDATE sessions SET prompt_id = $1 WHERE id = $2",
    delete_unused: "DELETE FROM prompts WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.prompt_id = prompts.id)",
};

/// Tool definitions.
const TOOLS: SharedTextTable = SharedTextTable {
    find: "SELECT id FROM tool_definitions WHERE hash = $1 AND definitions = $2 LIMIT 1",
    insert: "INSERT INTO tool_definitions (hash, definitions) VALUES ($1, $2) RETURNING id",
    update_session: "UPDATE sessions SET tools_id = $1 WHERE id = $2",
    delete_unused: "DELETE FROM tool_definitions WHERE NOT EXISTS
                (SELECT 1 FROM sessions s WHERE s.tools_id = tool_definitions.id)",
};

/// Finds a text's row, or inserts it.
pub(super) fn intern_text(
    sql: &mut dyn SqlTransaction,
    table: &SharedTextTable,
    text: &str,
) -> Result<i64, SqlError> {
    let hash = hashing::short_hash(text);
    if let Some(id) = sql.query_one(table.find, values![hash, text], |columns| columns.read_int(0))? {
        return Ok(id);
    }
    Ok(sql.query_one(table.insert, values![hash, text], |columns| columns.read_int(0))?.unwrap_or_default())
}

fn read_session_row(columns: &dyn SqlRow) -> Result<SessionRow, SqlError> {
    let session = |index| Ok::<_, SqlError>(columns.read_optional_string(index)?.map(SessionId::new));
    Ok(SessionRow {
        id: SessionId::new(columns.read_string(0)?),
        cwd: columns.read_string(1)?,
        title: columns.read_optional_string(2)?,
        model: columns.read_string(3)?,
        // An unknown mode becomes the most careful one.
        mode: Mode::parse(columns.get_text(4)?.unwrap_or_default()).unwrap_or_default(),
        parent: session(5)?,
        agent_type: foreign_agent_type(columns.read_optional_string(6)?),
        created: Timestamp(columns.read_int(7)?),
        updated: Timestamp(columns.read_int(8)?),
        n_messages: columns.read_count(9)?,
        thought_level: ThoughtLevel::parse(columns.get_text(10)?.unwrap_or_default()).unwrap_or_default(),
        forked_from: session(11)?,
        agent_session_id: columns.read_optional_string(12)?,
    })
}
