//! `crow-cli sessions`: lists and deletes sessions. Nothing is deleted without confirmation.

mod age;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, IsTerminal, Write};

use crow_core::SessionId;
use crow_store::{DatabaseAddress, SessionRow, Store, StoreError, Timestamp};
use serde_json::json;

pub(crate) use self::age::SessionAge;
use crate::{
    cli::{DeleteArgs, DeleteOptions, InspectArgs, PruneArgs, SessionsSubcommand},
    database::store_options,
    failure::{CliError, CliExitCode},
    inspect, table,
};

/// The user's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfirmAnswer {
    Yes,
    No,
    /// There is no terminal to ask on.
    Unavailable,
}

/// Asks on the terminal.
pub(crate) fn ask_confirmation(question: &str) -> io::Result<ConfirmAnswer> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(ConfirmAnswer::Unavailable);
    }
    let mut err = io::stderr().lock();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    // Input typed before the question must not answer it.
    crow_process::discard_input(&io::stdin())?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let is_yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
    Ok(if is_yes { ConfirmAnswer::Yes } else { ConfirmAnswer::No })
}

/// Runs a subcommand on the sessions of a database.
pub(crate) async fn run(
    command: &SessionsSubcommand,
    database: &DatabaseAddress,
    now: Timestamp,
    confirm: impl Fn(&str) -> io::Result<ConfirmAnswer>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let (options, selection, is_dry_run) = match command {
        SessionsSubcommand::List { limit, all, json } => {
            let args = InspectArgs { limit: *limit, all: *all, json: *json, ..InspectArgs::default() };
            return inspect::run(&args, database, now, out).await;
        }
        SessionsSubcommand::Prune(PruneArgs { older_than, dry_run, options }) => {
            let selection = match store_options().open_existing(database).await? {
                Some(store) => Some((store.sessions_older_than(older_than.cutoff_time(now)).await?, store)),
                None => None,
            };
            (options, selection, *dry_run)
        }
        SessionsSubcommand::Delete(DeleteArgs { sessions, options }) => {
            let Some(store) = store_options().open_existing(database).await? else {
                return Err(CliError::no_session(&sessions[0]));
            };
            (options, Some((find_sessions(&store, sessions).await?, store)), false)
        }
    };
    let Some((rows, store)) = selection.filter(|(rows, _)| !rows.is_empty()) else {
        return match options.json {
            true => DeleteReport::default().print_report(options, out),
            false => Ok(writeln!(out, "no session is that old; nothing was deleted")?),
        };
    };
    if !options.json {
        inspect::write_session_table(&rows, now, out)?;
        out.flush()?;
    }
    if is_dry_run {
        return DeleteReport { would_delete: rows, ..DeleteReport::default() }.print_report(options, out);
    }
    confirm_deletion(options, rows.len(), confirm)?;
    let before = database_size(database);
    let busy = match command {
        SessionsSubcommand::Prune(_) => BusySessions::Skip,
        SessionsSubcommand::Delete(_) | SessionsSubcommand::List { .. } => BusySessions::Fail,
    };
    let mut report = delete_sessions(&store, rows, busy).await?;
    store.close().await?;
    if !report.deleted.is_empty() {
        report.freed =
            before.zip(database_size(database)).map(|(before, after)| before.saturating_sub(after));
    }
    report.print_report(options, out)
}

/// Finds the given sessions, each once.
async fn find_sessions(store: &Store, ids: &[String]) -> Result<Vec<SessionRow>, CliError> {
    let mut rows: Vec<SessionRow> = Vec::new();
    for id in ids {
        let id = SessionId::new(id.as_str());
        match store.session_tree(&id).await?.into_iter().next() {
            Some(row) if rows.iter().all(|other| other.id != row.id) => rows.push(row),
            Some(_) => {}
            None => return Err(inspect::unknown_session_error(store, &id).await),
        }
    }
    Ok(rows)
}

