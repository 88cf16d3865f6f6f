//! Writes Crow's own changes of a project: recorded for undo like those of any tool, and known to the workspace, so
//! that the model may edit the files.

use std::fs;
use std::path::{Path, PathBuf};

use crow_core::ContentHash;
use crow_core::undo::UndoSnapshot;
use crow_speckit::{LayoutFile, SpeckitError, SpeckitProject};
use crow_tools::{UndoRecorder, Workspace};
use sha2::{Digest as _, Sha256};

use crate::blocking::run_blocking;

/// The file into which answers are written.
#[derive(Debug, Clone)]
pub(crate) struct AnswerRecord {
    pub(crate) spec: PathBuf,
    /// The date of the answers.
    pub(crate) today: String,
}

impl AnswerRecord {
    /// Adds a question with its answer to the spec.
    pub(crate) async fn add_answer(
        &self,
        question: &str,
        answer: &str,
        undo_recorder: Option<&dyn UndoRecorder>,
        workspace: &Workspace,
    ) -> Result<(), String> {
        let spec = self.spec.clone();
        let content = run_blocking(move || SpeckitProject::read_file(&resolve_write_path(&spec)?)).await?;
        let old = content.ok_or_else(|| format!("{} is missing", self.spec.display()))?;
        let new = crow_speckit::add_clarification(&old, &self.today, question, answer);
        write_project_file(undo_recorder, workspace, &self.spec, &new).await
    }
}

/// Replaces a file. A link is not followed: its target could be anywhere.
pub(crate) async fn write_project_file(
    undo_recorder: Option<&dyn UndoRecorder>,
    workspace: &Workspace,
    path: &Path,
    text: &str,
) -> Result<(), String> {
    let owned_path = path.to_owned();
    let (resolved, before) =
        run_blocking(move || Ok((resolve_write_path(&owned_path)?, content_before(&owned_path)?))).await?;
    if let Some(undo_recorder) = undo_recorder {
        undo_recorder.record_change(&resolved, before, hash_text(text)).await?;
    }
    let (target, new) = (resolved.clone(), text.to_owned());
    run_blocking(move || SpeckitProject::write_file(&target, &new)).await?;
    workspace.record_write(resolved, text);
    Ok(())
}

/// Resolves the links in the directory of a file; a file that is a link itself is rejected.
fn resolve_write_path(path: &Path) -> Result<PathBuf, SpeckitError> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        let path = path.to_owned();
        return Err(SpeckitError::InvalidFile {
            path,
            reason: "it is a link, and links are not followed".to_owned(),
        });
    }
    let directory = path.parent().map(crow_files::resolve_links).unwrap_or_default();
    Ok(path.file_name().map_or_else(|| directory.clone(), |name| directory.join(name)))
}

/// Records files that Crow created, so that they can be undone.
pub(crate) async fn record_written_files(
    undo_recorder: &dyn UndoRecorder,
    workspace: &Workspace,
    files: Vec<LayoutFile>,
) -> Result<(), String> {
    for LayoutFile { path, before, new_text } in files {
        let resolved = run_blocking(move || resolve_write_path(&path)).await?;
        let before = match before {
            Some(text) => UndoSnapshot::Content { bytes: text.into_bytes(), mode: None },
            None => UndoSnapshot::Missing,
        };
        undo_recorder.record_change(&resolved, before, hash_text(&new_text)).await?;
        workspace.record_write(resolved, &new_text);
    }
    Ok(())
}

fn content_before(path: &Path) -> Result<UndoSnapshot, SpeckitError> {
    let Some(text) = SpeckitProject::read_file(path)? else { return Ok(UndoSnapshot::Missing) };
    let mode = fs::metadata(path).ok().and_then(|metadata| crow_files::permission_bits(&metadata));
    Ok(UndoSnapshot::Content { bytes: text.into_bytes(), mode })
}

fn hash_text(text: &str) -> ContentHash {
    ContentHash::new(Sha256::digest(text).into())
}
