#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

mod copy;
mod order;
mod rows;

use std::fmt::Write;

use crow_core::{ContentPart, ToolArguments, ToolCallContent, Transcript, TranscriptEntry};
use expect_test::{Expect, expect};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;

use crow_store::ImportLosses;

use super::{is_python, old_session::OldSession, read_sessions};

/// A database as one of the versions created and filled it.
struct Old {
    connection: Connection,
    directory: TempDir,
    n_messages: u32,
}

impl Old {
    /// The layout without forks, with local times.
    fn of_0_1_22() -> Self {
        Self::made_by(include_str!("tests/0.1.22.sql"))
    }

    fn of_0_1_48() -> Self {
        Self::made_by(include_str!("tests/0.1.48.sql"))
    }

    fn made_by(script: &str) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(script).unwrap();
        Self { connection, directory: TempDir::new().unwrap(), n_messages: 0 }
    }

    fn execute(&self, sql: &str) -> &Self {
        self.connection.execute_batch(sql).unwrap();
        self
    }

    /// Adds an agent as 0.1.22 did, with its system row.
    fn agent(&mut self, session: &str, generation: u32, cwd: &str) -> String {
        let agent = format!("{session}-{generation}");
        let row = params![agent, session, generation, cwd];
        let sql = "INSERT INTO agents VALUES (?1, ?2, ?3, ?4, NULL, '{}', 'You are Crow', '[]', '{}', 'qwen3', 'active',
                   '2026-01-02 03:00:00.000000')";
        self.connection.execute(sql, row).unwrap();
        self.say(&agent, json!({"role": "system", "content": "You are Crow"}));
        agent
    }

    /// Adds an agent as 0.1.48 did; only one that is not a fork got a system row.
    fn forked(&mut self, session: &str, generation: u32, fork: u32, at: Option<&str>) -> String {
        let agent = format!("{session}-{generation}-{fork}");
        let row = params![agent, session, generation, fork, at];
        let sql = "INSERT INTO agents VALUES (?1, ?2, ?3, ?4, ?5, '/p', NULL, '{\"workspace\": \"/p\"}', 'You are Crow', '[]',
                   NULL, '{\"temperature\": 0.2}', 'qwen3', 'active', '2026-01-02T03:00:00.000000+00:00')";
        self.connection.execute(sql, row).unwrap();
        if at.is_none() {
            self.say(&agent, json!({"role": "system", "content": "You are Crow"}));
        }
        agent
    }

    /// Adds a message a second after the previous one, and returns its number.
    fn say(&mut self, agent: &str, message: Value) -> i64 {
        let role = message["role"].as_str().unwrap_or("unknown").to_owned();
        self.row(agent, &role, &message.to_string())
    }

    fn row(&mut self, agent: &str, role: &str, data: &str) -> i64 {
        self.n_messages += 1;
        let second = self.n_messages;
        let at = format!("2026-01-02T03:{:02}:{:02}.500000+00:00", second / 60 % 60, second % 60);
        let tokens = (role == "assistant").then_some(10 * second);
        let sql = "INSERT INTO messages (agent_id, created_at, data, role, prompt_tokens, completion_tokens, total_tokens)
                   VALUES (?1, ?2, ?3, ?4, ?5, 1, ?5 + 1)";
        let sql = if self.has_forks() {
            sql.replace("(agent_id", "(fork_idx, agent_id").replace("(?1", "(1, ?1")
        } else {
            sql.to_owned()
        };
        self.connection.execute(&sql, params![agent, at, data, role, tokens]).unwrap();
        self.connection.last_insert_rowid()
    }

    fn has_forks(&self) -> bool {
        self.connection.prepare("SELECT fork_idx FROM messages").is_ok()
    }

    fn user(&mut self, agent: &str, text: &str) -> i64 {
        self.say(agent, json!({"role": "user", "content": text}))
    }

    fn assistant(&mut self, agent: &str, text: &str) -> i64 {
        self.say(agent, json!({"role": "assistant", "content": text}))
    }

    /// Adds a reply with calls, each an ID, a name and arguments.
    fn calls(&mut self, agent: &str, calls: &[(&str, &str, &str)]) -> i64 {
        let calls: Vec<Value> = calls
            .iter()
            .map(|(id, name, arguments)| {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
            })
            .collect();
        self.say(agent, json!({"role": "assistant", "content": "", "tool_calls": calls}))
    }

    fn result(&mut self, agent: &str, call: &str, text: &str) -> i64 {
        self.say(agent, json!({"role": "tool", "tool_call_id": call, "content": text}))
    }

    fn read(&self) -> (Vec<OldSession>, ImportLosses) {
        let mut sessions = Vec::new();
        let lost = read_sessions(&self.connection, &self.directory.path().join("images"), |session| {
            sessions.push(session);
            Ok(())
        });
        (sessions, lost.unwrap())
    }
}

/// Reads a database and shows the result; every session must be acceptable to a transcript.
#[track_caller]
fn check(old: &Old, wanted: Expect) {
    assert!(is_python(&old.connection).unwrap());
    let (sessions, lost) = old.read();
    let mut text = String::new();
    for session in &sessions {
        accepted(session);
        show(session, &mut text);
    }
    if lost != ImportLosses::default() {
        writeln!(text, "lost: {lost}").unwrap();
    }
    wanted.assert_eq(&text);
}

