//! `crow-cli undo`: takes back what the last turn of a session did to files. Asks no model and needs no agent that runs.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use crow_agent::{TurnUndone, undo_turn};
use crow_core::SessionId;
use crow_store::{CreatorFilter, DatabaseAddress, ListQuery, SessionRow, Store};
use crow_tools::{UndoContext, UndoMode, UndoStatus, UndoneFile, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::UndoArgs,
    failure::{CliError, CliExitCode},
    inspect,
    table::sanitize_line,
};

/// Takes back, or shows, what the newest turn with something left did to files. What a conflict is about goes to `more`.
pub(crate) async fn run(
    args: &UndoArgs,
    (database, cwd): (&DatabaseAddress, &Path),
    out: &mut impl Write,
    more: &mut impl Write,
) -> Result<(), CliError> {
    let store = Store::open_existing(database).await?;
    let (store, session) = match (store, &args.session) {
        (Some(store), session) => {
            let row = find_session(&store, session.as_deref(), cwd).await?;
            (store, row)
        }
        (None, Some(id)) => return Err(CliError::no_session(id)),
        (None, None) => return Err(no_session_in(cwd)),
    };
    let workspace = Workspace::new(PathBuf::from(&session.cwd), &[], Vec::new());
    let cut = CancellationToken::new();
    let how = match args {
        UndoArgs { dry_run: true, .. } => UndoMode::Show,
        UndoArgs { skip: true, .. } => UndoMode::Skip,
        UndoArgs { .. } => UndoMode::Do,
    };
    let writer = store.acquire_session_lease(&session.id).await?;
    let undoing = UndoContext { workspace: &workspace, editor: None, cut: &cut, how };
    let undone = undo_turn(&store, &writer, undoing).await;
    store.release_session_lease(writer).await;
    let undone = undone?;
    // An undo that the power took back would look like an edit of somebody else.
    store.sync().await?;
    let files = undone.as_ref().map(|undone| undone.files.as_slice()).unwrap_or_default();
    match args.json {
        true => writeln!(out, "{}", undo_json(&session.id, undone.as_ref()))?,
        false if undone.is_none() => {
            writeln!(out, "nothing to undo in {}", session.id)?;
        }
        false if how == UndoMode::Skip && files.is_empty() => {
            writeln!(out, "nothing to skip in {}", session.id)?;
        }
        false => {
            for file in files {
                report_file(file, &workspace, how, (out, more))?;
            }
        }
    }
    out.flush()?;
    if files.iter().any(|file| file.done == UndoStatus::Conflict) {
        return Err(CliError::without_message(CliExitCode::Failed));
    }
    Ok(())
}

/// Finds the session that was named, or the newest one of this folder.
async fn find_session(store: &Store, named: Option<&str>, cwd: &Path) -> Result<SessionRow, CliError> {
    if let Some(id) = named {
        let id = SessionId::new(id);
        return match store.session_tree(&id).await?.into_iter().next() {
            Some(row) => Ok(row),
            None => Err(inspect::unknown_session_error(store, &id).await),
        };
    }
    let here = Some(cwd.display().to_string());
    let query = ListQuery { cwd: here, begun_by: CreatorFilter::Person, before: None, limit: 1 };
    store.list_sessions(query).await?.into_iter().next().ok_or_else(|| no_session_in(cwd))
}

fn no_session_in(cwd: &Path) -> CliError {
    let exit = CliError::new(CliExitCode::NoSession, format!("there is no session in {}", cwd.display()));
    exit.with_hint("`crow-cli inspect` lists the sessions; name one with -s")
}

fn report_file(
    file: &UndoneFile,
    workspace: &Workspace,
    how: UndoMode,
    (out, more): (&mut impl Write, &mut impl Write),
) -> Result<(), CliError> {
    let path = Path::new(&file.path);
    let root = workspace.roots().first().map_or(workspace.cwd(), PathBuf::as_path);
    let shown = sanitize_line(&path.strip_prefix(root).unwrap_or(path).display().to_string());
    let would = if how == UndoMode::Show { "would be " } else { "" };
    match file.done {
        UndoStatus::Restored => writeln!(out, "{shown}: {would}put back")?,
        UndoStatus::Removed => writeln!(out, "{shown}: {would}removed")?,
        UndoStatus::Already => writeln!(out, "{shown}: is as it was already")?,
        UndoStatus::Skipped => {
            let why = sanitize_line(file.why.as_deref().unwrap_or_default());
            writeln!(out, "{shown}: skipped, {why}; it stays as it is")?;
        }
        UndoStatus::Conflict => {
            let why = sanitize_line(file.why.as_deref().unwrap_or_default());
            writeln!(out, "{shown}: {would}left alone, {why}")?;
            // Whoever reads both sees them in their order.
            out.flush()?;
            for line in file.diff.iter().flat_map(|diff| diff.lines()) {
                writeln!(more, "    {}", sanitize_line(&line.replace('\t', "    ")).trim_end())?;
            }
        }
    }
    Ok(())
}

fn undo_json(session: &SessionId, undone: Option<&TurnUndone>) -> Value {
    let files = undone.map(|undone| undone.files.as_slice()).unwrap_or_default().iter();
    let files = files.map(|file| json!({ "path": file.path, "done": file.done.as_str(), "why": file.why }));
    json!({
        "session": session.as_str(),
        "turn": undone.map(|undone| undone.turn),
        "files": files.collect::<Vec<_>>(),
    })
}
