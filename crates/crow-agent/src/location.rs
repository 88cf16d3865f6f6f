//! Validates the directories of a session.

use std::path::{Path, PathBuf};

use crow_acp::SessionLocation;
use crow_core::{Failure, FailureKind};

use crate::runtime::AgentRuntime;

/// Additional directories of a session; every path is compared with each of them.
const ROOTS_MAX: usize = 64;

/// Checks that every directory exists, and normalizes the paths.
pub(crate) async fn check_location(
    runtime: &AgentRuntime,
    location: SessionLocation,
) -> Result<SessionLocation, Failure> {
    let SessionLocation { cwd, additional_directories: more_roots, servers } = location;
    let more_roots = more_roots.iter().map(|root| normalize_path(root)).collect();
    let location = SessionLocation { cwd: normalize_path(&cwd), additional_directories: more_roots, servers };
    if location.additional_directories.len() > ROOTS_MAX {
        let reason = format!(
            "there are {} additional directories, and the limit is {ROOTS_MAX}",
            location.additional_directories.len()
        );
        return Err(Failure::new(FailureKind::InvalidValue, reason));
    }
    check_folder(runtime, "cwd", &location.cwd).await?;
    for root in &location.additional_directories {
        check_folder(runtime, "an additional directory", root).await?;
    }
    Ok(location)
}

/// A path that is not UTF-8 cannot be sent to a client or a model, or stored.
const NOT_TEXT: &str = "whose name is not UTF-8; rename the directory or one above it, or choose another";

/// Removes trailing and repeated slashes and dots from a path.
pub(crate) fn normalize_path(path: &Path) -> PathBuf {
    path.components().collect()
}

/// The reason why a session cannot use a directory.
enum DirectoryProblem {
    Missing,
    NotText(PathBuf),
}

async fn check_folder(runtime: &AgentRuntime, label: &str, path: &Path) -> Result<(), Failure> {
    let reason = if path.to_str().is_none() {
        format!("{label} is {}, {NOT_TEXT}", path.display())
    } else if !path.is_absolute() {
        format!("{label} is {}, which is not an absolute path", path.display())
    } else {
        let owned_path = path.to_owned();
        match runtime.spawn_blocking(move || find_problem(&owned_path)).await {
            Ok(None) => return Ok(()),
            Ok(Some(DirectoryProblem::Missing)) => {
                format!(
                    "{label} is {}, which is not a directory; create it or choose another",
                    path.display()
                )
            }
            Ok(Some(DirectoryProblem::NotText(resolved))) => {
                format!("{label} is {}, {NOT_TEXT}", resolved.display())
            }
            Err(error) => return Err(Failure::new(FailureKind::Internal, error.to_string())),
        }
    };
    Err(Failure::new(FailureKind::InvalidValue, reason))
}

fn find_problem(path: &Path) -> Option<DirectoryProblem> {
    if !path.is_dir() {
        return Some(DirectoryProblem::Missing);
    }
    let resolved = crow_files::resolve_links(path);
    resolved.to_str().is_none().then_some(DirectoryProblem::NotText(resolved))
}