fn confirm_deletion(
    options: &DeleteOptions,
    n_rows: usize,
    confirm: impl Fn(&str) -> io::Result<ConfirmAnswer>,
) -> Result<(), CliError> {
    if options.yes {
        return Ok(());
    }
    let question = match n_rows {
        1 => "Delete this session and the sessions it started?".to_owned(),
        n_rows => format!("Delete these {n_rows} sessions and the sessions they started?"),
    };
    // With JSON output, the list to confirm is not shown.
    let answer = if options.json { ConfirmAnswer::Unavailable } else { confirm(&question)? };
    match answer {
        ConfirmAnswer::Yes => Ok(()),
        ConfirmAnswer::No => Err(CliError::new(CliExitCode::Failed, "nothing was deleted")),
        ConfirmAnswer::Unavailable => {
            let error = CliError::new(
                CliExitCode::Denied,
                "there is no terminal to ask for confirmation, so nothing was deleted",
            );
            Err(error.with_hint("confirm with -y"))
        }
    }
}

/// Handling of sessions that run in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BusySessions {
    Fail,
    Skip,
}

async fn delete_sessions(
    store: &Store,
    mut rows: Vec<SessionRow>,
    busy: BusySessions,
) -> Result<DeleteReport, CliError> {
    let mut busy_sessions = Vec::new();
    loop {
        let ids: Vec<SessionId> = rows.iter().map(|row| row.id.clone()).collect();
        match store.prune_sessions(ids).await {
            Ok(_) => return Ok(DeleteReport { deleted: rows, busy_sessions, ..DeleteReport::default() }),
            Err(StoreError::Busy { session, .. })
                if busy == BusySessions::Skip && rows.iter().any(|row| row.id == session) =>
            {
                rows.retain(|row| row.id != session);
                busy_sessions.push(session);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The result of a deletion.
#[derive(Debug, Default)]
struct DeleteReport {
    deleted: Vec<SessionRow>,
    /// Sessions that a dry run would delete.
    would_delete: Vec<SessionRow>,
    busy_sessions: Vec<SessionId>,
    /// Bytes freed on disk, if known.
    freed: Option<u64>,
}

impl DeleteReport {
    fn print_report(&self, options: &DeleteOptions, out: &mut impl Write) -> Result<(), CliError> {
        let Self { deleted, would_delete, busy_sessions, freed } = self;
        if options.json {
            let ids = |rows: &[SessionRow]| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
            let busy_sessions: Vec<&str> = busy_sessions.iter().map(SessionId::as_str).collect();
            let document = json!({
                "deleted": ids(deleted), "would_delete": ids(would_delete), "at_work": busy_sessions, "freed_bytes": freed,
            });
            return Ok(writeln!(out, "{}", table::json_line(&document))?);
        }
        for session in busy_sessions {
            writeln!(out, "skipped {session}, which is running in another process")?;
        }
        if !would_delete.is_empty() {
            return Ok(writeln!(out, "would delete {}", describe_count(would_delete))?);
        }
        // Rows that were only in the write-ahead log freed no space in the file.
        let freed = freed.filter(|&bytes| bytes > 0).map(|bytes| format!("; {} freed", format_bytes(bytes)));
        Ok(writeln!(out, "deleted {}{}", describe_count(deleted), freed.unwrap_or_default())?)
    }
}

fn describe_count(rows: &[SessionRow]) -> String {
    let n_messages: u64 = rows.iter().map(|row| row.n_messages).sum();
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let n_rows = rows.len() as u64;
    format!("{n_rows} session{} with {n_messages} message{}", plural(n_rows), plural(n_messages))
}

/// Returns the size of a database file; a server's disk is not ours to measure.
fn database_size(database: &DatabaseAddress) -> Option<u64> {
    match database {
        // The size of the write-ahead log depends on other readers.
        DatabaseAddress::File(path) => std::fs::metadata(path).ok().map(|file| file.len()),
        DatabaseAddress::Server { .. } => None,
    }
}

fn format_bytes(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}
