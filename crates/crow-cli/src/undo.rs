//! `crow-cli undo`: takes back what the last turn of a session did to files. Asks no model and needs no agent that runs.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use crow_agent::{TurnUndone, undo_turn};
use crow_core::SessionId;
use crow_store::{Address, BegunBy, ListQuery, SessionRow, Store};
use crow_tools::{Done, How, Undoing, Undone, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::UndoArgs,
    failure::{Code, Exit},
    inspect,
    table::plain,
};

/// Takes back, or shows, what the newest turn with something left did to files. What a conflict is about goes to `more`.
pub(crate) async fn run(
    args: &UndoArgs,
    (database, cwd): (&Address, &Path),
    out: &mut impl Write,
    more: &mut impl Write,
) -> Result<(), Exit> {
    let store = Store::open_existing(database).await?;
    let (store, session) = match (store, &args.session) {
        (Some(store), session) => {
            let row = find(&store, session.as_deref(), cwd).await?;
            (store, row)
        }
        (None, Some(id)) => return Err(Exit::no_session(id)),
        (None, None) => return Err(no_session_in(cwd)),
    };
    let workspace = Workspace::new(PathBuf::from(&session.cwd), &[], Vec::new());
    let cut = CancellationToken::new();
    let how = match args {
        UndoArgs { dry_run: true, .. } => How::Show,
        UndoArgs { skip: true, .. } => How::Skip,
        UndoArgs { .. } => How::Do,
    };
    let writer = store.begin_writing(&session.id).await?;
    let undoing = Undoing { workspace: &workspace, editor: None, cut: &cut, how };
    let undone = undo_turn(&store, &writer, undoing).await;
    store.end_writing(writer).await;
    let undone = undone?;
    // An undo that the power took back would look like an edit of somebody else.
    store.sync().await?;
    let files = undone.as_ref().map(|undone| undone.files.as_slice()).unwrap_or_default();
    match args.json {
        true => writeln!(out, "{}", document(&session.id, undone.as_ref()))?,
        false if undone.is_none() => {
            writeln!(out, "nothing to undo in {}", session.id)?;
        }
        false if how == How::Skip && files.is_empty() => {
            writeln!(out, "nothing to skip in {}", session.id)?;
        }
        false => {
            for file in files {
                report(file, &workspace, how, (out, more))?;
            }
        }
    }
    out.flush()?;
    if files.iter().any(|file| file.done == Done::Conflict) {
        return Err(Exit::quiet(Code::Failed));
    }
    Ok(())
}

/// Finds the session that was named, or the newest one of this folder.
async fn find(store: &Store, named: Option<&str>, cwd: &Path) -> Result<SessionRow, Exit> {
    if let Some(id) = named {
        let id = SessionId::new(id);
        return match store.family(&id).await?.into_iter().next() {
            Some(row) => Ok(row),
            None => Err(inspect::missing(store, &id).await),
        };
    }
    let here = Some(cwd.display().to_string());
    let query = ListQuery { cwd: here, begun_by: BegunBy::Person, before: None, limit: 1 };
    store.list(query).await?.into_iter().next().ok_or_else(|| no_session_in(cwd))
}

fn no_session_in(cwd: &Path) -> Exit {
    let exit = Exit::new(Code::NoSession, format!("there is no session in {}", cwd.display()));
    exit.with_hint("`crow-cli inspect` lists the sessions; name one with -s")
}

fn report(
    file: &Undone,
    workspace: &Workspace,
    how: How,
    (out, more): (&mut impl Write, &mut impl Write),
) -> Result<(), Exit> {
    let path = Path::new(&file.path);
    let root = workspace.roots().first().map_or(workspace.cwd(), PathBuf::as_path);
    let shown = plain(&path.strip_prefix(root).unwrap_or(path).display().to_string());
    let would = if how == How::Show { "would be " } else { "" };
    match file.done {
        Done::Restored => writeln!(out, "{shown}: {would}put back")?,
        Done::Removed => writeln!(out, "{shown}: {would}removed")?,
        Done::Already => writeln!(out, "{shown}: is as it was already")?,
        Done::Skipped => {
            let why = plain(file.why.as_deref().unwrap_or_default());
            writeln!(out, "{shown}: skipped, {why}; it stays as it is")?;
        }
        Done::Conflict => {
            let why = plain(file.why.as_deref().unwrap_or_default());
            writeln!(out, "{shown}: {would}left alone, {why}")?;
            // Whoever reads both sees them in their order.
            out.flush()?;
            for line in file.diff.iter().flat_map(|diff| diff.lines()) {
                writeln!(more, "    {}", plain(&line.replace('\t', "    ")).trim_end())?;
            }
        }
    }
    Ok(())
}

fn document(session: &SessionId, undone: Option<&TurnUndone>) -> Value {
    let files = undone.map(|undone| undone.files.as_slice()).unwrap_or_default().iter();
    let files = files.map(|file| json!({ "path": file.path, "done": file.done.as_str(), "why": file.why }));
    json!({
        "session": session.as_str(),
        "turn": undone.map(|undone| undone.turn),
        "files": files.collect::<Vec<_>>(),
    })
}
