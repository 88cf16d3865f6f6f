//! Takes back what the last turn did to files: from the store to the files and back, the same for a session's `/undo`
//! and for the command line, and what the model is told of it.

use std::path::Path;

use crow_core::{ContentPart, CrowPart, SessionId};
use crow_store::{ChangeId, SessionLease, Store, StoreError};
use crow_tools::{RecordedChange, UndoContext, UndoMode, UndoStatus, UndoneFile};
use serde_json::Value;

use crate::clock;

/// Where a session remembers, beside what else is set in it, what the model was not told of yet.
const UNREPORTED_KEY: &str = "undone";

/// As many files as one turn changes at the most; of more the model is told that there are more.
const UNREPORTED_MAX: usize = 100;

/// What became of the changes of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnUndone {
    /// Place of the prompt whose turn it was.
    pub turn: u64,
    /// What became of each path.
    pub files: Vec<UndoneFile>,
}

/// Takes back what the newest turn did to files that has something left to undo; `None` when none has.
///
/// What is not in the way of an undo any more is marked; conflicts stay, to be undone when they are gone, or skipped.
pub async fn undo_turn(
    store: &Store,
    lease: &SessionLease,
    context: UndoContext<'_>,
) -> Result<Option<TurnUndone>, StoreError> {
    let changes = store.last_changes(lease.session()).await?;
    let Some(turn) = changes.first().map(|change| change.turn) else { return Ok(None) };
    let ids: Vec<ChangeId> = changes.iter().map(|change| change.id).collect();
    let recorded = changes.into_iter();
    let recorded = recorded.map(|change| RecordedChange {
        path: change.path,
        before: change.before,
        after: change.after,
    });
    let files = crow_tools::undo_changes(context, recorded.collect()).await;
    if context.mode != UndoMode::Preview {
        let settled = files.iter().flat_map(|file| &file.resolved_changes);
        let settled: Vec<ChangeId> = settled.filter_map(|&index| ids.get(index).copied()).collect();
        // The model hears too much rather than too little when the process ends here.
        remember_undone(store, lease.session(), &files).await?;
        store.mark_changes_undone(lease, settled, clock::now()).await?;
    }
    Ok(Some(TurnUndone { turn, files }))
}

/// Remembers what the model has to be told with the next prompt.
async fn remember_undone(store: &Store, session: &SessionId, files: &[UndoneFile]) -> Result<(), StoreError> {
    let is_undone = |file: &&UndoneFile| matches!(file.status, UndoStatus::Restored | UndoStatus::Removed);
    let paths: Vec<String> = files.iter().filter(is_undone).map(|file| file.path.clone()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let tip = store.session_tip(session).await?;
    let mut unreported = tip.map(|tip| undone_files(&tip.config)).unwrap_or_default();
    for path in paths {
        // One beyond the limit says that there are more.
        if unreported.len() <= UNREPORTED_MAX && !unreported.contains(&path) {
            unreported.push(path);
        }
    }
    store.set_config(session, UNREPORTED_KEY, Some(unreported.into())).await
}

fn undone_files(config: &str) -> Vec<String> {
    let config: Value = serde_json::from_str(config).unwrap_or_default();
    let paths = config.get(UNREPORTED_KEY).and_then(Value::as_array).into_iter().flatten();
    paths.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What the next prompt tells the model of what was undone since the last one.
pub(crate) fn pending_undo_part(config: &str) -> Option<ContentPart> {
    let paths = undone_files(config);
    if paths.is_empty() {
        return None;
    }
    let mut lines: Vec<String> =
        paths.iter().take(UNREPORTED_MAX).map(|path| format!("\n- {}", escape_path(path))).collect();
    lines.extend((paths.len() > UNREPORTED_MAX).then(|| "\n- and more".to_owned()));
    let text = format!(
        "The person took back what you did to these files. They are as they were before that turn, or gone where \
         you made them. Read them again before you rely on them, and do not make the same changes again unless \
         asked:{}",
        lines.concat()
    );
    Some(ContentPart::FromCrow { what: CrowPart::Undone, text })
}

/// Keeps a path on its line: a name may hold anything.
pub(crate) fn escape_path(path: &str) -> String {
    path.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }).collect()
}

/// Forgets what the model was told.
pub(crate) async fn clear_pending_undo(store: &Store, session: &SessionId) -> Result<(), StoreError> {
    store.set_config(session, UNREPORTED_KEY, None).await
}

/// Says in a session what became of the files, or would.
pub(crate) fn render_undo(turn: Option<&TurnUndone>, cwd: &Path, mode: UndoMode) -> String {
    let Some(TurnUndone { files, .. }) = turn else {
        return "There is nothing to undo: no change of a file is left that this session made.\n".into();
    };
    if mode == UndoMode::Skip && files.is_empty() {
        return "There is nothing to skip: nothing stands in the way of /undo.\n".into();
    }
    let display_path = |path: &str| {
        let path = Path::new(path);
        escape_path(&path.strip_prefix(crow_tools::resolve_links(cwd)).unwrap_or(path).display().to_string())
    };
    let mut text: String =
        files.iter().map(|file| file_line(file, &display_path(&file.path), mode)).collect();
    if mode == UndoMode::Apply && files.iter().any(|file| file.status == UndoStatus::Conflict) {
        text.push_str("\nWhat could not be put back stays as it is.");
        // Other conflicts are over with this.
        if files.iter().any(|file| file.status == UndoStatus::Conflict && file.resolved_changes.is_empty()) {
            text.push_str(" /undo skip leaves it so for good, and /undo goes on to the turn before.");
        }
        text.push('\n');
    }
    text
}

fn file_line(file: &UndoneFile, display_path: &str, mode: UndoMode) -> String {
    let reason = file.reason.as_deref().unwrap_or_default();
    let prefix = if mode == UndoMode::Preview { "would be " } else { "" };
    match file.status {
        UndoStatus::Restored => format!("- `{display_path}`: {prefix}put back\n"),
        UndoStatus::Removed => format!("- `{display_path}`: {prefix}removed\n"),
        UndoStatus::AlreadyRestored => format!("- `{display_path}`: is as it was already\n"),
        UndoStatus::Skipped => format!("- `{display_path}`: skipped, {reason}; it stays as it is\n"),
        UndoStatus::Conflict => {
            let diff = file.diff.as_ref().map(|diff| fence_diff(diff)).unwrap_or_default();
            format!("- `{display_path}`: {prefix}left alone, {reason}\n{diff}")
        }
    }
}

/// Shows a difference as Markdown, whatever is in it.
fn fence_diff(diff: &str) -> String {
    let mut fence = "```".to_owned();
    while diff.contains(&fence) {
        fence.push('`');
    }
    format!("\n  Undoing would change this:\n\n{fence}diff\n{diff}\n{fence}\n\n")
}

#[cfg(test)]
mod tests;
