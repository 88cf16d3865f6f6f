//! Connections without an answer, which are ended at the server: it still holds their leases.

use std::sync::{Mutex, PoisonError};

use super::{connection::ServerConnection, errors::PostgresError};

/// Lost connections that are remembered until the next one; a process has a few stores at most.
const REMEMBERED_MAX: usize = 16;
/// Looks for a process of the server that was told to end, 50 ms apart.
const LOOKS_MAX: usize = 20;

/// The server's process for a connection. The system uses a process ID again, so the time of its start belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerProcess {
    pid: i32,
    start: i64,
}

/// The server's processes for lost connections to one address.
#[derive(Debug, Default)]
pub(super) struct LostConnections {
    processes: Mutex<Vec<ServerProcess>>,
}

impl ServerProcess {
    /// Returns the one of a connection; `None` if the server does not say.
    pub(super) fn of_connection(connection: &mut ServerConnection) -> Option<Self> {
        let sql = "SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint
             FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let row = connection.query_opt(sql, &[]).ok().flatten()?;
        Some(Self { pid: row.try_get(0).ok()?, start: row.try_get(1).ok()? })
    }

    /// Ends it from another connection, and waits a moment for that.
    fn end(self, connection: &mut ServerConnection) -> Result<(), PostgresError> {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2
               AND usename = current_user AND datname = current_database()";
        let mut is_there = connection.query_opt(end, &[&self.pid, &self.start])?.is_some();
        let look = "SELECT pg_sleep(0.05) FROM pg_stat_activity
             WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2";
        for _ in 0..LOOKS_MAX {
            if !is_there {
                break;
            }
            is_there = connection.query_opt(look, &[&self.pid, &self.start])?.is_some();
        }
        Ok(())
    }
}

impl LostConnections {
    /// Ends the server's processes of lost connections, so that their leases can be acquired again.
    pub(super) fn end_processes(&self, connection: &mut ServerConnection) {
        let processes = std::mem::take(&mut *self.processes.lock().unwrap_or_else(PoisonError::into_inner));
        for process in processes {
            if let Err(error) = process.end(connection) {
                tracing::debug!(%error, "the server's process for a lost connection was not ended");
                // The next connection can still do it, if this one was lost.
                self.remember(Some(process).filter(|_| connection.is_lost()));
            }
        }
    }

    /// Remembers the process of a lost connection.
    pub(super) fn remember(&self, process: Option<ServerProcess>) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        if processes.len() < REMEMBERED_MAX {
            processes.extend(process);
        }
    }
}

#[cfg(test)]
mod tests;