#[track_caller]
fn accepted(session: &OldSession) {
    let mut transcript = Transcript::new(&session.system_prompt);
    for (entry, _) in &session.entries {
        let seq = transcript.next_seq();
        match entry {
            TranscriptEntry::Prompt(prompt) => assert_eq!(prompt.id, crow_core::MessageId::from_seq(seq)),
            TranscriptEntry::Reply(reply) => {
                assert_eq!(reply.id, crow_core::MessageId::from_seq(seq));
                assert!(reply.calls.iter().all(|call| call.id.reply_seq() == seq));
            }
            TranscriptEntry::Result { .. } => {}
        }
        transcript.push(entry.clone()).unwrap();
    }
    assert!(transcript.for_model().is_ok());
    for compaction in &session.compactions {
        assert!(compaction.at_seq <= transcript.next_seq());
    }
}

fn show(session: &OldSession, text: &mut String) {
    let parent = session.parent.as_ref().map(|parent| format!(" of {parent}")).unwrap_or_default();
    let title = session.title.as_deref().unwrap_or("none");
    writeln!(text, "{}{parent} in {} with {}: {title}", session.id, session.cwd, session.model).unwrap();
    let mut compactions = session.compactions.iter().peekable();
    for place in 0..=session.entries.len() {
        while let Some(compaction) = compactions.next_if(|compaction| compaction.at_seq == place as u64) {
            let summary = compaction.summary.as_deref().unwrap_or("none");
            writeln!(text, "  -- {} tokens become: {summary}", compaction.tokens_before).unwrap();
        }
        if let Some((entry, _)) = session.entries.get(place) {
            writeln!(text, "  {}", entry_line(entry)).unwrap();
        }
    }
}

fn entry_line(entry: &TranscriptEntry) -> String {
    match entry {
        TranscriptEntry::Prompt(prompt) => format!("prompt {}", parts_line(&prompt.parts)),
        TranscriptEntry::Reply(reply) => {
            let mut line = String::from("reply");
            if !reply.thought.is_empty() {
                write!(line, " ({})", reply.thought).unwrap();
            }
            write!(line, " {:?}", reply.text).unwrap();
            for call in &reply.calls {
                let arguments = match &call.arguments {
                    ToolArguments::Valid(value) => Value::from(value.clone()).to_string(),
                    ToolArguments::Repaired { value, .. } => {
                        format!("repaired {}", Value::from(value.clone()))
                    }
                    ToolArguments::Unreadable { .. } => "unreadable".to_owned(),
                };
                write!(line, " {}={}:{} {arguments}", call.id, call.provider_id, call.name).unwrap();
            }
            line
        }
        TranscriptEntry::Result { call, info: facets, result: outcome } => {
            let places: Vec<&str> = facets.locations.iter().map(|location| location.path.as_str()).collect();
            let images =
                outcome.for_client.iter().filter(|content| matches!(content, ToolCallContent::Image { .. }));
            assert_eq!(outcome.for_client.len(), outcome.for_model.len());
            let shown = if images.count() > 0 { " with an image" } else { "" };
            format!(
                "{call} {:?} `{}`{places:?}{shown} {:?}: {}",
                facets.kind,
                facets.title,
                outcome.status,
                parts_line(&outcome.for_model)
            )
        }
    }
}

fn parts_line(parts: &[ContentPart]) -> String {
    let shown = parts.iter().map(|part| match part {
        ContentPart::Text(text) => format!("{text:?}"),
        ContentPart::Image { mime, data } => format!("[{mime} {data}]"),
        ContentPart::Link { uri, .. } => format!("<{uri}>"),
        ContentPart::Resource { uri, .. } => format!("<<{uri}>>"),
        ContentPart::FromCrow { kind: what, .. } => format!("<<{}>>", what.uri()),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn plain_chat_of_either_layout() {
    let mut old = Old::of_0_1_22();
    let agent = old.agent("wise-otter-of-joy", 1, "/p");
    old.user(&agent, "grüße 🐦\nand more");
    old.assistant(&agent, "hello");
    check(
        &old,
        expect![[r#"
            wise-otter-of-joy in /p with qwen3: grüße 🐦…
              prompt "grüße 🐦\nand more"
              reply "hello"
        "#]],
    );
    let mut old = Old::of_0_1_48();
    let agent = old.forked("wise-otter-of-joy", 1, 1, None);
    old.user(&agent, "grüße 🐦");
    old.say(&agent, json!({"role": "assistant", "content": "hello", "reasoning_content": "a bird"}));
    check(
        &old,
        expect![[r#"
        wise-otter-of-joy in /p with qwen3: grüße 🐦
          prompt "grüße 🐦"
          reply (a bird) "hello"
    "#]],
    );
}

#[test]
fn own_database_is_not_a_python_one() {
    let connection = Connection::open_in_memory().unwrap();
    assert!(!is_python(&connection).unwrap());
    connection
        .execute_batch(include_str!("../../../crow-store/migrations/sqlite/0001_sessions.sql"))
        .unwrap();
    assert!(!is_python(&connection).unwrap());
}
