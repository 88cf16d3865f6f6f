//! `crow-cli sessions`: lists sessions and deletes them. Nothing is deleted without a yes.

mod age;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, IsTerminal, Write};

use crow_core::SessionId;
use crow_store::{Address, SessionRow, Store, StoreError, Timestamp};
use serde_json::json;

pub(crate) use self::age::Age;
use crate::{
    cli::{DeleteArgs, Deleting, InspectArgs, PruneArgs, SessionsCommand},
    failure::{Code, Exit},
    inspect, table,
};

/// What a person says to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Yes,
    No,
    /// There is nobody to ask.
    Nothing,
}

/// Asks on the terminal.
pub(crate) fn ask_person(question: &str) -> io::Result<Said> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(Said::Nothing);
    }
    let mut err = io::stderr().lock();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    // What was typed before it was there is no answer to it.
    crow_process::drop_input(&io::stdin())?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let is_yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
    Ok(if is_yes { Said::Yes } else { Said::No })
}

/// Does what is wanted with the sessions of a database.
pub(crate) async fn run(
    command: &SessionsCommand,
    (database, now): (&Address, Timestamp),
    ask: impl Fn(&str) -> io::Result<Said>,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let (how, found, is_dry) = match command {
        SessionsCommand::List { limit, all, json } => {
            let args = InspectArgs { limit: *limit, all: *all, json: *json, ..InspectArgs::default() };
            return inspect::run(&args, database, now, out).await;
        }
        SessionsCommand::Prune(PruneArgs { older_than, dry_run, how }) => {
            let found = match Store::open_existing(database).await? {
                Some(store) => Some((store.older_than(older_than.before(now)).await?, store)),
                None => None,
            };
            (how, found, *dry_run)
        }
        SessionsCommand::Delete(DeleteArgs { sessions, how }) => {
            let Some(store) = Store::open_existing(database).await? else {
                return Err(Exit::no_session(&sessions[0]));
            };
            (how, Some((named(&store, sessions).await?, store)), false)
        }
    };
    let Some((rows, store)) = found.filter(|(rows, _)| !rows.is_empty()) else {
        return match how.json {
            true => Done::default().report(how, out),
            false => Ok(writeln!(out, "no session is that old; nothing was deleted")?),
        };
    };
    if !how.json {
        inspect::list(&rows, now, out)?;
        out.flush()?;
    }
    if is_dry {
        return Done { would: rows, ..Done::default() }.report(how, out);
    }
    agreed(how, rows.len(), ask)?;
    let before = size(database);
    let is_left_out = match command {
        SessionsCommand::Prune(_) => Busy::LeftOut,
        SessionsCommand::Delete(_) | SessionsCommand::List { .. } => Busy::Refused,
    };
    let mut done = delete(&store, rows, is_left_out).await?;
    store.close().await?;
    if !done.deleted.is_empty() {
        done.freed = before.zip(size(database)).map(|(before, after)| before.saturating_sub(after));
    }
    done.report(how, out)
}

/// Finds the sessions that were named, each once.
async fn named(store: &Store, ids: &[String]) -> Result<Vec<SessionRow>, Exit> {
    let mut rows: Vec<SessionRow> = Vec::new();
    for id in ids {
        let id = SessionId::new(id.as_str());
        match store.family(&id).await?.into_iter().next() {
            Some(row) if rows.iter().all(|other| other.id != row.id) => rows.push(row),
            Some(_) => {}
            None => return Err(inspect::missing(store, &id).await),
        }
    }
    Ok(rows)
}

fn agreed(how: &Deleting, n_rows: usize, ask: impl Fn(&str) -> io::Result<Said>) -> Result<(), Exit> {
    if how.yes {
        return Ok(());
    }
    let question = match n_rows {
        1 => "Delete this session and those it started?".to_owned(),
        n_rows => format!("Delete these {n_rows} sessions and those they started?"),
    };
    // A script that wants JSON shows no list to say yes to.
    let said = if how.json { Said::Nothing } else { ask(&question)? };
    match said {
        Said::Yes => Ok(()),
        Said::No => Err(Exit::new(Code::Failed, "nothing was deleted")),
        Said::Nothing => {
            let exit = Exit::new(Code::Denied, "nobody could be asked, so nothing was deleted");
            Err(exit.with_hint("say yes with -y"))
        }
    }
}

/// What to do about sessions at work elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Busy {
    Refused,
    LeftOut,
}

async fn delete(store: &Store, mut rows: Vec<SessionRow>, busy: Busy) -> Result<Done, Exit> {
    let mut at_work = Vec::new();
    loop {
        let ids: Vec<SessionId> = rows.iter().map(|row| row.id.clone()).collect();
        match store.prune(ids).await {
            Ok(_) => return Ok(Done { deleted: rows, at_work, ..Done::default() }),
            Err(StoreError::Busy { session, .. })
                if busy == Busy::LeftOut && rows.iter().any(|row| row.id == session) =>
            {
                rows.retain(|row| row.id != session);
                at_work.push(session);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
struct Done {
    deleted: Vec<SessionRow>,
    /// What would have been deleted.
    would: Vec<SessionRow>,
    at_work: Vec<SessionId>,
    /// Bytes of disk, where they can be counted.
    freed: Option<u64>,
}

impl Done {
    fn report(&self, how: &Deleting, out: &mut impl Write) -> Result<(), Exit> {
        let Self { deleted, would, at_work, freed } = self;
        if how.json {
            let ids = |rows: &[SessionRow]| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
            let at_work: Vec<&str> = at_work.iter().map(SessionId::as_str).collect();
            let document = json!({
                "deleted": ids(deleted), "would_delete": ids(would), "at_work": at_work, "freed_bytes": freed,
            });
            return Ok(writeln!(out, "{}", table::json(&document))?);
        }
        for session in at_work {
            writeln!(out, "left out {session}, which is at work in another process")?;
        }
        if !would.is_empty() {
            return Ok(writeln!(out, "would delete {}", counted(would))?);
        }
        // What was in the log only takes no room in the file before.
        let freed = freed.filter(|&bytes| bytes > 0).map(|bytes| format!("; {} freed", spelled(bytes)));
        Ok(writeln!(out, "deleted {}{}", counted(deleted), freed.unwrap_or_default())?)
    }
}

fn counted(rows: &[SessionRow]) -> String {
    let n_messages: u64 = rows.iter().map(|row| row.n_messages).sum();
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let n_rows = rows.len() as u64;
    format!("{n_rows} session{} with {n_messages} message{}", plural(n_rows), plural(n_messages))
}

/// Measures the file of a database; a server's disk is none of ours.
fn size(database: &Address) -> Option<u64> {
    match database {
        // What its log takes comes and goes with whoever reads.
        Address::File(path) => std::fs::metadata(path).ok().map(|file| file.len()),
        Address::Server { .. } => None,
    }
}

fn spelled(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}
