//! Writes what Crow itself writes into a project: kept first, as for any tool, so that it can be undone, and known to the
//! workspace, so that the model may edit it.

use std::fs;
use std::path::{Path, PathBuf};

use crow_core::ContentHash;
use crow_core::undo::Before;
use crow_speckit::{Project, SpeckitError};
use crow_tools::{Keeper, Workspace};
use sha2::{Digest as _, Sha256};

use crate::clock;

/// Where the answers to questions are written down.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) spec: PathBuf,
}

impl Record {
    /// Adds a question with its answer to the spec.
    pub(super) async fn add(
        &self,
        (question, answer): (&str, &str),
        keeper: Option<&dyn Keeper>,
        workspace: &Workspace,
    ) -> Result<(), String> {
        let spec = self.spec.clone();
        let read = off(move || Project::read(&spec)).await?;
        let old = read.ok_or_else(|| format!("{} is gone", self.spec.display()))?;
        let new = crow_speckit::add_clarification(&old, &clock::today(), question, answer);
        write(keeper, workspace, &self.spec, &new).await
    }
}

/// Replaces a file.
pub(super) async fn write(
    keeper: Option<&dyn Keeper>,
    workspace: &Workspace,
    path: &Path,
    text: &str,
) -> Result<(), String> {
    let resolved = crow_tools::resolve(path);
    if let Some(keeper) = keeper {
        let path = resolved.clone();
        let before = off(move || before(&path)).await?;
        keeper.keep(&resolved, before, hash(text)).await?;
    }
    let (to, new) = (resolved.clone(), text.to_owned());
    off(move || Project::write(&to, &new)).await?;
    workspace.wrote(resolved, text);
    Ok(())
}

/// Keeps that files were made which were not there before.
pub(super) async fn made(
    keeper: &dyn Keeper,
    workspace: &Workspace,
    files: &[(PathBuf, String)],
) -> Result<(), String> {
    for (path, text) in files {
        let resolved = crow_tools::resolve(path);
        keeper.keep(&resolved, Before::Missing, hash(text)).await?;
        workspace.wrote(resolved, text);
    }
    Ok(())
}

fn before(path: &Path) -> Result<Before, SpeckitError> {
    let Some(text) = Project::read(path)? else { return Ok(Before::Missing) };
    #[cfg(unix)]
    let mode = {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).ok().map(|found| found.permissions().mode() & 0o7777)
    };
    #[cfg(not(unix))]
    let mode = None;
    Ok(Before::Content { bytes: text.into_bytes(), mode })
}

pub(super) fn hash(text: &str) -> ContentHash {
    ContentHash::new(Sha256::digest(text).into())
}

/// Does what blocks off the loop; an error says what to do first.
pub(super) async fn off<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SpeckitError> + Send + 'static,
) -> Result<T, String> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| error.to_string())?.map_err(|error| match &error {
        SpeckitError::Unmet { next: Some(next), .. } => format!("{error}; {next} comes first"),
        SpeckitError::Unmet { next: None, .. }
        | SpeckitError::Invalid(_)
        | SpeckitError::Broken { .. }
        | SpeckitError::Io { .. } => error.to_string(),
    })
}
