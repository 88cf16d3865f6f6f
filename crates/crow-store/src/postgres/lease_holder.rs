//! The process that holds a lease, which is a lock of its connection.

use super::{connection::ServerConnection, errors::PostgresError};
use crate::LeaseHolder;

/// The name of a connection is this and the process ID of its client.
const PROCESS_NAME: &str = "crow process ";
/// Each time another process released it in between; that many in a row do not happen.
const ATTEMPTS_MAX: usize = 16;
const FIND_HOLDER: &str =
    "SELECT a.application_name, a.client_addr::text, a.client_addr IS NOT DISTINCT FROM inet_client_addr()
     FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.locktype = 'advisory' AND l.granted
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND ((l.classid::bigint << 32) | l.objid::bigint) = $1";

/// Returns the name that the connections of this process have at the server.
pub(super) fn own_process_name() -> String {
    format!("{PROCESS_NAME}{}", std::process::id())
}

/// Acquires a lock, or returns its holder.
pub(super) fn acquire_lock(
    connection: &mut ServerConnection,
    lock_id: i64,
) -> Result<Option<LeaseHolder>, PostgresError> {
    for _ in 0..ATTEMPTS_MAX {
        let acquired = connection.query_opt("SELECT pg_try_advisory_lock($1)", &[&lock_id])?;
        if acquired.is_some_and(|row| row.get(0)) {
            return Ok(None);
        }
        if let Some(holder) = find_holder(connection, lock_id)? {
            return Ok(Some(holder));
        }
    }
    Ok(Some(LeaseHolder::unknown_process("one that has just ended")))
}

/// Finds the holder of a lock, as far as the server tells.
fn find_holder(
    connection: &mut ServerConnection,
    lock_id: i64,
) -> Result<Option<LeaseHolder>, PostgresError> {
    let Some(row) = connection.query_opt(FIND_HOLDER, &[&lock_id])? else { return Ok(None) };
    let (name, address): (Option<String>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    let has_own_address: bool = row.try_get(2)?;
    let Some(name) = name else { return Ok(Some(LeaseHolder::unknown_process("an unknown one"))) };
    // Another machine may share the address, so this is a guess.
    let pid = name.strip_prefix(PROCESS_NAME).filter(|_| has_own_address).and_then(|pid| pid.parse().ok());
    if pid == Some(std::process::id()) {
        return Ok(Some(LeaseHolder::ThisProcess));
    }
    let address = address.map(|address| format!(" at {address}")).unwrap_or_default();
    Ok(Some(LeaseHolder::OtherProcess { description: format!("{name}{address}"), pid }))
}
