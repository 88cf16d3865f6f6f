//! A whole session as one text: markdown to read, JSON that holds everything.

use std::{borrow::Cow, io::Write};

use clap::ValueEnum;
use crow_core::{Content, Ended, Entry, Part, PlanEntry, PlanStatus, Reply, SessionId};
use crow_store::{Message, Store, Stored, Timestamp};
use serde_json::{Value, json};
use similar::TextDiff;

use super::{
    compactions,
    messages::{message_json, parts_text, read},
    session_json, usage_json,
};
use crate::{failure::Exit, money, table};

/// Lines around a change.
const CONTEXT_LINES: usize = 3;

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Markdown, for people
    Md,
    /// One JSON document with everything
    Json,
}

/// Writes a session down.
pub(super) async fn write(
    form: Form,
    store: &Store,
    stored: &Stored,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let mut times = Vec::with_capacity(stored.entries.len());
    let end = stored.session.n_messages;
    read(store, &stored.session, (0, end), |page| {
        times.extend(page.iter().map(|message| message.created));
        Ok(())
    })
    .await?;
    match form {
        Form::Md => markdown(stored, &times, out),
        Form::Json => Ok(writeln!(out, "{}", table::json(&document(stored, &times)))?),
    }
}

fn markdown(stored: &Stored, times: &[Timestamp], out: &mut impl Write) -> Result<(), Exit> {
    let row = &stored.session;
    writeln!(out, "# {}\n", table::plain(row.title.as_deref().unwrap_or("(no title)")))?;
    let facts = [
        ("session", Some(row.id.to_string())),
        ("folder", Some(row.cwd.clone())),
        ("model", Some(row.model.clone())),
        ("mode", Some(row.mode.as_str().to_owned())),
        ("began", Some(minute(row.created))),
        ("last message", Some(minute(row.updated))),
        ("cost", stored.bill().cost.map(money::spelled)),
        ("child of", row.parent.as_ref().map(SessionId::to_string)),
        ("copy of", row.forked_from.as_ref().map(SessionId::to_string)),
    ];
    for (label, fact) in facts.into_iter().filter_map(|(label, fact)| Some((label, fact?))) {
        writeln!(out, "- {label}: {}", table::plain(&fact))?;
    }
    for (seq, (entry, time)) in stored.entries.iter().zip(times).enumerate() {
        compacted(stored, seq as u64, out)?;
        spoken(entry, *time, out)?;
    }
    compacted(stored, stored.entries.len() as u64, out)
}

/// Writes the compactions that were made before a message.
fn compacted(stored: &Stored, seq: u64, out: &mut impl Write) -> Result<(), Exit> {
    for compaction in stored.compactions.iter().filter(|compaction| compaction.at == seq) {
        writeln!(out, "\n---\n\nCompacted {}.", compactions::line(compaction))?;
        for line in compaction.summary.iter().flat_map(|summary| summary.lines()) {
            writeln!(out, "{}", format!("> {}", table::plain(line)).trim_end())?;
        }
        writeln!(out, "\n---")?;
    }
    Ok(())
}

fn spoken(entry: &Entry, time: Timestamp, out: &mut impl Write) -> Result<(), Exit> {
    let time = minute(time);
    match entry {
        Entry::Prompt(prompt) => {
            writeln!(out, "\n## user, {time}\n\n{}", table::text(&parts_text(&prompt.parts)))?;
        }
        Entry::Reply(reply) => {
            writeln!(out, "\n## assistant, {time}")?;
            replied(reply, out)?;
        }
        Entry::Result { call, facets, outcome } => {
            let title = table::plain(&facets.title);
            writeln!(out, "\n### {call}: {title} ({})", outcome.status.as_str())?;
            fenced("text", &parts_text(&outcome.for_model), out)?;
            for content in &outcome.for_client {
                if let Content::Diff { path, old, new } = content {
                    let old = old.as_deref().unwrap_or_default();
                    let diff = TextDiff::from_lines(old, new);
                    let diff =
                        diff.unified_diff().context_radius(CONTEXT_LINES).header(path, path).to_string();
                    fenced("diff", &diff, out)?;
                }
            }
        }
    }
    Ok(())
}

