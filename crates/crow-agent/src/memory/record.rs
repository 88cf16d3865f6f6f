//! How a message stands in a record. Every line of what was said is indented, so that no text can pass for the
//! heading of another message.

use crow_core::{Ended, Entry, Part, Reply};
use crow_store::{Message, Timestamp};
use serde_json::Value;

use super::asked::Detail;
use crate::clock;

/// Tells what a message says, as much of it as is wanted; nothing when none of it is.
pub(super) fn text(entry: &Entry, detail: Detail) -> Option<String> {
    let text = match entry {
        Entry::Prompt(prompt) => parts(&prompt.parts),
        Entry::Reply(reply) => said(reply, detail),
        Entry::Result { .. } if !detail.tools() => return None,
        Entry::Result { call, facets, outcome } => {
            let head = format!("result of {call} ({}), {}", facets.title, outcome.status.as_str());
            format!("{head}\n{}", parts(&outcome.for_model))
        }
    };
    (!text.is_empty()).then_some(text)
}

fn said(reply: &Reply, detail: Detail) -> String {
    let mut said = Vec::new();
    if detail.thoughts() && !reply.thought.is_empty() {
        said.push(format!("(thought) {}", reply.thought));
    }
    if !reply.text.is_empty() {
        said.push(reply.text.clone());
    }
    if detail.tools() {
        for call in &reply.calls {
            let arguments = Value::Object(call.arguments.object());
            said.push(format!("{}: {} {arguments}", call.id, call.name));
        }
    }
    match &reply.ended {
        Ended::Normally => {}
        Ended::OutputLimit => said.push("(cut by the output limit)".to_owned()),
        Ended::SizeLimit => said.push("(cut by Crow at 16 MiB)".to_owned()),
        Ended::Refused => said.push("(withheld by the provider)".to_owned()),
        Ended::Cancelled => said.push("(stopped by the person)".to_owned()),
        Ended::Failed(failure) => said.push(format!("(failed: {failure})")),
    }
    said.join("\n")
}

fn parts(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image { mime, .. } => format!("[image {mime}]"),
        Part::Link { uri, .. } => format!("[{uri}]"),
        Part::Resource { uri, text, .. } => format!("[{uri}]\n{text}"),
        Part::FromCrow { what, text } => format!("[added by Crow: {what}]\n{text}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn who(entry: &Entry) -> &'static str {
    match entry {
        Entry::Prompt(_) => "user",
        Entry::Reply(_) => "assistant",
        Entry::Result { .. } => "tool",
    }
}

/// Writes a message down with its heading, from a character on and not longer than this; nothing when it ends before.
pub(super) fn written(message: &Message, text: &str, start: usize, chars_max: usize) -> Option<String> {
    let Message { seq, entry, created } = message;
    let mut record = heading(*seq, who(entry), *created);
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

fn heading(seq: u64, who: &str, created: Timestamp) -> String {
    format!("[{seq}] {who}, {}\n", clock::minute(created))
}
