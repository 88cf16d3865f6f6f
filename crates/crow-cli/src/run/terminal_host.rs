//! The machine for the interactive terminal: the user's own commands and editor, images, the git repository.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crow_core::ContentPart;
use crow_process::{CommandSpec, ExitReason, ProcessGroups, RunLimits};
use crow_tui::{AttachedImage, ClientHost, ShellExit};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{clipboard, output_forwarder::OutputForwarder};

/// A user's command runs until it ends or the user ends it.
const COMMAND_TIMEOUT: Duration = Duration::from_hours(24);

/// Timeout of `git diff`, which reads the work tree.
const DIFF_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of a patch that are shown.
const DIFF_BYTES: usize = 1024 * 1024;

/// The editor if neither `VISUAL` nor `EDITOR` is set.
const DEFAULT_EDITOR: &str = "vi";

/// This machine.
pub(crate) struct LocalHost {
    cwd: PathBuf,
    editor: String,
    /// Whether the terminal is in tmux, whose server this process can reach.
    is_in_tmux: bool,
    groups: Arc<ProcessGroups>,
}

impl LocalHost {
    pub(super) fn new(cwd: PathBuf, editor: Option<&str>, is_in_tmux: bool) -> Self {
        let editor = editor.unwrap_or(DEFAULT_EDITOR).to_owned();
        Self { cwd, editor, is_in_tmux, groups: Arc::default() }
    }

    fn command(&self, program: &str, args: &[&str]) -> CommandSpec {
        CommandSpec {
            program: program.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            cwd: self.cwd.clone(),
            env: Vec::new(),
            env_removed: Vec::new(),
        }
    }
}

impl ClientHost for LocalHost {
    fn run_command(
        &self,
        command: String,
        output: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, ShellExit> {
        let (spec, groups) = (self.command("sh", &["-c", &command]), self.groups.clone());
        Box::pin(async move {
            let limits =
                RunLimits { timeout: COMMAND_TIMEOUT, head_bytes: 0, tail_bytes: 0, spill_dir: None };
            let mut forwarder = OutputForwarder::new(output);
            let result = crow_process::run_program(&groups, spec, limits, &cancel, &mut forwarder).await;
            forwarder.finish().await;
            match result.map(|result| result.exit) {
                Ok(ExitReason::Exited(code)) => ShellExit::Exited(code.into()),
                Ok(ExitReason::Signalled(signal)) => ShellExit::Stopped(format!("signal {signal}")),
                Ok(ExitReason::TimedOut) => ShellExit::Stopped("timeout".to_owned()),
                Ok(ExitReason::Cancelled) => ShellExit::Stopped("stopped".to_owned()),
                Err(error) => ShellExit::Stopped(error.to_string()),
            }
        })
    }

    fn read_image(&self, path: PathBuf) -> BoxFuture<'static, Result<AttachedImage, String>> {
        Box::pin(async move {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let read = tokio::task::spawn_blocking(move || crow_tools::read_image(&path)).await;
            match read.map_err(|error| error.to_string())?? {
                ContentPart::Image { mime, data } => Ok(AttachedImage { name, mime, data }),
                ContentPart::Text(_)
                | ContentPart::Link { .. }
                | ContentPart::Resource { .. }
                | ContentPart::FromCrow { .. } => Err(format!("{name} is no image")),
            }
        })
    }

    fn read_clipboard(&self) -> BoxFuture<'static, Result<AttachedImage, String>> {
        let (cwd, groups) = (self.cwd.clone(), self.groups.clone());
        Box::pin(async move { clipboard::read_image(&groups, &cwd, &clipboard::READERS).await })
    }

    fn copy_text(&self, text: String) -> BoxFuture<'static, Result<(), String>> {
        let (cwd, groups) = (self.cwd.clone(), self.groups.clone());
        let is_in_tmux = self.is_in_tmux;
        Box::pin(async move {
            match is_in_tmux {
                true => clipboard::copy_in_tmux(&groups, &cwd, &text).await,
                false => Ok(()),
            }
        })
    }

    fn load_diff(&self) -> BoxFuture<'static, Result<String, String>> {
        let args =
            ["--no-pager", "-c", "core.fsmonitor=false", "diff", "--no-ext-diff", "--no-textconv", "HEAD"];
        let (spec, groups) = (self.command("git", &args), self.groups.clone());
        Box::pin(async move {
            let limits =
                RunLimits { timeout: DIFF_TIMEOUT, head_bytes: DIFF_BYTES, tail_bytes: 0, spill_dir: None };
            let cancel = CancellationToken::new();
            let result = crow_process::run_program(&groups, spec, limits, &cancel, |_: &str| {}).await;
            let result = result.map_err(|error| format!("could not run git: {error}"))?;
            match result.exit {
                ExitReason::Exited(0) => Ok(result.output.text),
                // The message of git has the name in any language.
                ExitReason::Exited(_) if result.output.text.contains("'HEAD'") => {
                    Err("the repository has no commit to compare with".to_owned())
                }
                ExitReason::Exited(_)
                | ExitReason::Signalled(_)
                | ExitReason::TimedOut
                | ExitReason::Cancelled => Err(format!("git diff failed: {}", result.output.text.trim_end())),
            }
        })
    }

    fn read_branch(&self) -> BoxFuture<'static, Option<String>> {
        let cwd = self.cwd.clone();
        Box::pin(async move { tokio::task::spawn_blocking(move || find_branch(&cwd)).await.ok().flatten() })
    }

    fn edit_text(
        &self,
        text: String,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<String, String>> {
        let (editor, cwd) = (self.editor.clone(), self.cwd.clone());
        Box::pin(async move {
            let failed = |error: std::io::Error| format!("the editor {editor} failed: {error}");
            let file = tempfile::Builder::new().prefix("prompt-").suffix(".md").tempfile().map_err(failed)?;
            fs::write(file.path(), text).map_err(failed)?;
            let stop = cancel.cancelled();
            if !crow_process::run_in_foreground(&editor, file.path(), &cwd, stop).await.map_err(failed)? {
                return Err(format!("the editor {editor} failed; the text is unchanged"));
            }
            fs::read_to_string(file.path()).map_err(failed)
        })
    }
}

impl Drop for LocalHost {
    fn drop(&mut self) {
        // The user's commands end with the client.
        self.groups.kill_all();
    }
}

/// Returns the branch of the repository around a directory.
fn find_branch(cwd: &Path) -> Option<String> {
    let dot_git = cwd.ancestors().map(|dir| dir.join(".git")).find(|path| path.exists())?;
    let git_dir = match fs::read_to_string(&dot_git) {
        // A worktree names its directory.
        Ok(text) => dot_git.parent()?.join(text.trim().strip_prefix("gitdir: ")?),
        Err(_) => dot_git,
    };
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => head.get(..7).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_end_with_the_client() {
        let host = LocalHost::new(std::env::temp_dir(), None, false);
        let (sender, mut output) = mpsc::channel(1);
        let command = "echo started; exec sleep 600".to_owned();
        let run = tokio::spawn(host.run_command(command, sender, CancellationToken::new()));
        assert_eq!(output.recv().await.as_deref(), Some("started\n"));
        drop(host);
        let exit = run.await.expect("the command has ended");
        assert_eq!(exit, ShellExit::Stopped("signal 9".to_owned()));
    }
}
