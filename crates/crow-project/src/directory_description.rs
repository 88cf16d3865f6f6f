//! The description of a session's directory for the model.

use std::path::Path;
use std::time::Duration;

use crow_tools::{GitCli, Workspace};
use tokio_util::sync::CancellationToken;

use crate::config_host::ConfigHost;
use crate::instructions::INSTRUCTIONS_FILE;
use crate::scan::repository_root;

/// Nested instructions that are listed: every request contains their names.
const NESTED_MAX: usize = 20;

/// Names in the working directory that are listed.
const NAMES_MAX: usize = 40;

/// Time for git; a first prompt waits for it.
const GIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time to look for programs: the directories of `PATH` may be on a network.
const PROGRAMS_TIMEOUT: Duration = Duration::from_millis(500);

/// Describes the working directory as it is now: its files, nested instructions, the state of its repository, and the
/// programs in the directories of `search_path`.
pub async fn describe_directory(
    host: &impl ConfigHost,
    workspace: &Workspace,
    git: &GitCli,
    search_path: String,
) -> String {
    let cwd = workspace.cwd().to_owned();
    let programs = host.spawn_blocking(move || crow_tools::find_common_programs(&search_path));
    let programs = tokio::time::timeout(PROGRAMS_TIMEOUT, programs);
    let listing = host.spawn_blocking(move || (list_directory(&cwd), is_in_repository(&cwd)));
    let (programs, listing) = tokio::join!(programs, listing);
    let (listing, is_in_repository) = listing.unwrap_or_else(|error| {
        tracing::error!(%error, "listing the working directory panicked");
        (String::new(), false)
    });
    let git_status = match is_in_repository {
        true => describe_git(git, workspace.cwd()).await,
        false => None,
    };
    let programs = match programs {
        Ok(Ok(names)) if !names.is_empty() => format!("Programs: {}", names.join(" ")),
        Ok(Ok(_) | Err(_)) | Err(_) => String::new(),
    };
    let texts = [programs, git_status.unwrap_or_default(), listing];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn is_in_repository(cwd: &Path) -> bool {
    repository_root(&crow_files::resolve_links(cwd)).join(".git").exists()
}

fn list_directory(cwd: &Path) -> String {
    let mut lines = Vec::new();
    let names = crow_tools::list_top_level(cwd, NAMES_MAX);
    if !names.is_empty() {
        lines.push(format!("Files at the start: {}", names.join(" ")));
    }
    let nested = crow_tools::find_files_below(cwd, INSTRUCTIONS_FILE, NESTED_MAX);
    if !nested.is_empty() {
        lines.push(format!(
            "Read the nearest of these before you work below its folder: {}",
            nested.join(" ")
        ));
    }
    lines.join("\n")
}

/// Returns the state of the repository; `None` if git cannot tell.
async fn describe_git(git: &GitCli, cwd: &Path) -> Option<String> {
    let cancel = CancellationToken::new();
    let description = tokio::time::timeout(GIT_TIMEOUT, git.describe_status(cwd, &cancel)).await;
    match description {
        Ok(Ok(status)) => Some(status),
        Ok(Err(error)) => {
            tracing::info!(%error, "the state of the repository is not known");
            None
        }
        Err(_) => {
            cancel.cancel();
            tracing::info!("git took too long to tell the state of the repository");
            None
        }
    }
}
