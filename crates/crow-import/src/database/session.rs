//! Reads one session: the messages of its agents in sequence.

use std::{collections::HashMap, path::Path};

use crow_core::{ContentPart, SessionId, TokenUsage, TranscriptEntry};
use crow_store::{ImportLosses, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, types::ValueRef};

use super::{
    agents::{AgentChain, OldAgent},
    call_info,
    history::{self, HistoryBuilder},
    images::ImageFolder,
    message::{self, OldMessage},
    old_session::{OldCompaction, OldSession},
    tables::{TableColumns, column_int, column_text, millis_sql},
};

/// No image and no file came near this.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads sessions from an old database.
pub(super) struct OldSessionReader<'c> {
    connection: &'c Connection,
    images: ImageFolder<'c>,
    agent_sql: String,
    message_sql: String,
    /// The messages of each agent by number. The first layout has no index to find them.
    messages: HashMap<String, Vec<i64>>,
}

/// The properties of an agent besides its messages.
#[derive(Debug, Default)]
struct AgentFacts {
    cwd: String,
    system_prompt: String,
    model: String,
    created: Option<i64>,
}

/// A row of the messages.
struct OldMessageRow {
    message: Option<OldMessage>,
    usage: Option<TokenUsage>,
    created: Option<i64>,
}

impl<'c> OldSessionReader<'c> {
    /// Reads where everything is; messages of missing agents are counted.
    pub(super) fn new(
        connection: &'c Connection,
        chains: &[AgentChain],
        images: ImageFolder<'c>,
    ) -> rusqlite::Result<(Self, ImportLosses)> {
        let mut messages: HashMap<String, Vec<i64>> = HashMap::new();
        let agents = chains.iter().flat_map(|chain| &chain.agents);
        messages.extend(agents.map(|agent| (agent.id.clone(), Vec::new())));
        let mut losses = ImportLosses::default();
        let mut statement = connection.prepare("SELECT agent_id, id FROM messages ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            match (messages.get_mut(&column_text(row, 0)), column_int(row, 1)) {
                (Some(message_ids), Some(id)) => message_ids.push(id),
                _ => losses.messages += 1,
            }
        }
        let (agent_sql, message_sql) = (agent_sql(connection)?, message_sql(connection)?);
        Ok((Self { connection, images, agent_sql, message_sql, messages }, losses))
    }

    pub(super) fn read_session(&mut self, chain: &AgentChain) -> rusqlite::Result<OldSession> {
        let facts: Vec<AgentFacts> =
            chain.agents.iter().map(|agent| self.read_agent_facts(agent)).collect::<rusqlite::Result<_>>()?;
        let is_absolute = |cwd: &&str| Path::new(cwd).is_absolute();
        // A compaction in the first layout lost the directory, so the first agent knows it best.
        let cwd = facts.iter().map(|facts| facts.cwd.as_str()).find(is_absolute).unwrap_or("/");
        let last_text = |said: fn(&AgentFacts) -> &str| {
            facts.iter().rev().map(said).find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
        };
        let created = Timestamp(facts.iter().find_map(|facts| facts.created).unwrap_or_default());
        let mut builder = OldSessionBuilder {
            history: HistoryBuilder::new(cwd),
            system_prompt: last_text(|facts| &facts.system_prompt),
            compactions: Vec::new(),
            awaits_summary: false,
            time: created,
            losses: ImportLosses::default(),
        };
        for (agent, facts) in chain.agents.iter().zip(&facts) {
            builder.begin_agent(facts.created);
            for id in self.messages_seen_by(agent) {
                let row = self.read_message(id, &mut builder.losses)?;
                builder.add_message(row);
            }
        }
        builder.history.close_open_calls(builder.time);
        let entries = builder.history.into_entries();
        Ok(OldSession {
            id: SessionId::new(chain.id.as_str()),
            parent: chain.parent.as_deref().map(SessionId::new),
            cwd: cwd.to_owned(),
            model: last_text(|facts| &facts.model),
            system_prompt: builder.system_prompt,
            title: derive_title(&entries, chain.fork),
            created,
            updated: entries.iter().map(|(_, message_id)| *message_id).fold(created, Timestamp::max),
            entries,
            compactions: builder.compactions,
            losses: builder.losses,
        })
    }

    fn read_agent_facts(&self, agent: &OldAgent) -> rusqlite::Result<AgentFacts> {
        let facts = self.connection.prepare_cached(&self.agent_sql)?.query_row([&agent.id], |row| {
            Ok(AgentFacts {
                cwd: column_text(row, 0),
                system_prompt: column_text(row, 1),
                model: column_text(row, 2),
                created: column_int(row, 3),
            })
        });
        Ok(facts.optional()?.unwrap_or_default())
    }

    fn messages_seen_by(&self, agent: &OldAgent) -> Vec<i64> {
        let message_ids = |id: &str| self.messages.get(id).map(Vec::as_slice).unwrap_or_default();
        let shared = agent.inherited.iter().flat_map(|(id, last_id)| {
            message_ids(id).iter().filter(move |message_id| *message_id <= last_id)
        });
        shared.chain(message_ids(&agent.id)).copied().collect()
    }

    fn read_message(&self, id: i64, losses: &mut ImportLosses) -> rusqlite::Result<OldMessageRow> {
        self.connection.prepare_cached(&self.message_sql)?.query_row([id], |row| {
            let data = match row.get_ref(0)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
            };
            let message = message::read_message(data, &column_text(row, 1), self.images, losses);
            Ok(OldMessageRow { message, usage: read_usage(row), created: column_int(row, 4) })
        })
    }
}

