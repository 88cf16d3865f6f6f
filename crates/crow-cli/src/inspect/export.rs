//! Exports a whole session, as readable markdown or complete JSON.

use std::{borrow::Cow, io::Write};

use crow_core::text_diff::TextDiff;
use crow_core::{
    ContentPart, PlanEntry, PlanStatus, Reply, ReplyEnd, SessionId, ToolCallContent, TranscriptEntry,
};
use crow_store::{LoadedSession, Store, StoredMessage, Timestamp};
use serde_json::{Value, json};

use super::{
    compactions,
    format::{session_json, usage_json},
    messages::{for_each_page, message_json, parts_text},
};
use crate::{cli::ExportFormat, failure::CliError, money, table};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Writes a session in a format.
pub(super) async fn write_export(
    format: ExportFormat,
    store: &Store,
    stored: &LoadedSession,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut times = Vec::with_capacity(stored.entries.len());
    let end = stored.session.n_messages;
    for_each_page(store, &stored.session, 0..end, |page| {
        times.extend(page.iter().map(|message| message.created));
        Ok(())
    })
    .await?;
    match format {
        ExportFormat::Md => write_markdown(stored, &times, out),
        ExportFormat::Json => Ok(writeln!(out, "{}", table::json_line(&export_json(stored, &times)))?),
    }
}

fn write_markdown(stored: &LoadedSession, times: &[Timestamp], out: &mut impl Write) -> Result<(), CliError> {
    let row = &stored.session;
    writeln!(out, "# {}\n", table::sanitize_line(row.title.as_deref().unwrap_or("(no title)")))?;
    let fields = [
        ("session", Some(row.id.to_string())),
        ("directory", Some(row.cwd.clone())),
        ("model", Some(row.model.clone())),
        ("mode", Some(row.mode.as_str().to_owned())),
        ("created", Some(format_minute(row.created))),
        ("last message", Some(format_minute(row.updated))),
        ("cost", stored.total_usage().cost.map(money::format_dollars)),
        ("child of", row.parent.as_ref().map(SessionId::to_string)),
        ("copy of", row.forked_from.as_ref().map(SessionId::to_string)),
    ];
    for (label, value) in fields.into_iter().filter_map(|(label, fact)| Some((label, fact?))) {
        writeln!(out, "- {label}: {}", table::sanitize_line(&value))?;
    }
    for (seq, (entry, time)) in stored.entries.iter().zip(times).enumerate() {
        write_compactions(stored, seq as u64, out)?;
        write_entry(entry, *time, out)?;
    }
    write_compactions(stored, stored.entries.len() as u64, out)
}

/// Writes the compactions made before a message.
fn write_compactions(stored: &LoadedSession, seq: u64, out: &mut impl Write) -> Result<(), CliError> {
    for compaction in stored.compactions.iter().filter(|compaction| compaction.at_seq == seq) {
        writeln!(out, "\n---\n\nCompacted {}.", compactions::describe_compaction(compaction))?;
        for line in compaction.summary.iter().flat_map(|summary| summary.lines()) {
            writeln!(out, "{}", format!("> {}", table::sanitize_line(line)).trim_end())?;
        }
        writeln!(out, "\n---")?;
    }
    Ok(())
}

fn write_entry(entry: &TranscriptEntry, time: Timestamp, out: &mut impl Write) -> Result<(), CliError> {
    let time = format_minute(time);
    match entry {
        TranscriptEntry::Prompt(prompt) => {
            writeln!(out, "\n## user, {time}\n\n{}", table::sanitize_text(&parts_text(&prompt.parts)))?;
        }
        TranscriptEntry::Reply(reply) => {
            writeln!(out, "\n## assistant, {time}")?;
            write_reply(reply, out)?;
        }
        TranscriptEntry::Result { call, info, result } => {
            let title = table::sanitize_line(&info.title);
            writeln!(out, "\n### {call}: {title} ({})", result.status.as_str())?;
            write_fenced("text", &parts_text(&result.for_model), out)?;
            for content in &result.for_client {
                if let ToolCallContent::Diff { path, old, new } = content {
                    let old = old.as_deref().unwrap_or_default();
                    let hunks = TextDiff::compare_lines(old, new).render_hunks(CONTEXT_LINES);
                    write_fenced("diff", &format!("--- {path}\n+++ {path}\n{hunks}"), out)?;
                }
            }
        }
    }
    Ok(())
}

