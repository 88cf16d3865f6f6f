//! The error for an unknown session.

use crow_core::{SessionId, nearest_name};
use crow_store::{CreatorFilter, ListQuery, Store};

use crate::failure::CliError;

/// Sessions searched for a similar name; a mistyped one is usually recent.
const SESSIONS_MAX: u32 = 500;
/// Suggestions shown.
const SUGGESTIONS_MAX: usize = 3;
/// Shorter prefixes match too much.
const PREFIX_LEN_MIN: usize = 3;

/// Returns the error for an unknown session, with suggestions.
pub(crate) async fn unknown_session_error(store: &Store, id: &SessionId) -> CliError {
    let error = CliError::no_session(id.as_str());
    let query = ListQuery { cwd: None, creator: CreatorFilter::Any, before: None, limit: SESSIONS_MAX };
    let Ok(rows) = store.list_sessions(query).await else {
        return error;
    };
    let ids = || rows.iter().map(|row| row.id.as_str());
    let has_prefix = |other: &&str| id.as_str().len() >= PREFIX_LEN_MIN && other.starts_with(id.as_str());
    let mut suggestions: Vec<&str> = ids().filter(has_prefix).take(SUGGESTIONS_MAX).collect();
    if suggestions.is_empty() {
        suggestions.extend(nearest_name(id.as_str(), ids()));
    }
    match suggestions.is_empty() {
        true => error,
        false => error.with_hint(format!("did you mean {}?", suggestions.join(" or "))),
    }
}