fn agent_sql(connection: &Connection) -> rusqlite::Result<String> {
    let columns = TableColumns::for_table(connection, "agents")?;
    Ok(format!(
        "SELECT {}, {}, {}, {} FROM agents WHERE agent_id = ?1",
        columns.column_or("cwd", "NULL"),
        columns.column_or("system_prompt", "NULL"),
        columns.column_or("model_identifier", "NULL"),
        millis_sql(columns.column_or("created_at", "NULL")),
    ))
}

fn message_sql(connection: &Connection) -> rusqlite::Result<String> {
    let columns = TableColumns::for_table(connection, "messages")?;
    Ok(format!(
        "SELECT CASE WHEN octet_length(data) <= {MESSAGE_BYTES_MAX} THEN data END, {}, {}, {}, {}
         FROM messages WHERE id = ?1",
        columns.column_or("role", "NULL"),
        columns.column_or("prompt_tokens", "NULL"),
        columns.column_or("completion_tokens", "NULL"),
        millis_sql(columns.column_or("created_at", "NULL")),
    ))
}

fn read_usage(row: &Row<'_>) -> Option<TokenUsage> {
    let tokens = |index| column_int(row, index).and_then(|n| u64::try_from(n).ok());
    let (input, output) = (tokens(2), tokens(3));
    (input.is_some() || output.is_some())
        .then(|| TokenUsage::new(input.unwrap_or_default(), output.unwrap_or_default()))
}

/// A session while it is read.
struct OldSessionBuilder<'a> {
    history: HistoryBuilder<'a>,
    system_prompt: String,
    compactions: Vec<OldCompaction>,
    /// The next message is the first of an agent that a compaction started.
    awaits_summary: bool,
    time: Timestamp,
    losses: ImportLosses,
}

impl OldSessionBuilder<'_> {
    fn begin_agent(&mut self, created: Option<i64>) {
        self.history.close_open_calls(self.time);
        self.time = created.map_or(self.time, Timestamp);
        self.awaits_summary = self.history.n_entries() > 0;
        if self.awaits_summary {
            let (at_seq, tokens_before) = (self.history.n_entries(), self.history.context_tokens());
            self.compactions.push(OldCompaction { at_seq, summary: None, tokens_before, created: self.time });
        }
    }

    fn add_message(&mut self, row: OldMessageRow) {
        self.time = row.created.map_or(self.time, Timestamp);
        let time = self.time;
        match row.message {
            None => {}
            Some(OldMessage::System(text)) if self.system_prompt.is_empty() => self.system_prompt = text,
            Some(OldMessage::System(_)) => {}
            Some(OldMessage::Prompt(parts)) => {
                let is_text =
                    !parts.is_empty() && parts.iter().all(|part| matches!(part, ContentPart::Text(_)));
                let is_summary = std::mem::take(&mut self.awaits_summary) && is_text;
                match self.compactions.last_mut().filter(|_| is_summary) {
                    Some(compaction) => compaction.summary = Some(message::parts_text(&parts)),
                    None => self.history.push_prompt(parts, time),
                }
            }
            Some(OldMessage::Reply { thought, text, calls }) => {
                self.awaits_summary = false;
                self.history.push_reply(history::text_reply(thought, text, row.usage), calls, time);
            }
            Some(OldMessage::Result { call, parts }) => {
                let has_call = self.history.push_result(&call, parts, time);
                self.losses.results += u64::from(!has_call);
            }
        }
    }
}

/// Makes a title of the first prompt; a fork begins like its origin.
fn derive_title(entries: &[(TranscriptEntry, Timestamp)], fork: Option<i64>) -> Option<String> {
    let first = entries.iter().find_map(|(entry, _)| match entry {
        TranscriptEntry::Prompt(prompt) => Some(prompt.text()),
        TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
    })?;
    let title = Some(call_info::one_line(&first)).filter(|title| !title.is_empty())?;
    Some(fork.map_or_else(|| title.clone(), |fork| format!("{title} (fork {fork})")))
}
