//! Undoes the file changes of the last turn, for a session's `/undo` and for the command line, and reports them to the
//! model.

use std::path::Path;

use crow_core::undo::UndoMode;
use crow_core::{ContentPart, CrowPart, SessionId};
use crow_store::{ChangeId, SessionLease, Store, StoreError, Timestamp};
use crow_tools::{RecordedChange, UndoContext, UndoStatus, UndoneFile};
use serde_json::Value;

/// Key in a session's stored configuration: changes that were undone and not reported to the model yet.
const UNREPORTED_KEY: &str = "undone";

/// The largest number of files that a turn usually changes; for more, the model is told that there are more.
const UNREPORTED_MAX: usize = 100;

/// The outcome of undoing one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnUndone {
    /// Sequence number of the turn's prompt.
    pub turn: u64,
    /// The outcome for each path.
    pub files: Vec<UndoneFile>,
}

impl TurnUndone {
    /// Whether no file was left unchanged.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.status != UndoStatus::Conflict)
    }
}

/// Undoes the newest turn with changes that are not undone; `None` if there is none.
///
/// Completed changes are marked as undone; conflicts remain, to be undone later or skipped.
pub async fn undo_turn(
    store: &Store,
    lease: &SessionLease,
    context: UndoContext<'_>,
    now: Timestamp,
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
        // Order matters: if the process ends here, the model gets a report too many rather than too few.
        remember_undone(store, lease.session(), &files).await?;
        store.mark_changes_undone(lease, settled, now).await?;
    }
    Ok(Some(TurnUndone { turn, files }))
}

/// Stores what the next prompt must report to the model.
async fn remember_undone(store: &Store, session: &SessionId, files: &[UndoneFile]) -> Result<(), StoreError> {
    let is_undone = |file: &&UndoneFile| matches!(file.status, UndoStatus::Restored | UndoStatus::Removed);
    let paths: Vec<String> = files.iter().filter(is_undone).map(|file| file.path.clone()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let tip = store.session_tip(session).await?;
    let mut unreported = tip.map(|tip| undone_files(&tip.config)).unwrap_or_default();
    for path in paths {
        // One beyond the limit means that there are more.
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

/// Returns the part of the next prompt that reports undone changes.
pub fn pending_undo_part(config: &str) -> Option<ContentPart> {
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
    Some(ContentPart::FromCrow { kind: CrowPart::Undo, text })
}

/// Replaces control characters in a path, so that it stays on one line.
fn escape_path(path: &str) -> String {
    path.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }).collect()
}

/// Clears the pending report.
pub async fn clear_pending_undo(store: &Store, session: &SessionId) -> Result<(), StoreError> {
    store.set_config(session, UNREPORTED_KEY, None).await
}

/// Renders the outcome, or a preview of it.
pub fn render_undo(turn: Option<&TurnUndone>, cwd: &Path, mode: UndoMode) -> String {
    let Some(TurnUndone { files, .. }) = turn else {
        return "There is nothing to undo: this session has no file changes left.\n".into();
    };
    if mode == UndoMode::Skip && files.is_empty() {
        return "There is nothing to skip: there are no conflicts.\n".into();
    }
    let display_path = |path: &str| {
        let path = Path::new(path);
        escape_path(&path.strip_prefix(crow_files::resolve_links(cwd)).unwrap_or(path).display().to_string())
    };
    let mut text: String =
        files.iter().map(|file| file_line(file, &display_path(&file.path), mode)).collect();
    if mode == UndoMode::Apply && files.iter().any(|file| file.status == UndoStatus::Conflict) {
        text.push_str("\nFiles that could not be restored are unchanged.");
        // Other conflicts are resolved by this.
        if files.iter().any(|file| file.status == UndoStatus::Conflict && file.resolved_changes.is_empty()) {
            text.push_str(" /undo skip skips them, and /undo continues with the turn before.");
        }
        text.push('\n');
    }
    text
}

fn file_line(file: &UndoneFile, display_path: &str, mode: UndoMode) -> String {
    let reason = file.reason.as_deref().unwrap_or_default();
    let prefix = if mode == UndoMode::Preview { "would be " } else { "" };
    match file.status {
        UndoStatus::Restored => format!("- `{display_path}`: {prefix}restored\n"),
        UndoStatus::Removed => format!("- `{display_path}`: {prefix}removed\n"),
        UndoStatus::AlreadyRestored => format!("- `{display_path}`: restored already\n"),
        UndoStatus::Skipped => format!("- `{display_path}`: skipped, {reason}; it is unchanged\n"),
        UndoStatus::Conflict => {
            let diff = file.diff.as_ref().map(|diff| fence_diff(diff)).unwrap_or_default();
            format!("- `{display_path}`: {prefix}left unchanged, {reason}\n{diff}")
        }
    }
}

/// Renders a diff as Markdown, with a fence that its content cannot close.
fn fence_diff(diff: &str) -> String {
    let mut fence = "```".to_owned();
    while diff.contains(&fence) {
        fence.push('`');
    }
    format!("\n  Undoing would change this:\n\n{fence}diff\n{diff}\n{fence}\n\n")
}

#[cfg(test)]
mod tests;
