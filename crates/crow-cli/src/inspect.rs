//! `crow-cli inspect`: what is in the store. Reads only; a store that is not there is an empty one.

#[cfg(test)]
mod tests;

use std::io::Write;

use crow_core::{Entry, Outcome, Part, SessionId};
use crow_store::{Address, Hit, ListQuery, SearchQuery, SessionRow, Store, Stored, Timestamp};
use serde_json::{Value, json};

use crate::{cli::InspectArgs, failure::Exit, table};

/// A screen of sessions or hits.
const ROWS: u32 = 20;
/// Titles are a few words; longer ones would push the other columns off the screen.
const TITLE_LEN: usize = 48;

/// Shows sessions, one session, its messages, or what a search finds.
pub(crate) async fn run(
    args: &InspectArgs,
    database: &Address,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let store = Store::open_existing(database).await?;
    if let Some(id) = &args.session {
        let stored = match &store {
            Some(store) => store.load(&SessionId::new(id)).await?,
            None => None,
        };
        let stored = stored.ok_or_else(|| Exit::no_session(id))?;
        return session(args, &stored, now, out);
    }
    let limit = args.limit.unwrap_or(ROWS);
    if let Some(text) = &args.search {
        let query = SearchQuery { text: text.clone(), session: None, limit, offset: 0 };
        let hits = match &store {
            Some(store) => store.search(query).await?,
            None => Vec::new(),
        };
        return found(args, &hits, out);
    }
    let rows = match &store {
        Some(store) => store.list(ListQuery { cwd: None, before: None, limit }).await?,
        None => Vec::new(),
    };
    sessions(args, &rows, now, out)
}

fn sessions(
    args: &InspectArgs,
    rows: &[SessionRow],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), Exit> {
    if args.json {
        let rows: Vec<Value> = rows.iter().map(session_json).collect();
        return Ok(writeln!(out, "{}", json!({ "sessions": rows }))?);
    }
    if rows.is_empty() {
        return Ok(writeln!(out, "no sessions yet")?);
    }
    let header = ["SESSION", "UPDATED", "MESSAGES", "MODEL", "TITLE", "FOLDER"].map(str::to_owned);
    let lines = rows.iter().map(|row| {
        let title: String = row.title.as_deref().unwrap_or("-").chars().take(TITLE_LEN).collect();
        let n_messages = row.n_messages.to_string();
        [row.id.to_string(), age(row.updated, now), n_messages, row.model.clone(), title, row.cwd.clone()]
    });
    Ok(table::write(out, std::iter::once(header).chain(lines))?)
}

fn session(args: &InspectArgs, stored: &Stored, now: Timestamp, out: &mut impl Write) -> Result<(), Exit> {
    let messages = last(&stored.entries, args.limit);
    if args.json {
        let mut document = json!({ "session": session_json(&stored.session) });
        if args.messages {
            document["messages"] = messages.iter().map(message_json).collect();
        }
        return Ok(writeln!(out, "{document}")?);
    }
    if args.messages {
        for entry in messages {
            message(entry, out)?;
        }
        return Ok(());
    }
    let row = &stored.session;
    let lines = [
        ("session", row.id.to_string()),
        ("title", row.title.clone().unwrap_or_else(|| "-".to_owned())),
        ("folder", row.cwd.clone()),
        ("model", row.model.clone()),
        ("mode", row.mode.as_str().to_owned()),
        ("messages", row.n_messages.to_string()),
        ("created", age(row.created, now)),
        ("updated", age(row.updated, now)),
    ];
    Ok(table::write(out, lines.into_iter().map(|(label, value)| [label.to_owned(), value]))?)
}

/// Takes the end of a conversation, where what matters is.
fn last(entries: &[Entry], limit: Option<u32>) -> &[Entry] {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    &entries[entries.len().saturating_sub(limit)..]
}

fn message(entry: &Entry, out: &mut impl Write) -> Result<(), Exit> {
    match entry {
        Entry::Prompt(prompt) => {
            writeln!(out, "user {}", prompt.id)?;
            indented(&parts_text(&prompt.parts), out)?;
        }
        Entry::Reply(reply) => {
            writeln!(out, "assistant {}", reply.id)?;
            indented(&reply.text, out)?;
            for call in &reply.calls {
                let arguments = Value::Object(call.arguments.object());
                writeln!(out, "  {} {} {}", call.id, table::plain(&call.name), arguments)?;
            }
        }
        Entry::Result { call, facets, outcome } => {
            writeln!(out, "tool {call}: {} ({})", table::plain(&facets.title), outcome.status.as_str())?;
            indented(&parts_text(&outcome.for_model), out)?;
        }
    }
    Ok(writeln!(out)?)
}

fn indented(text: &str, out: &mut impl Write) -> Result<(), Exit> {
    for line in text.lines() {
        let line = table::plain(&line.replace('\t', "    "));
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    Ok(())
}

fn parts_text(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image { mime, .. } => format!("[image {mime}]"),
        Part::Link { uri, .. } => format!("[{uri}]"),
        Part::Resource { uri, text, .. } => format!("[{uri}]\n{text}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn found(args: &InspectArgs, hits: &[Hit], out: &mut impl Write) -> Result<(), Exit> {
    if args.json {
        let hits = hits
            .iter()
            .map(|hit| json!({ "session": hit.session.as_str(), "seq": hit.seq, "snippet": hit.snippet }));
        return Ok(writeln!(out, "{}", json!({ "hits": hits.collect::<Vec<_>>() }))?);
    }
    if hits.is_empty() {
        return Ok(writeln!(out, "nothing found")?);
    }
    let header = ["SESSION", "MESSAGE", "TEXT"].map(str::to_owned);
    let rows =
        hits.iter().map(|hit| [hit.session.to_string(), format!("msg-{}", hit.seq), hit.snippet.clone()]);
    Ok(table::write(out, std::iter::once(header).chain(rows))?)
}

fn session_json(row: &SessionRow) -> Value {
    json!({
        "id": row.id.as_str(),
        "title": row.title,
        "cwd": row.cwd,
        "model": row.model,
        "mode": row.mode.as_str(),
        "messages": row.n_messages,
        "created": written(row.created),
        "updated": written(row.updated),
        "parent": row.parent.as_ref().map(SessionId::as_str),
    })
}

fn message_json(entry: &Entry) -> Value {
    match entry {
        Entry::Prompt(prompt) => {
            json!({ "role": "user", "id": prompt.id.as_str(), "text": parts_text(&prompt.parts) })
        }
        Entry::Reply(reply) => {
            let calls = reply.calls.iter().map(|call| {
                json!({ "id": call.id.to_string(), "name": call.name, "arguments": call.arguments.object() })
            });
            let calls: Vec<Value> = calls.collect();
            let (id, thought) = (reply.id.as_str(), &reply.thought);
            json!({ "role": "assistant", "id": id, "thought": thought, "text": reply.text, "calls": calls })
        }
        Entry::Result { call, facets, outcome: Outcome { status, for_model, .. } } => json!({
            "role": "tool",
            "call": call.to_string(),
            "title": facets.title,
            "status": status.as_str(),
            "text": parts_text(for_model),
        }),
    }
}

/// Spells a time for scripts.
fn written(time: Timestamp) -> Option<String> {
    jiff::Timestamp::from_millisecond(time.0).ok().map(|time| time.to_string())
}

/// Says how long ago something was, in its largest whole unit.
fn age(time: Timestamp, now: Timestamp) -> String {
    let seconds = (now.0 - time.0) / 1000;
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "yesterday".to_owned(),
        172_800.. => format!("{} days ago", seconds / 86_400),
    }
}
