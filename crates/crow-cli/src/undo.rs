//! `crow-cli undo`: undoes the file changes of a session's last turn. Uses no model and no running agent.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use crow_core::{SessionId, undo::UndoMode};
use crow_history::{TurnUndone, undo_turn};
use crow_store::{CreatorFilter, DatabaseAddress, ListQuery, SessionRow, Store};
use crow_tools::{UndoContext, UndoStatus, UndoneFile, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::UndoArgs,
    database::store_options,
    failure::{CliError, CliExitCode},
    inspect,
    table::sanitize_line,
};

/// Undoes, or shows, the file changes of the newest turn that has any. Conflicts are written to `stderr`.
pub(crate) async fn run(
    args: &UndoArgs,
    database: &DatabaseAddress,
    cwd: &Path,
    out: &mut impl Write,
    stderr: &mut impl Write,
) -> Result<(), CliError> {
    let store = store_options().open_existing(database).await?;
    let (store, session) = match (store, &args.session) {
        (Some(store), session) => {
            let row = find_session(&store, session.as_deref(), cwd).await?;
            (store, row)
        }
        (None, Some(id)) => return Err(CliError::no_session(id)),
        (None, None) => return Err(no_session_in(cwd)),
    };
    let workspace = Workspace::new(PathBuf::from(&session.cwd), &[], Vec::new());
    let cancel = CancellationToken::new();
    let mode = match args {
        UndoArgs { dry_run: true, .. } => UndoMode::Preview,
        UndoArgs { skip: true, .. } => UndoMode::Skip,
        UndoArgs { .. } => UndoMode::Apply,
    };
    let lease = store.acquire_session_lease(&session.id).await?;
    let context = UndoContext { workspace: &workspace, editor: None, cancel: &cancel, mode };
    let undone = undo_turn(&store, &lease, context, crate::current_time()).await;
    store.release_session_lease(lease).await;
    let undone = undone?;
    // After a power failure, an unsynced undo would look like another program's edit.
    store.sync().await?;
    let files = undone.as_ref().map(|undone| undone.files.as_slice()).unwrap_or_default();
    match args.json {
        true => writeln!(out, "{}", undo_json(&session.id, undone.as_ref()))?,
        false if undone.is_none() => {
            writeln!(out, "nothing to undo in {}", session.id)?;
        }
        false if mode == UndoMode::Skip && files.is_empty() => {
            writeln!(out, "nothing to skip in {}", session.id)?;
        }
        false => {
            for file in files {
                report_file(file, &workspace, mode, out, stderr)?;
            }
        }
    }
    out.flush()?;
    if files.iter().any(|file| file.status == UndoStatus::Conflict) {
        return Err(CliError::without_message(CliExitCode::Failed));
    }
    Ok(())
}

/// Finds the requested session, or the newest one of this directory.
async fn find_session(store: &Store, requested: Option<&str>, cwd: &Path) -> Result<SessionRow, CliError> {
    if let Some(id) = requested {
        let id = SessionId::new(id);
        return match store.session_tree(&id).await?.into_iter().next() {
            Some(row) => Ok(row),
            None => Err(inspect::unknown_session_error(store, &id).await),
        };
    }
    let cwd_text = Some(cwd.display().to_string());
    let query = ListQuery { cwd: cwd_text, creator: CreatorFilter::User, before: None, limit: 1 };
    store.list_sessions(query).await?.into_iter().next().ok_or_else(|| no_session_in(cwd))
}

fn no_session_in(cwd: &Path) -> CliError {
    let error = CliError::new(CliExitCode::NoSession, format!("there is no session in {}", cwd.display()));
    error.with_hint("`crow-cli inspect` lists the sessions; choose one with -s")
}

fn report_file(
    file: &UndoneFile,
    workspace: &Workspace,
    mode: UndoMode,
    out: &mut impl Write,
    stderr: &mut impl Write,
) -> Result<(), CliError> {
    let path = Path::new(&file.path);
    let root = workspace.roots().first().map_or(workspace.cwd(), PathBuf::as_path);
    let shown = sanitize_line(&path.strip_prefix(root).unwrap_or(path).display().to_string());
    let prefix = if mode == UndoMode::Preview { "would be " } else { "" };
    match file.status {
        UndoStatus::Restored => writeln!(out, "{shown}: {prefix}restored")?,
        UndoStatus::Removed => writeln!(out, "{shown}: {prefix}removed")?,
        UndoStatus::AlreadyRestored => writeln!(out, "{shown}: restored already")?,
        UndoStatus::Skipped => {
            let reason = sanitize_line(file.reason.as_deref().unwrap_or_default());
            writeln!(out, "{shown}: skipped, {reason}; it is unchanged")?;
        }
        UndoStatus::Conflict => {
            let reason = sanitize_line(file.reason.as_deref().unwrap_or_default());
            writeln!(out, "{shown}: {prefix}left unchanged, {reason}")?;
            // Keeps the order of both streams.
            out.flush()?;
            for line in file.diff.iter().flat_map(|diff| diff.lines()) {
                writeln!(stderr, "    {}", sanitize_line(&line.replace('\t', "    ")).trim_end())?;
            }
        }
    }
    Ok(())
}

fn undo_json(session: &SessionId, undone: Option<&TurnUndone>) -> Value {
    let files = undone.map(|undone| undone.files.as_slice()).unwrap_or_default().iter();
    let files =
        files.map(|file| json!({ "path": file.path, "done": file.status.as_str(), "why": file.reason }));
    json!({
        "session": session.as_str(),
        "turn": undone.map(|undone| undone.turn),
        "files": files.collect::<Vec<_>>(),
    })
}