fn write_reply(reply: &Reply, out: &mut impl Write) -> Result<(), CliError> {
    if !reply.thought.is_empty() {
        writeln!(out)?;
        for line in reply.thought.lines() {
            writeln!(out, "{}", format!("> {}", table::sanitize_line(line)).trim_end())?;
        }
    }
    if !reply.text.is_empty() {
        writeln!(out, "\n{}", table::sanitize_text(&reply.text))?;
    }
    for call in &reply.calls {
        writeln!(out, "\n{} calls {}", call.id, table::sanitize_line(&call.name))?;
        write_fenced("json", &format!("{:#}", Value::Object(call.arguments.to_object())), out)?;
    }
    if let Some(ending) = describe_ending(&reply.end) {
        writeln!(out, "\n({})", table::sanitize_line(&ending))?;
    }
    Ok(())
}

/// Describes the end of a reply that did not end normally.
fn describe_ending(reply_end: &ReplyEnd) -> Option<Cow<'_, str>> {
    match reply_end {
        ReplyEnd::Complete => None,
        ReplyEnd::OutputLimit => Some("truncated at the output limit".into()),
        ReplyEnd::SizeLimit => Some("truncated by Crow at 16 MiB".into()),
        ReplyEnd::Refused => Some("withheld by the provider".into()),
        ReplyEnd::Cancelled => Some("cancelled".into()),
        ReplyEnd::Failed(failure) => Some(format!("failed: {failure}").into()),
    }
}

/// Writes a code block with a fence longer than any in the text.
fn write_fenced(kind: &str, text: &str, out: &mut impl Write) -> Result<(), CliError> {
    if text.is_empty() {
        return Ok(());
    }
    let fence = crow_core::code_fence(text);
    Ok(writeln!(out, "\n{fence}{kind}\n{}\n{fence}", table::sanitize_text(text.trim_end_matches('\n')))?)
}

fn format_minute(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn export_json(stored: &LoadedSession, times: &[Timestamp]) -> Value {
    let messages = stored.entries.iter().zip(times).enumerate().map(|(seq, (entry, created))| {
        let message = StoredMessage { seq: seq as u64, entry: entry.clone(), created: *created };
        let mut json = message_json(&message);
        for (key, value) in extra_fields(entry) {
            json[key] = value;
        }
        json
    });
    let messages: Vec<Value> = messages.collect();
    let mut session = session_json(&stored.session);
    session["system_prompt"] = stored.system_prompt.as_str().into();
    let compactions: Vec<Value> = stored.compactions.iter().map(compactions::compaction_json).collect();
    let usage = usage_json(stored.total_usage());
    json!({ "session": session, "messages": messages, "compactions": compactions, "usage": usage })
}

/// Fields of a message that the message list omits.
fn extra_fields(entry: &TranscriptEntry) -> Vec<(&'static str, Value)> {
    match entry {
        TranscriptEntry::Prompt(prompt) => vec![("parts", prompt.parts.iter().map(part_json).collect())],
        TranscriptEntry::Reply(reply) => vec![
            ("ended", describe_ending(&reply.end).map(Cow::into_owned).into()),
            ("usage", reply.usage.map(usage_json).into()),
            ("answered_by", reply.fallback_model.clone().into()),
        ],
        TranscriptEntry::Result { info, result, .. } => {
            let locations = info.locations.iter();
            let locations = locations.map(|location| json!({"path": location.path, "line": location.line}));
            let plan = result.plan.as_ref().map(|plan| plan.iter().map(plan_entry_json).collect::<Vec<_>>());
            vec![
                ("locations", locations.collect()),
                ("parts", result.for_model.iter().map(part_json).collect()),
                ("shown", result.for_client.iter().map(content_json).collect()),
                ("plan", plan.into()),
            ]
        }
    }
}

fn plan_entry_json(step: &PlanEntry) -> Value {
    let status = match step.status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    };
    json!({"text": step.text, "status": status})
}

fn part_json(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::Image { mime, data } => json!({"type": "image", "mime": mime, "data": data}),
        ContentPart::Link { uri, name, mime } => {
            json!({"type": "link", "uri": uri, "name": name, "mime": mime})
        }
        ContentPart::Resource { uri, text, mime } => {
            json!({"type": "resource", "uri": uri, "text": text, "mime": mime})
        }
        ContentPart::FromCrow { kind: what, text } => {
            json!({"type": "resource", "uri": what.uri(), "text": text, "mime": null, "origin": "crow"})
        }
    }
}

fn content_json(content: &ToolCallContent) -> Value {
    match content {
        ToolCallContent::Text(text) => json!({"type": "text", "text": text}),
        ToolCallContent::Image { mime, data } => json!({"type": "image", "mime": mime, "data": data}),
        ToolCallContent::Diff { path, old, new } => {
            json!({"type": "diff", "path": path, "old": old, "new": new})
        }
    }
}
