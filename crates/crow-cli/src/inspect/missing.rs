//! What to say of a session that is not there.

use crow_core::{SessionId, nearest_name};
use crow_store::{CreatorFilter, ListQuery, Store};

use crate::failure::CliError;

/// Sessions looked at; whoever mistypes a name has seen it lately.
const LOOKED_AT: u32 = 500;
/// Names that begin alike and are all shown.
const SHOWN: usize = 3;
/// Fewer letters could begin anything.
const BEGINNING_LEN: usize = 3;

/// Says that a session is not there, and which one was probably meant.
pub(crate) async fn unknown_session_error(store: &Store, id: &SessionId) -> CliError {
    let exit = CliError::no_session(id.as_str());
    let query = ListQuery { cwd: None, begun_by: CreatorFilter::Anyone, before: None, limit: LOOKED_AT };
    let Ok(rows) = store.list_sessions(query).await else {
        return exit;
    };
    let ids = || rows.iter().map(|row| row.id.as_str());
    let begins = |other: &&str| id.as_str().len() >= BEGINNING_LEN && other.starts_with(id.as_str());
    let mut meant: Vec<&str> = ids().filter(begins).take(SHOWN).collect();
    if meant.is_empty() {
        meant.extend(nearest_name(id.as_str(), ids()));
    }
    match meant.is_empty() {
        true => exit,
        false => exit.with_hint(format!("did you mean {}?", meant.join(" or "))),
    }
}
