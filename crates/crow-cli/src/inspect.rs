//! `crow-cli inspect`: shows the store's content. Read-only; a missing store counts as empty.

mod compactions;
mod export;
mod format;
mod messages;
mod tasks;
#[cfg(test)]
mod tests;
mod tree;
mod unknown_session;

use std::io::Write;

use crow_core::{SessionId, TranscriptEntry};
use crow_store::{
    CreatorFilter, DatabaseAddress, ListQuery, LoadedSession, SearchHit, SearchQuery, SessionRow, Store,
    TaskRow, Timestamp,
};
use serde_json::{Value, json};

use self::format::{format_age, iso_timestamp, short_title};
pub(crate) use self::{
    format::{session_json, usage_json},
    unknown_session::unknown_session_error,
};
use crate::{cli::InspectArgs, database::store_options, failure::CliError, money, table};

/// One screen of sessions or search results.
const ROWS: u32 = 20;

/// Shows sessions, one session, its messages, or search results.
pub(crate) async fn run(
    args: &InspectArgs,
    database: &DatabaseAddress,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let Some(store) = store_options().open_existing(database).await? else {
        return show_empty(args, now, out);
    };
    let limit = args.limit.unwrap_or(ROWS);
    let session = args.session.as_deref().map(SessionId::new);
    if let Some(text) = &args.search {
        if let Some(id) = &session {
            find_session(&store, id).await?;
        }
        let query = SearchQuery { text: text.clone(), session, limit, offset: 0 };
        return show_hits(args, &store.search_messages(query).await?, out);
    }
    let Some(id) = session else {
        // Trees are ordered by the latest message of any of their sessions.
        let creator = if args.all || args.tree { CreatorFilter::Any } else { CreatorFilter::User };
        let rows = store.list_sessions(ListQuery { cwd: None, creator, before: None, limit }).await?;
        return match args.tree {
            true => tree::show_trees(args, &store, &rows, now, out).await,
            false => show_sessions(args, &rows, now, out),
        };
    };
    let row = find_session(&store, &id).await?;
    if args.tree {
        return tree::show_tree(args, &store, &id, now, out).await;
    }
    if args.messages {
        return messages::show_messages(args, &store, &row, out).await;
    }
    let mut stored = store.load_session(&id).await?.ok_or_else(|| CliError::no_session(id.as_str()))?;
    stored.entries.extend(stored.unfinished_reply.take().map(TranscriptEntry::Reply));
    match args.export {
        Some(format) => export::write_export(format, &store, &stored, out).await,
        None => {
            let task = match store.find_task(&id).await? {
                Some(task) => Some(tasks::refresh_task_state(&store, task).await),
                None => None,
            };
            show_overview(args, &stored, task.as_ref(), now, out)
        }
    }
}

/// Shows an empty result if there is no store.
fn show_empty(args: &InspectArgs, now: Timestamp, out: &mut impl Write) -> Result<(), CliError> {
    match (&args.session, &args.search) {
        (Some(id), _) => Err(CliError::no_session(id)),
        (None, Some(_)) => show_hits(args, &[], out),
        (None, None) => show_sessions(args, &[], now, out),
    }
}

/// Finds a session, or suggests a similar name.
async fn find_session(store: &Store, id: &SessionId) -> Result<SessionRow, CliError> {
    match store.session_tree(id).await?.into_iter().next() {
        Some(row) => Ok(row),
        None => Err(unknown_session_error(store, id).await),
    }
}

fn show_sessions(
    args: &InspectArgs,
    rows: &[SessionRow],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    if args.json {
        let rows: Vec<Value> = rows.iter().map(session_json).collect();
        return Ok(writeln!(out, "{}", table::json_line(&json!({ "sessions": rows })))?);
    }
    write_session_table(rows, now, out)
}

/// Writes sessions as a table.
pub(crate) fn write_session_table(
    rows: &[SessionRow],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    if rows.is_empty() {
        return Ok(writeln!(out, "no sessions yet")?);
    }
    let header = ["SESSION", "UPDATED", "MESSAGES", "MODEL", "TITLE", "DIRECTORY"].map(str::to_owned);
    let lines = rows.iter().map(|row| {
        let n_messages = row.n_messages.to_string();
        let (age, title) = (format_age(row.updated, now), short_title(row));
        [row.id.to_string(), age, n_messages, row.model.clone(), title, row.cwd.clone()]
    });
    Ok(table::write_table(out, std::iter::once(header).chain(lines))?)
}

fn show_overview(
    args: &InspectArgs,
    stored: &LoadedSession,
    task: Option<&TaskRow>,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    if args.json {
        let document = json!({
            "session": session_json(&stored.session),
            "task": tasks::task_json(task),
            "compactions": stored.compactions.iter().map(compactions::compaction_json).collect::<Vec<_>>(),
            "usage": usage_json(stored.total_usage()),
        });
        return Ok(writeln!(out, "{}", table::json_line(&document))?);
    }
    let row = &stored.session;
    let mut lines = vec![
        ("session", row.id.to_string()),
        ("title", row.title.clone().unwrap_or_else(|| "-".to_owned())),
        ("directory", row.cwd.clone()),
        ("model", row.model.clone()),
        ("mode", row.mode.as_str().to_owned()),
        ("messages", row.n_messages.to_string()),
        ("created", format_age(row.created, now)),
        ("updated", format_age(row.updated, now)),
    ];
    let usage = stored.total_usage();
    if usage.total_tokens() > 0 {
        lines.push(("tokens", format!("{} input, {} output", usage.input, usage.output)));
    }
    lines.extend(usage.cost.map(|cost| ("cost", money::format_dollars(cost))));
    lines.extend(row.parent.as_ref().map(|parent| ("child of", parent.to_string())));
    if row.parent.is_some() || row.agent_type.is_some() {
        lines.push(("agent", tasks::agent_name(row).to_owned()));
    }
    lines.extend(row.agent_session_id.as_ref().map(|name| ("agent session", name.clone())));
    lines.extend(task.map(|task| ("task", tasks::describe_task(task))));
    lines.extend(task.and_then(|task| task.branch.clone()).map(|branch| ("branch", branch)));
    lines.extend(row.forked_from.as_ref().map(|origin| ("copy of", origin.to_string())));
    lines.extend(
        stored
            .compactions
            .iter()
            .map(|compaction| ("compacted", compactions::describe_compaction(compaction))),
    );
    Ok(table::write_table(out, lines.into_iter().map(|(label, value)| [label.to_owned(), value]))?)
}

fn show_hits(args: &InspectArgs, hits: &[SearchHit], out: &mut impl Write) -> Result<(), CliError> {
    if args.json {
        let hits = hits.iter().map(|hit| {
            json!({
                "session": hit.session.as_str(), "seq": hit.seq, "role": hit.role.as_str(),
                "created": iso_timestamp(hit.created), "snippet": hit.snippet,
            })
        });
        let document = json!({ "hits": hits.collect::<Vec<_>>() });
        return Ok(writeln!(out, "{}", table::json_line(&document))?);
    }
    if hits.is_empty() {
        return Ok(writeln!(out, "no matches")?);
    }
    let header = ["SESSION", "MESSAGE", "TEXT"].map(str::to_owned);
    let rows =
        hits.iter().map(|hit| [hit.session.to_string(), format!("msg-{}", hit.seq), hit.snippet.clone()]);
    Ok(table::write_table(out, std::iter::once(header).chain(rows))?)
}
