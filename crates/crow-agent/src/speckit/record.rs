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
use crate::speckit::layout::Made;

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
        let read = off(move || Project::read(&placed(&spec)?)).await?;
        let old = read.ok_or_else(|| format!("{} is gone", self.spec.display()))?;
        let new = crow_speckit::add_clarification(&old, &clock::today(), question, answer);
        write(keeper, workspace, &self.spec, &new).await
    }
}

/// Replaces a file. A link is not followed: whoever laid it out decides where it leads.
pub(super) async fn write(
    keeper: Option<&dyn Keeper>,
    workspace: &Workspace,
    path: &Path,
    text: &str,
) -> Result<(), String> {
    let at = path.to_owned();
    let (resolved, before) = off(move || Ok((placed(&at)?, before(&at)?))).await?;
    if let Some(keeper) = keeper {
        keeper.keep(&resolved, before, hash(text)).await?;
    }
    let (to, new) = (resolved.clone(), text.to_owned());
    off(move || Project::write(&to, &new)).await?;
    workspace.wrote(resolved, text);
    Ok(())
}

/// Where a file is, once the links on the way to its folder are followed; one that is a link itself is refused.
fn placed(path: &Path) -> Result<PathBuf, SpeckitError> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        let path = path.to_owned();
        return Err(SpeckitError::Broken {
            path,
            why: "it is a link, and what it leads to is not written".to_owned(),
        });
    }
    let folder = path.parent().map(crow_tools::resolve).unwrap_or_default();
    Ok(path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name)))
}

/// Keeps what Crow made, so that it can be undone.
pub(super) async fn made(keeper: &dyn Keeper, workspace: &Workspace, files: Vec<Made>) -> Result<(), String> {
    for Made { path, before, now } in files {
        let resolved = off(move || placed(&path)).await?;
        let before = match before {
            Some(text) => Before::Content { bytes: text.into_bytes(), mode: None },
            None => Before::Missing,
        };
        keeper.keep(&resolved, before, hash(&now)).await?;
        workspace.wrote(resolved, &now);
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
    joined.map_err(|error| error.to_string())?.map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}
