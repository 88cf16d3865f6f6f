//! The working directory of a command, and its part in the evaluation.

use std::path::{Path, PathBuf};

use crow_core::{ToolAccess, escape_hidden, shell};
use crow_files::{PATH_BYTES_MAX, resolve_links};

use super::{arguments::CommandRequest, report::CommandOutcome};
use crate::{
    ToolCx, Workspace,
    title::to_title,
    tool_error::{PATH_CHANGED, ToolError, run_blocking},
};

impl CommandRequest {
    /// A requested directory other than the session's, with links resolved.
    fn explicit_cwd(&self, workspace: &Workspace) -> Option<PathBuf> {
        let dir = workspace.resolve_path(self.cwd.as_deref()?);
        workspace.roots().first().is_none_or(|root| *root != dir).then_some(dir)
    }

    /// The line that is evaluated. In another directory the same words are another command, as after `cd`.
    pub(super) fn evaluated_line(&self, workspace: &Workspace) -> String {
        match self.explicit_cwd(workspace) {
            Some(dir) => {
                format!("cd {} && {}", shell::quote_word(&dir.display().to_string()), self.command)
            }
            None => self.command.clone(),
        }
    }

    /// The working directory, which may not exist.
    pub(super) fn working_dir(&self, workspace: &Workspace) -> PathBuf {
        self.explicit_cwd(workspace).unwrap_or_else(|| workspace.cwd().to_owned())
    }

    /// The working directory as shown after the command; empty for the session's own.
    pub(super) fn working_dir_suffix(&self, workspace: &Workspace) -> String {
        match self.explicit_cwd(workspace) {
            Some(dir) => {
                format!(" in {}", to_title(&workspace.display_path(&dir.display().to_string())))
            }
            None => String::new(),
        }
    }

    /// Returns a note for the model if a command ended in another directory than it started in: the next one does not
    /// start there.
    pub(super) fn directory_note(&self, outcome: &CommandOutcome, workspace: &Workspace) -> Option<String> {
        let final_dir = Path::new(outcome.final_directory()?);
        if [self.working_dir(workspace), resolve_links(&self.working_dir(workspace))]
            .iter()
            .any(|dir| dir == final_dir)
        {
            return None;
        }
        let display = |path: &Path| escape_hidden(&path.display().to_string());
        let (final_dir, next_dir) = (display(final_dir), display(workspace.cwd()));
        Some(format!(
            "(the command ended in {final_dir}; the next one starts in {next_dir} unless `cwd` says otherwise)"
        ))
    }

    /// Rejects a directory that does not exist, or is another one than when the call was evaluated.
    pub(super) async fn check_working_dir(&self, cx: &ToolCx<'_>) -> Result<(), ToolError> {
        let Some(cwd) = &self.cwd else { return Ok(()) };
        if cwd.len() > PATH_BYTES_MAX {
            return Err(ToolError("could not run the command: `cwd` is longer than any path".into()));
        }
        if !matches!(cx.access, ToolAccess::Runs(line) if *line == self.evaluated_line(cx.workspace)) {
            return Err(ToolError(PATH_CHANGED.to_owned()));
        }
        let (dir, display_path) = (self.working_dir(cx.workspace), to_title(&cx.workspace.display_path(cwd)));
        run_blocking(move || check_usable_dir(&dir, &display_path)).await
    }
}

fn check_usable_dir(dir: &Path, display_path: &str) -> Result<(), ToolError> {
    let refuse = |reason: &dyn std::fmt::Display| {
        ToolError(format!("could not run the command: `cwd` {display_path} cannot be used: {reason}"))
    };
    if dir.to_str().is_none() {
        return Err(refuse(&"its name is not UTF-8"));
    }
    match std::fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(refuse(&"it is not a directory")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(refuse(&"there is no such directory"))
        }
        Err(error) => Err(refuse(&error)),
    }
}
