//! How a message stands in a record. Every line of what was said is indented, so that no text can pass for the
//! heading of another message.

use crow_core::{ContentPart, Reply, ReplyEnd, TranscriptEntry};
use crow_store::{StoredMessage, Timestamp};
use serde_json::Value;

use super::asked::RecordDetail;
use crate::clock;

/// Tells what a message says, as much of it as is wanted; nothing when none of it is.
pub(super) fn entry_text(entry: &TranscriptEntry, detail: RecordDetail) -> Option<String> {
    let text = match entry {
        TranscriptEntry::Prompt(prompt) => parts_text(&prompt.parts),
        TranscriptEntry::Reply(reply) => reply_text(reply, detail),
        TranscriptEntry::Result { .. } if !detail.shows_tools() => return None,
        TranscriptEntry::Result { call, facets, outcome } => {
            let head = format!("result of {call} ({}), {}", facets.title, outcome.status.as_str());
            format!("{head}\n{}", parts_text(&outcome.for_model))
        }
    };
    (!text.is_empty()).then_some(text)
}

fn reply_text(reply: &Reply, detail: RecordDetail) -> String {
    let mut said = Vec::new();
    if detail.shows_thoughts() && !reply.thought.is_empty() {
        said.push(format!("(thought) {}", reply.thought));
    }
    if !reply.text.is_empty() {
        said.push(reply.text.clone());
    }
    if detail.shows_tools() {
        for call in &reply.calls {
            let arguments = Value::Object(call.arguments.to_object());
            said.push(format!("{}: {} {arguments}", call.id, call.name));
        }
    }
    match &reply.ended {
        ReplyEnd::Normally => {}
        ReplyEnd::OutputLimit => said.push("(cut by the output limit)".to_owned()),
        ReplyEnd::SizeLimit => said.push("(cut by Crow at 16 MiB)".to_owned()),
        ReplyEnd::Refused => said.push("(withheld by the provider)".to_owned()),
        ReplyEnd::Cancelled => said.push("(stopped by the person)".to_owned()),
        ReplyEnd::Failed(failure) => said.push(format!("(failed: {failure})")),
    }
    said.join("\n")
}

fn parts_text(parts: &[ContentPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        ContentPart::Text(text) => text.clone(),
        ContentPart::Image { mime, .. } => format!("[image {mime}]"),
        ContentPart::Link { uri, .. } => format!("[{uri}]"),
        ContentPart::Resource { uri, text, .. } => format!("[{uri}]\n{text}"),
        ContentPart::FromCrow { what, text } => format!("[added by Crow: {what}]\n{text}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn speaker_label(entry: &TranscriptEntry) -> &'static str {
    match entry {
        TranscriptEntry::Prompt(_) => "user",
        TranscriptEntry::Reply(_) => "assistant",
        TranscriptEntry::Result { .. } => "tool",
    }
}

/// Writes a message down with its heading, from a character on and not longer than this; nothing when it ends before.
pub(super) fn render_message(
    message: &StoredMessage,
    text: &str,
    start: usize,
    chars_max: usize,
) -> Option<String> {
    let StoredMessage { seq, entry, created } = message;
    let mut record = message_heading(*seq, speaker_label(entry), *created);
    let rest = text.char_indices().nth(start).map(|(at, _)| &text[at..])?;
    let shown = rest.char_indices().nth(chars_max).map_or(rest, |(at, _)| &rest[..at]);
    for line in shown.lines() {
        record.push_str(format!("  {line}").trim_end());
        record.push('\n');
    }
    if shown.len() < rest.len() {
        let n_more = rest[shown.len()..].chars().count();
        let after = seq.checked_sub(1).map(|after| format!("after={after}, ")).unwrap_or_default();
        let (before, on) = (seq + 1, start + chars_max);
        record += &format!("  (… {n_more} more characters: {after}before={before}, start_index={on})\n");
    }
    Some(record)
}

fn message_heading(seq: u64, who: &str, created: Timestamp) -> String {
    format!("[{seq}] {who}, {}\n", clock::format_minute(created))
}