fn replied(reply: &Reply, out: &mut impl Write) -> Result<(), Exit> {
    if !reply.thought.is_empty() {
        writeln!(out)?;
        for line in reply.thought.lines() {
            writeln!(out, "{}", format!("> {}", table::plain(line)).trim_end())?;
        }
    }
    if !reply.text.is_empty() {
        writeln!(out, "\n{}", table::text(&reply.text))?;
    }
    for call in &reply.calls {
        writeln!(out, "\n{} calls {}", call.id, table::plain(&call.name))?;
        fenced("json", &format!("{:#}", Value::Object(call.arguments.object())), out)?;
    }
    if let Some(why) = ended(&reply.ended) {
        writeln!(out, "\n({})", table::plain(&why))?;
    }
    Ok(())
}

/// Says how a reply ended, when not as it should.
fn ended(ended: &Ended) -> Option<Cow<'_, str>> {
    match ended {
        Ended::Normally => None,
        Ended::OutputLimit => Some("cut by the output limit".into()),
        Ended::SizeLimit => Some("cut by Crow at 16 MiB".into()),
        Ended::Refused => Some("withheld by the provider".into()),
        Ended::Cancelled => Some("stopped".into()),
        Ended::Failed(failure) => Some(format!("failed: {failure}").into()),
    }
}

/// Puts a text between fences that it does not hold itself.
fn fenced(kind: &str, text: &str, out: &mut impl Write) -> Result<(), Exit> {
    if text.is_empty() {
        return Ok(());
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    Ok(writeln!(out, "\n{fence}{kind}\n{}\n{fence}", table::text(text.trim_end_matches('\n')))?)
}

fn minute(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn document(stored: &Stored, times: &[Timestamp]) -> Value {
    let messages = stored.entries.iter().zip(times).enumerate().map(|(seq, (entry, created))| {
        let message = Message { seq: seq as u64, entry: entry.clone(), created: *created };
        let mut json = message_json(&message);
        for (key, value) in whole(entry) {
            json[key] = value;
        }
        json
    });
    let messages: Vec<Value> = messages.collect();
    let mut session = session_json(&stored.session);
    session["system_prompt"] = stored.system_prompt.as_str().into();
    let compactions: Vec<Value> = stored.compactions.iter().map(compactions::json).collect();
    let usage = usage_json(stored.bill());
    json!({ "session": session, "messages": messages, "compactions": compactions, "usage": usage })
}

/// What a list of messages leaves out.
fn whole(entry: &Entry) -> Vec<(&'static str, Value)> {
    match entry {
        Entry::Prompt(prompt) => vec![("parts", prompt.parts.iter().map(part_json).collect())],
        Entry::Reply(reply) => vec![
            ("ended", ended(&reply.ended).map(Cow::into_owned).into()),
            ("usage", reply.usage.map(usage_json).into()),
            ("answered_by", reply.answered_by.clone().into()),
        ],
        Entry::Result { facets, outcome, .. } => {
            let locations = facets.locations.iter();
            let locations = locations.map(|place| json!({"path": place.path, "line": place.line}));
            let plan = outcome.plan.as_ref().map(|plan| plan.iter().map(step_json).collect::<Vec<_>>());
            vec![
                ("locations", locations.collect()),
                ("parts", outcome.for_model.iter().map(part_json).collect()),
                ("shown", outcome.for_client.iter().map(content_json).collect()),
                ("plan", plan.into()),
            ]
        }
    }
}

fn step_json(step: &PlanEntry) -> Value {
    let status = match step.status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    };
    json!({"text": step.text, "status": status})
}

fn part_json(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { mime, data } => json!({"type": "image", "mime": mime, "data": data}),
        Part::Link { uri, name, mime } => json!({"type": "link", "uri": uri, "name": name, "mime": mime}),
        Part::Resource { uri, text, mime } => {
            json!({"type": "resource", "uri": uri, "text": text, "mime": mime})
        }
        Part::FromCrow { what, text } => {
            json!({"type": "resource", "uri": what.uri(), "text": text, "mime": null, "origin": "crow"})
        }
    }
}

fn content_json(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image { mime, data } => json!({"type": "image", "mime": mime, "data": data}),
        Content::Diff { path, old, new } => json!({"type": "diff", "path": path, "old": old, "new": new}),
    }
}
