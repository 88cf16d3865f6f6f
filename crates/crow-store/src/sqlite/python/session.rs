//! Reads one session: the messages of its agents, one after the other.

use std::{collections::HashMap, path::Path};

use crow_core::{Entry, Part, SessionId, Usage};
use rusqlite::{Connection, OptionalExtension, Row, types::ValueRef};

use super::{
    Lost, OldCompaction, OldSession,
    agents::{Agent, Chain},
    facets,
    history::{self, History},
    images::Images,
    message::{self, Said},
    tables::{Columns, millis, text, whole},
};
use crate::Timestamp;

/// No image and no reading of a file came near this.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads sessions out of an old database.
pub(super) struct Reader<'c> {
    connection: &'c Connection,
    images: Images<'c>,
    agent_sql: String,
    message_sql: String,
    /// The messages of each agent by number. The first layout has no index to find them by.
    messages: HashMap<String, Vec<i64>>,
}

/// What is known of an agent beside its messages.
#[derive(Debug, Default)]
struct Facts {
    cwd: String,
    system_prompt: String,
    model: String,
    created: Option<i64>,
}

/// A row of the messages.
struct Message {
    said: Option<Said>,
    usage: Option<Usage>,
    created: Option<i64>,
}

impl<'c> Reader<'c> {
    /// Looks where everything is; messages of agents that are not there are counted.
    pub(super) fn new(
        connection: &'c Connection,
        chains: &[Chain],
        images: Images<'c>,
    ) -> rusqlite::Result<(Self, Lost)> {
        let mut messages: HashMap<String, Vec<i64>> = HashMap::new();
        let agents = chains.iter().flat_map(|chain| &chain.agents);
        messages.extend(agents.map(|agent| (agent.id.clone(), Vec::new())));
        let mut lost = Lost::default();
        let mut statement = connection.prepare("SELECT agent_id, id FROM messages ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            match (messages.get_mut(&text(row, 0)), whole(row, 1)) {
                (Some(of_agent), Some(id)) => of_agent.push(id),
                _ => lost.messages += 1,
            }
        }
        let (agent_sql, message_sql) = (agent_sql(connection)?, message_sql(connection)?);
        Ok((Self { connection, images, agent_sql, message_sql, messages }, lost))
    }

    pub(super) fn session(&mut self, chain: &Chain) -> rusqlite::Result<OldSession> {
        let facts: Vec<Facts> =
            chain.agents.iter().map(|agent| self.facts(agent)).collect::<rusqlite::Result<_>>()?;
        let is_absolute = |cwd: &&str| Path::new(cwd).is_absolute();
        // A compaction in the first layout forgot the folder, so the first agent knows it best.
        let cwd = facts.iter().map(|facts| facts.cwd.as_str()).find(is_absolute).unwrap_or("/");
        let last = |said: fn(&Facts) -> &str| {
            facts.iter().rev().map(said).find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
        };
        let created = Timestamp(facts.iter().find_map(|facts| facts.created).unwrap_or_default());
        let mut reading = Reading {
            history: History::in_folder(cwd),
            system_prompt: last(|facts| &facts.system_prompt),
            compactions: Vec::new(),
            awaits_summary: false,
            now: created,
            lost: Lost::default(),
        };
        for (agent, facts) in chain.agents.iter().zip(&facts) {
            reading.next_agent(facts.created);
            for id in self.seen_by(agent) {
                let message = self.message(id, &mut reading.lost)?;
                reading.message(message);
            }
        }
        reading.history.close(reading.now);
        let entries = reading.history.into_entries();
        Ok(OldSession {
            id: SessionId::new(chain.id.as_str()),
            parent: chain.parent.as_deref().map(SessionId::new),
            cwd: cwd.to_owned(),
            model: last(|facts| &facts.model),
            system_prompt: reading.system_prompt,
            title: title(&entries, chain.fork),
            created,
            updated: entries.iter().map(|(_, at)| *at).fold(created, Timestamp::max),
            entries,
            compactions: reading.compactions,
            lost: reading.lost,
        })
    }

    fn facts(&self, agent: &Agent) -> rusqlite::Result<Facts> {
        let facts = self.connection.prepare_cached(&self.agent_sql)?.query_row([&agent.id], |row| {
            Ok(Facts {
                cwd: text(row, 0),
                system_prompt: text(row, 1),
                model: text(row, 2),
                created: whole(row, 3),
            })
        });
        Ok(facts.optional()?.unwrap_or_default())
    }

    fn seen_by(&self, agent: &Agent) -> Vec<i64> {
        let of_agent = |id: &str| self.messages.get(id).map(Vec::as_slice).unwrap_or_default();
        let shared =
            agent.sees.iter().flat_map(|(id, until)| of_agent(id).iter().filter(move |at| *at <= until));
        shared.chain(of_agent(&agent.id)).copied().collect()
    }

    fn message(&self, id: i64, lost: &mut Lost) -> rusqlite::Result<Message> {
        self.connection.prepare_cached(&self.message_sql)?.query_row([id], |row| {
            let data = match row.get_ref(0)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
            };
            let said = message::read(data, &text(row, 1), self.images, lost);
            Ok(Message { said, usage: usage(row), created: whole(row, 4) })
        })
    }
}

