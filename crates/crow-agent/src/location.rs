//! Validates the directories of a session.

use std::path::{Path, PathBuf};

use crow_acp::SessionLocation;
use crow_core::{Failure, FailureKind};

use crate::runtime::AgentRuntime;

/// Checks that every directory exists, and normalizes the paths.
pub(crate) async fn check_location(
    runtime: &AgentRuntime,
    location: SessionLocation,
) -> Result<SessionLocation, Failure> {
    let cwd = normalize_path(&location.cwd);
    let additional_directories: Vec<PathBuf> =
        location.additional_directories.iter().map(|root| normalize_path(root)).collect();
    let location = SessionLocation { cwd, additional_directories, ..location };
    let checked = runtime.spawn_blocking(move || {
        crow_tools::check_directories(&location.cwd, &location.additional_directories).map(|()| location)
    });
    let checked = checked.await.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    checked.map_err(|reason| Failure::new(FailureKind::InvalidValue, reason))
}

/// Removes trailing and repeated slashes and dots from a path.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
    path.components().collect()
}
