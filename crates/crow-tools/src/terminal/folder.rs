//! Where a command runs, and what is judged of that.

use std::path::{Path, PathBuf};

use crow_core::{Touch, shell, visible};

use super::{wanted::Start, words::Came};
use crate::{
    ToolCx, Workspace,
    tool::{MOVED, Refusal, off_thread, title},
    workspace::{PATH_BYTES_MAX, resolve},
};

impl Start {
    /// Another folder than the session's that the command is to run in, resolved through links.
    fn elsewhere(&self, workspace: &Workspace) -> Option<PathBuf> {
        let folder = workspace.resolve(self.cwd.as_deref()?);
        workspace.roots().first().is_none_or(|root| *root != folder).then_some(folder)
    }

    /// The line that is judged. In another folder the same words are another command, as they are behind `cd`.
    pub(super) fn line(&self, workspace: &Workspace) -> String {
        match self.elsewhere(workspace) {
            Some(folder) => format!("cd {} && {}", shell::quote(&folder.display().to_string()), self.command),
            None => self.command.clone(),
        }
    }

    /// The folder it runs in, in case it is there.
    pub(super) fn folder(&self, workspace: &Workspace) -> PathBuf {
        self.elsewhere(workspace).unwrap_or_else(|| workspace.cwd().to_owned())
    }

    /// The folder it runs in, as it is shown behind the command; nothing for the session's own.
    pub(super) fn shown_folder(&self, workspace: &Workspace) -> String {
        match self.elsewhere(workspace) {
            Some(folder) => format!(" in {}", title(&workspace.shown(&folder.display().to_string()))),
            None => String::new(),
        }
    }

    /// Tells the model where a command ended that ended elsewhere than it began: the next one does not begin there.
    pub(super) fn directory_note(&self, came: &Came, workspace: &Workspace) -> Option<String> {
        let ended_in = Path::new(came.directory()?);
        if [self.folder(workspace), resolve(&self.folder(workspace))].iter().any(|folder| folder == ended_in)
        {
            return None;
        }
        let shown = |path: &Path| visible(&path.display().to_string());
        let (ended_in, next) = (shown(ended_in), shown(workspace.cwd()));
        Some(format!(
            "(the command ended in {ended_in}; the next one starts in {next} unless `cwd` says otherwise)"
        ))
    }

    /// Refuses a folder that is not there, or leads elsewhere than when the call was judged.
    pub(super) async fn check_folder(&self, cx: &ToolCx<'_>) -> Result<(), Refusal> {
        let Some(cwd) = &self.cwd else { return Ok(()) };
        if cwd.len() > PATH_BYTES_MAX {
            return Err(Refusal("could not run the command: `cwd` is longer than any path".into()));
        }
        if !matches!(cx.touch, Touch::Runs(line) if *line == self.line(cx.workspace)) {
            return Err(Refusal(MOVED.to_owned()));
        }
        let (folder, shown) = (self.folder(cx.workspace), title(&cx.workspace.shown(cwd)));
        off_thread(move || check(&folder, &shown)).await
    }
}

fn check(folder: &Path, shown: &str) -> Result<(), Refusal> {
    let refuse = |why: &dyn std::fmt::Display| {
        Refusal(format!("could not run the command: `cwd` {shown} cannot be used: {why}"))
    };
    if folder.to_str().is_none() {
        return Err(refuse(&"its name is not UTF-8"));
    }
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(refuse(&"it is no folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(refuse(&"there is no such folder")),
        Err(error) => Err(refuse(&error)),
    }
}
