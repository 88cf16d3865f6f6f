//! Shows the messages of a session page by page, so that a long one is never in memory as a whole.

use std::{io::Write, ops::Range};

use crow_core::{ContentPart, MessageId, ToolCall, ToolResult, TranscriptEntry};
use crow_store::{MessageRange, SessionRow, Store, StoredMessage};
use serde_json::{Value, json};

use super::format::{iso_timestamp, session_json};
use crate::{cli::InspectArgs, failure::CliError, table};

/// Messages read at a time.
const PAGE_LEN: u32 = 100;

/// Shows the last messages, or the last before a given one.
pub(super) async fn show_messages(
    args: &InspectArgs,
    store: &Store,
    row: &SessionRow,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let end = args.before.unwrap_or(u64::MAX).min(row.n_messages);
    let from = end.saturating_sub(args.limit.map_or(u64::MAX, u64::from));
    if args.json {
        let mut messages = Vec::new();
        for_each_page(store, row, from..end, |page| {
            messages.extend(page.iter().map(with_legacy_keys));
            Ok(())
        })
        .await?;
        let document = json!({ "session": session_json(row), "messages": messages, "earlier": from });
        return Ok(writeln!(out, "{}", table::json_line(&document))?);
    }
    if from > 0 {
        let messages = if from == 1 { "message" } else { "messages" };
        writeln!(out, "({from} earlier {messages}; --before {from} shows them)\n")?;
    }
    for_each_page(store, row, from..end, |page| {
        page.iter().try_for_each(|message| show_entry(&message.entry, out))
    })
    .await
}

/// Reads a range of messages and passes each page to `on_page`.
pub(super) async fn for_each_page(
    store: &Store,
    row: &SessionRow,
    range: Range<u64>,
    mut on_page: impl FnMut(&[StoredMessage]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let Range { start: mut from, end } = range;
    while from < end {
        let limit = u32::try_from(end - from).unwrap_or(PAGE_LEN).min(PAGE_LEN);
        on_page(&store.load_messages(&row.id, MessageRange { from, limit }).await?)?;
        from += u64::from(limit);
    }
    // The draft of a reply that was interrupted or is still streaming.
    if end == row.n_messages
        && let Some(reply) = store.read_draft(&row.id, end).await
    {
        on_page(&[StoredMessage { seq: end, entry: TranscriptEntry::Reply(reply), created: row.updated }])?;
    }
    Ok(())
}

fn show_entry(entry: &TranscriptEntry, out: &mut impl Write) -> Result<(), CliError> {
    match entry {
        TranscriptEntry::Prompt(prompt) => {
            writeln!(out, "user {}", prompt.id)?;
            write_indented(&parts_text(&prompt.parts), out)?;
        }
        TranscriptEntry::Reply(reply) => {
            writeln!(out, "assistant {}", reply.id)?;
            write_indented(&reply.text, out)?;
            for call in &reply.calls {
                let arguments = Value::Object(call.arguments.to_object()).to_string();
                writeln!(
                    out,
                    "  {} {} {}",
                    call.id,
                    table::sanitize_line(&call.name),
                    table::sanitize_line(&arguments)
                )?;
            }
        }
        TranscriptEntry::Result { call, info, result } => {
            writeln!(out, "tool {call}: {} ({})", table::sanitize_line(&info.title), result.status.as_str())?;
            write_indented(&parts_text(&result.for_model), out)?;
        }
    }
    Ok(writeln!(out)?)
}

fn write_indented(text: &str, out: &mut impl Write) -> Result<(), CliError> {
    for line in text.lines() {
        let line = table::sanitize_line(&line.replace('\t', "    "));
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    Ok(())
}

/// Converts content parts to text; images become placeholders.
pub(super) fn parts_text(parts: &[ContentPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        ContentPart::Text(text) => text.clone(),
        ContentPart::Image { mime, .. } => format!("[image {mime}]"),
        ContentPart::Link { uri, .. } => format!("[{uri}]"),
        ContentPart::Resource { uri, text, .. } => format!("[{uri}]\n{text}"),
        // Each session has them, and they are long.
        ContentPart::FromCrow { kind: what, .. } if what.is_session_context() => {
            format!("[added by Crow: {what}]")
        }
        ContentPart::FromCrow { kind: what, text } => format!("[added by Crow: {what}]\n{text}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// JSON of a message.
pub(super) fn message_json(message: &StoredMessage) -> Value {
    let mut json = entry_json(&message.entry);
    json["seq"] = message.seq.into();
    json["created"] = iso_timestamp(message.created).into();
    json
}

/// JSON of a message that also has the Python version's keys.
fn with_legacy_keys(message: &StoredMessage) -> Value {
    let mut json = message_json(message);
    if let TranscriptEntry::Result { .. } = message.entry {
        json["id"] = MessageId::from_seq(message.seq).as_str().into();
    }
    json["created_at"] = json["created"].clone();
    json["data"] = provider_json(&message.entry);
    json
}

/// JSON of a message in the chat completions format.
fn provider_json(entry: &TranscriptEntry) -> Value {
    match entry {
        TranscriptEntry::Prompt(prompt) => json!({ "role": "user", "content": parts_text(&prompt.parts) }),
        TranscriptEntry::Reply(reply) => {
            let mut json = json!({ "role": "assistant", "content": reply.text });
            if !reply.thought.is_empty() {
                json["reasoning_content"] = reply.thought.as_str().into();
            }
            if !reply.calls.is_empty() {
                json["tool_calls"] = reply.calls.iter().map(call_json).collect();
            }
            json
        }
        TranscriptEntry::Result { call, result, .. } => {
            json!({ "role": "tool", "tool_call_id": call.to_string(), "content": parts_text(&result.for_model) })
        }
    }
}

fn call_json(call: &ToolCall) -> Value {
    let arguments = Value::Object(call.arguments.to_object()).to_string();
    let function = json!({ "name": call.name, "arguments": arguments });
    json!({ "id": call.id.to_string(), "type": "function", "function": function })
}

fn entry_json(entry: &TranscriptEntry) -> Value {
    match entry {
        TranscriptEntry::Prompt(prompt) => {
            json!({ "role": "user", "id": prompt.id.as_str(), "text": parts_text(&prompt.parts) })
        }
        TranscriptEntry::Reply(reply) => {
            let calls = reply.calls.iter().map(|call| {
                json!({ "id": call.id.to_string(), "name": call.name, "arguments": call.arguments.to_object() })
            });
            let calls: Vec<Value> = calls.collect();
            let (id, thought) = (reply.id.as_str(), &reply.thought);
            json!({ "role": "assistant", "id": id, "thought": thought, "text": reply.text, "calls": calls })
        }
        TranscriptEntry::Result { call, info, result: ToolResult { status, for_model, .. } } => {
            json!({
                "role": "tool",
                "call": call.to_string(),
                "title": info.title,
                "status": status.as_str(),
                "text": parts_text(for_model),
            })
        }
    }
}
