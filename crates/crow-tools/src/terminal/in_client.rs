//! Running a command in a terminal of the client.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crow_acp::{ClientEditor, ClientError, ClientTerminal, TerminalExit};
use crow_process::{CapturedOutput, ExitReason};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    HEAD_BYTES, JOB_LIFE, SETTLE, TAIL_BYTES, TerminalTool,
    held::not_opened,
    here::collect_job_start,
    jobs::JobBackend,
    wanted::CommandRequest,
    words::{CommandExit, CommandOutcome},
};
use crate::{ToolCx, ToolProgress, tool::ToolError};

/// A client that does not end a command in this time does nothing else for it either.
const KILL_WAIT_MAX: Duration = Duration::from_secs(5);

/// As much of the end of what was shown as tells where it was, when its beginning is gone.
const MARK_BYTES: usize = 1024;

impl TerminalTool {
    /// Runs a command in a terminal of the client; `None` when it opens none.
    pub(super) async fn run_in_client(
        &self,
        start: &CommandRequest,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Result<Option<CommandOutcome>, ToolError> {
        let jobs = cx.workspace.jobs();
        let seat = if start.is_job() { Some(jobs.reserve_slot()?) } else { None };
        self.check_client_sandbox(cx)?;
        let terminal = match editor.open_terminal(self.launch(start, cx), cx.cut).await {
            Ok(terminal) => terminal,
            Err(ClientError::Cut) => {
                return Ok(Some(CommandOutcome::Ended(
                    CommandExit::Here(ExitReason::Cancelled),
                    CapturedOutput::default(),
                )));
            }
            Err(error @ ClientError::Refused(_)) => {
                self.check_refused(&error, editor, cx).await?;
                tracing::warn!(%error, "the client opens no terminal; the command runs here");
                return Ok(None);
            }
            // A client that is merely slow may run it yet.
            Err(error @ ClientError::Silent(_)) => return Err(not_opened(&error)),
        };
        (cx.progress)(ToolProgress::Terminal(terminal.clone()));
        if let Some(seat) = seat {
            let job = ClientJob::start(terminal, start.timeout.unwrap_or(JOB_LIFE), &self.spill_dir);
            let entry = seat.insert_job(&start.command, cx.confinement, JobBackend::InClient(job));
            cx.cut.run_until_cancelled(entry.wait_for_exit(SETTLE)).await;
            let came = collect_job_start(jobs, entry, cx).await;
            self.check_started(&came, editor, cx).await?;
            return Ok(Some(came));
        }
        let came = self.wait_in_client(start, terminal, cx).await;
        self.check_started(&came, editor, cx).await?;
        Ok(Some(came))
    }

    async fn wait_in_client(
        &self,
        start: &CommandRequest,
        terminal: Arc<ClientTerminal>,
        cx: &ToolCx<'_>,
    ) -> CommandOutcome {
        let patience = start.timeout.unwrap_or(self.soft_limit);
        let how = match terminal.wait_for_exit(patience, cx.cut).await {
            Ok(exit) => CommandExit::from_client_exit(exit),
            Err(ClientError::Silent(_)) if start.timeout.is_none() => {
                if let Ok(seat) = cx.workspace.jobs().reserve_slot() {
                    let job = ClientJob::start(terminal, JOB_LIFE, &self.spill_dir);
                    let entry = seat.insert_job(&start.command, cx.confinement, JobBackend::InClient(job));
                    let output = entry.take_output(cx.cut).await;
                    return CommandOutcome::Runs { entry, output, waited: Some(patience) };
                }
                CommandExit::Here(ExitReason::TimedOut)
            }
            Err(ClientError::Silent(_)) => CommandExit::Here(ExitReason::TimedOut),
            Err(ClientError::Cut) => CommandExit::Here(ExitReason::Cancelled),
            Err(error @ ClientError::Refused(_)) => CommandExit::Lost(error.to_string()),
        };
        let is_over = matches!(how, CommandExit::Here(ExitReason::Exited(_)) | CommandExit::InClient { .. });
        let killed = if is_over { Ok(()) } else { kill_terminal(&terminal, cx.cut).await };
        let said = match killed {
            Ok(()) => read_output(&terminal, cx.cut).await,
            Err(silent) => TerminalText::from_error(&silent),
        };
        let text = if said.is_cut { format!("{CUT}{}", said.text) } else { said.text };
        CommandOutcome::Ended(
            how,
            CapturedOutput::from_text(&text, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await,
        )
    }
}

/// Said in front of what lost its beginning.
const CUT: &str = "(the client dropped the beginning)\n";

/// What a terminal shows; the beginning may be missing.
struct TerminalText {
    text: String,
    is_cut: bool,
}

impl TerminalText {
    fn from_error(why: &ClientError) -> Self {
        Self { text: format!("(the output is lost: {why})\n"), is_cut: false }
    }
}

async fn read_output(terminal: &ClientTerminal, cut: &CancellationToken) -> TerminalText {
    match terminal.read_output(cut).await {
        Ok(output) => TerminalText { text: output.text, is_cut: output.is_cut },
        Err(error) => TerminalText::from_error(&error),
    }
}

/// Has the client end a command. The other side is that it says nothing any more.
async fn kill_terminal(terminal: &ClientTerminal, cut: &CancellationToken) -> Result<(), ClientError> {
    let killed = timeout(KILL_WAIT_MAX, terminal.kill(cut)).await;
    match killed.unwrap_or(Err(ClientError::Silent(KILL_WAIT_MAX))) {
        Ok(()) => terminal.wait_after_kill().await,
        Err(error) => {
            tracing::warn!(%error, "the client may not have ended a command");
            if matches!(error, ClientError::Silent(_)) {
                return Err(error);
            }
        }
    }
    Ok(())
}

impl CommandExit {
    fn from_client_exit(exit: TerminalExit) -> Self {
        match exit {
            TerminalExit { code: Some(code), .. } => {
                Self::Here(ExitReason::Exited(i32::try_from(code).unwrap_or(i32::MAX)))
            }
            TerminalExit { signal: Some(signal), .. } => Self::InClient { signal },
            TerminalExit { code: None, signal: None } => {
                Self::Lost("the client does not say how it ended".into())
            }
        }
    }
}

/// A command that runs on in a terminal of the client. Dropping it gives the terminal back, which ends the command.
#[derive(Debug)]
pub(super) struct ClientJob {
    terminal: Arc<ClientTerminal>,
    ended: watch::Receiver<Option<CommandExit>>,
    mark: Mutex<ReadPosition>,
    spill_dir: std::path::PathBuf,
    _unwatched: DropGuard,
}

impl ClientJob {
    fn start(terminal: Arc<ClientTerminal>, lifetime: Duration, spill_dir: &std::path::Path) -> Self {
        let (ends, ended) = watch::channel(None);
        let unwatched = CancellationToken::new();
        tokio::spawn(watch_lifetime(terminal.clone(), lifetime, ends, unwatched.clone()));
        let (mark, spill_dir) = (Mutex::default(), spill_dir.to_owned());
        Self { terminal, ended, mark, spill_dir, _unwatched: unwatched.drop_guard() }
    }

    pub(super) fn command_exit(&self) -> Option<CommandExit> {
        self.ended.borrow().clone()
    }

    /// Waits until it ended, at most so long.
    pub(super) async fn wait_for_exit(&self, within: Duration) {
        let mut ended = self.ended.clone();
        // Whether it did is what it says then.
        let _ = timeout_at(Instant::now() + within, ended.wait_for(Option::is_some)).await;
    }

    /// Takes what it said since this was last done.
    pub(super) async fn take_output(&self, cut: &CancellationToken) -> CapturedOutput {
        let shown = read_output(&self.terminal, cut).await;
        let fresh = self.mark.lock().unwrap_or_else(PoisonError::into_inner).take_new_text(&shown);
        CapturedOutput::from_text(&fresh, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await
    }

    pub(super) async fn end_command(&self) {
        // Giving it back is all that is left when the client does not hear.
        let _ = kill_terminal(&self.terminal, &CancellationToken::new()).await;
    }
}

/// Waits for the end of a command, and ends it when its time is over.
async fn watch_lifetime(
    terminal: Arc<ClientTerminal>,
    lifetime: Duration,
    ends: watch::Sender<Option<CommandExit>>,
    unwatched: CancellationToken,
) {
    let how = match terminal.wait_for_exit(lifetime, &unwatched).await {
        Ok(exit) => CommandExit::from_client_exit(exit),
        Err(ClientError::Silent(_)) => {
            // Its time is over either way.
            let _ = kill_terminal(&terminal, &unwatched).await;
            CommandExit::Here(ExitReason::TimedOut)
        }
        Err(ClientError::Cut) => return,
        Err(error @ ClientError::Refused(_)) => CommandExit::Lost(error.to_string()),
    };
    ends.send_replace(Some(how));
}

/// How far a terminal was read.
#[derive(Debug, Default)]
struct ReadPosition {
    n_bytes: usize,
    /// The end of what was read.
    end: String,
}

impl ReadPosition {
    /// Gives what is new, and moves on to its end.
    fn take_new_text(&mut self, shown: &TerminalText) -> String {
        let text = shown.text.as_str();
        let from = match text.get(..self.n_bytes) {
            Some(before) if !shown.is_cut && before.ends_with(&self.end) => Some(self.n_bytes),
            Some(_) | None if self.end.is_empty() => None,
            Some(_) | None => text.rfind(&self.end).map(|at| at + self.end.len()),
        };
        let fresh = match from {
            Some(from) => text[from..].to_owned(),
            None if shown.is_cut => format!("{CUT}{text}"),
            None => text.to_owned(),
        };
        let start = text.ceil_char_boundary(text.len().saturating_sub(MARK_BYTES));
        *self = Self { n_bytes: text.len(), end: text[start..].to_owned() };
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows what is new of each of these pictures of one terminal; a `…` in front is a beginning that is missing.
    #[track_caller]
    fn assert_new_text(pictures: &[&str], news: &[&str]) {
        let mut mark = ReadPosition::default();
        let found: Vec<String> = pictures
            .iter()
            .map(|text| {
                let (is_cut, text) = (text.starts_with('…'), text.trim_start_matches('…').to_owned());
                mark.take_new_text(&TerminalText { text, is_cut })
            })
            .collect();
        assert_eq!(found, news);
    }

    #[test]
    fn what_is_new_in_a_terminal() {
        assert_new_text(&["", "one\n", "one\ntwo\n", "one\ntwo\n"], &["", "one\n", "two\n", ""]);
        let long = "x".repeat(2 * MARK_BYTES);
        let (whole, rest) = (format!("{long}two\n"), format!("…{}two\nthree\n", &long[MARK_BYTES / 2..]));
        assert_new_text(&[&whole, &rest], &[&whole, "three\n"]);
        assert_new_text(
            &["…two\n", "…two\nthree\n"],
            &["(the client dropped the beginning)\ntwo\n", "three\n"],
        );
        assert_new_text(&["one\n", "drawn anew"], &["one\n", "drawn anew"]);
        assert_new_text(
            &["one\n", "…nothing of it\n"],
            &["one\n", "(the client dropped the beginning)\nnothing of it\n"],
        );
        assert_new_text(&["é\n", "é\né\n"], &["é\n", "é\n"]);
    }
}
