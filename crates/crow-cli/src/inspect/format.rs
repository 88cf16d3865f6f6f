//! Forms of sessions, usage and times that several views share.

use crow_core::{SessionId, TokenUsage};
use crow_store::{SessionRow, Timestamp};
use serde_json::{Value, json};

use crate::money;

/// Longer titles would push the other columns off the screen.
const TITLE_LEN: usize = 48;

/// JSON of a session.
pub(crate) fn session_json(row: &SessionRow) -> Value {
    json!({
        "id": row.id.as_str(),
        "title": row.title,
        "cwd": row.cwd,
        "model": row.model,
        "mode": row.mode.as_str(),
        "thought_level": row.thought_level.as_str(),
        "messages": row.n_messages,
        "created": iso_timestamp(row.created),
        "updated": iso_timestamp(row.updated),
        "parent": row.parent.as_ref().map(SessionId::as_str),
        "agent_type": row.agent_type_name(),
        "agent_session_id": row.agent_session_id,
        "forked_from": row.forked_from.as_ref().map(SessionId::as_str),
        // Keys of the Python version.
        "session_id": row.id.as_str(),
        "model_identifier": row.model,
        "message_count": row.n_messages,
        "created_at": iso_timestamp(row.created),
    })
}

/// JSON of token counts and their cost in US dollars.
pub(crate) fn usage_json(usage: TokenUsage) -> Value {
    let TokenUsage { input, output, cached, cache_written, cost } = usage;
    json!({
        "input": input, "output": output, "cached": cached, "cache_written": cache_written,
        "cost": cost.map(money::to_dollars),
    })
}

/// Formats a time as ISO 8601.
pub(super) fn iso_timestamp(time: Timestamp) -> Option<String> {
    jiff::Timestamp::from_millisecond(time.0).ok().map(|time| time.to_string())
}

/// Formats a time's age in its largest whole unit.
pub(super) fn format_age(time: Timestamp, now: Timestamp) -> String {
    let seconds = (now.0 - time.0) / 1000;
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "yesterday".to_owned(),
        172_800.. => format!("{} days ago", seconds / 86_400),
    }
}

/// Returns the title of a session, cut to the width of its column.
pub(super) fn short_title(row: &SessionRow) -> String {
    row.title.as_deref().unwrap_or("-").chars().take(TITLE_LEN).collect()
}