fn agent_sql(connection: &Connection) -> rusqlite::Result<String> {
    let columns = Columns::of(connection, "agents")?;
    Ok(format!(
        "SELECT {}, {}, {}, {} FROM agents WHERE agent_id = ?1",
        columns.or("cwd", "NULL"),
        columns.or("system_prompt", "NULL"),
        columns.or("model_identifier", "NULL"),
        millis(columns.or("created_at", "NULL")),
    ))
}

fn message_sql(connection: &Connection) -> rusqlite::Result<String> {
    let columns = Columns::of(connection, "messages")?;
    Ok(format!(
        "SELECT CASE WHEN octet_length(data) <= {MESSAGE_BYTES_MAX} THEN data END, {}, {}, {}, {}
         FROM messages WHERE id = ?1",
        columns.or("role", "NULL"),
        columns.or("prompt_tokens", "NULL"),
        columns.or("completion_tokens", "NULL"),
        millis(columns.or("created_at", "NULL")),
    ))
}

fn usage(row: &Row<'_>) -> Option<Usage> {
    let tokens = |place| whole(row, place).and_then(|n| u64::try_from(n).ok());
    let (input, output) = (tokens(2), tokens(3));
    (input.is_some() || output.is_some())
        .then(|| Usage::new(input.unwrap_or_default(), output.unwrap_or_default()))
}

/// A session while it is read.
struct Reading<'a> {
    history: History<'a>,
    system_prompt: String,
    compactions: Vec<OldCompaction>,
    /// The next message is the first of an agent that a compaction began.
    awaits_summary: bool,
    now: Timestamp,
    lost: Lost,
}

impl Reading<'_> {
    fn next_agent(&mut self, created: Option<i64>) {
        self.history.close(self.now);
        self.now = created.map_or(self.now, Timestamp);
        self.awaits_summary = self.history.n_entries() > 0;
        if self.awaits_summary {
            let (at, tokens_before) = (self.history.n_entries(), self.history.tokens());
            self.compactions.push(OldCompaction { at, summary: None, tokens_before, created: self.now });
        }
    }

    fn message(&mut self, message: Message) {
        self.now = message.created.map_or(self.now, Timestamp);
        let at = self.now;
        match message.said {
            None => {}
            Some(Said::System(text)) if self.system_prompt.is_empty() => self.system_prompt = text,
            Some(Said::System(_)) => {}
            Some(Said::Prompt(parts)) => {
                let is_text = !parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Text(_)));
                let is_summary = std::mem::take(&mut self.awaits_summary) && is_text;
                match self.compactions.last_mut().filter(|_| is_summary) {
                    Some(compaction) => compaction.summary = Some(message::words(&parts)),
                    None => self.history.prompt(parts, at),
                }
            }
            Some(Said::Reply { thought, text, calls }) => {
                self.awaits_summary = false;
                self.history.reply(history::reply(thought, text, message.usage), calls, at);
            }
            Some(Said::Result { call, parts }) => {
                let has_call = self.history.result(&call, parts, at);
                self.lost.results += u64::from(!has_call);
            }
        }
    }
}

/// Makes a title of the first words of a person; a fork begins as the session it came from does.
fn title(entries: &[(Entry, Timestamp)], fork: Option<i64>) -> Option<String> {
    let first = entries.iter().find_map(|(entry, _)| match entry {
        Entry::Prompt(prompt) => Some(prompt.text()),
        Entry::Reply(_) | Entry::Result { .. } => None,
    })?;
    let title = Some(facets::one_line(&first)).filter(|title| !title.is_empty())?;
    Some(fork.map_or_else(|| title.clone(), |fork| format!("{title} (fork {fork})")))
}
