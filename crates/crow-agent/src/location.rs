//! The directories of a session: their validation, its workspace, and their description for the model.

use std::path::{Path, PathBuf};

use crow_acp::SessionLocation;
use crow_core::{Failure, FailureKind};
use crow_tools::Workspace;

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

/// Creates the workspace of a session.
pub(crate) fn session_workspace(runtime: &AgentRuntime, location: &SessionLocation) -> Workspace {
    Workspace::new(
        location.cwd.clone(),
        &location.additional_directories,
        runtime.config().secret_variables.clone(),
    )
}

/// Describes the working directory as it is now.
pub(crate) async fn describe_directory(runtime: &AgentRuntime, workspace: &Workspace) -> String {
    let (git, search_path) = (runtime.shared_tools.git_for(workspace), runtime.config().search_path.clone());
    crow_project::describe_directory(runtime, workspace, &git, search_path).await
}
