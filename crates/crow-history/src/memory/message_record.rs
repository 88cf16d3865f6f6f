//! Renders a message as a record. Every line of its text is indented, so that no text can pass for the heading of
//! another message.

use crow_core::{ContentPart, Reply, ReplyEnd, TranscriptEntry};
use crow_store::{StoredMessage, Timestamp};
use serde_json::Value;

use super::arguments::RecordDetail;
use crate::time_text;

/// Returns the text of a message at a level of detail; `None` if it has none.
pub(super) fn entry_text(entry: &TranscriptEntry, detail: RecordDetail) -> Option<String> {
    let text = match entry {
        TranscriptEntry::Prompt(prompt) => parts_text(&prompt.parts),
        TranscriptEntry::Reply(reply) => reply_text(reply, detail),
        TranscriptEntry::Result { .. } if !detail.shows_tools() => return None,
        TranscriptEntry::Result { call, info, result } => {
            let heading = format!("result of {call} ({}), {}", info.title, result.status.as_str());
            format!("{heading}\n{}", parts_text(&result.for_model))
        }
    };
    (!text.is_empty()).then_some(text)
}

fn reply_text(reply: &Reply, detail: RecordDetail) -> String {
    let mut lines = Vec::new();
    if detail.shows_thoughts() && !reply.thought.is_empty() {
        lines.push(format!("(thought) {}", reply.thought));
    }
    if !reply.text.is_empty() {
        lines.push(reply.text.clone());
    }
    if detail.shows_tools() {
        for call in &reply.calls {
            let arguments = Value::Object(call.arguments.to_object());
            lines.push(format!("{}: {} {arguments}", call.id, call.name));
        }
    }
    match &reply.end {
        ReplyEnd::Complete => {}
        ReplyEnd::OutputLimit => lines.push("(cut by the output limit)".to_owned()),
        ReplyEnd::SizeLimit => lines.push("(cut by Crow at 16 MiB)".to_owned()),
        ReplyEnd::Refused => lines.push("(withheld by the provider)".to_owned()),
        ReplyEnd::Cancelled => lines.push("(stopped by the person)".to_owned()),
        ReplyEnd::Failed(failure) => lines.push(format!("(failed: {failure})")),
    }
    lines.join("\n")
}

fn parts_text(parts: &[ContentPart]) -> String {
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

fn speaker_label(entry: &TranscriptEntry) -> &'static str {
    match entry {
        TranscriptEntry::Prompt(_) => "user",
        TranscriptEntry::Reply(_) => "assistant",
        TranscriptEntry::Result { .. } => "tool",
    }
}

/// Renders a message with its heading, from a character on and up to a length; `None` if the text ends before.
pub(super) fn render_message(
    message: &StoredMessage,
    text: &str,
    start: usize,
    chars_max: usize,
) -> Option<String> {
    let StoredMessage { seq, entry, created } = message;
    let mut record = message_heading(*seq, speaker_label(entry), *created);
    let remaining = text.char_indices().nth(start).map(|(at, _)| &text[at..])?;
    let visible = remaining.char_indices().nth(chars_max).map_or(remaining, |(at, _)| &remaining[..at]);
    for line in visible.lines() {
        record.push_str(format!("  {line}").trim_end());
        record.push('\n');
    }
    if visible.len() < remaining.len() {
        let n_more = remaining[visible.len()..].chars().count();
        let after = seq.checked_sub(1).map(|after| format!("after={after}, ")).unwrap_or_default();
        let (before, next_start) = (seq + 1, start + chars_max);
        record +=
            &format!("  (… {n_more} more characters: {after}before={before}, start_index={next_start})\n");
    }
    Some(record)
}

fn message_heading(seq: u64, speaker: &str, created: Timestamp) -> String {
    format!("[{seq}] {speaker}, {}\n", time_text::format_minute(created))
}
