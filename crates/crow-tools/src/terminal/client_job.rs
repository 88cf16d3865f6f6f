//! Terminals of the client, and the jobs in them. Must not know the call that started a job.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crow_acp::{ClientError, ClientTerminal};
use crow_process::{CapturedOutput, ExitReason};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    command_exit::CommandExit,
    limits::{HEAD_BYTES, TAIL_BYTES},
};

/// A client that does not kill a command in this time does not respond at all.
const KILL_WAIT_MAX: Duration = Duration::from_secs(5);

/// Enough of the end of the output to find the position again if the beginning is gone.
const POSITION_BYTES: usize = 1024;

/// Precedes output that lost its beginning.
pub(super) const TRUNCATED_NOTE: &str = "(the client dropped the beginning)\n";

/// Output of a terminal; the beginning may be missing.
pub(super) struct TerminalText {
    pub(super) text: String,
    pub(super) is_truncated: bool,
}

impl TerminalText {
    pub(super) fn from_error(reason: &ClientError) -> Self {
        Self { text: format!("(the output is lost: {reason})\n"), is_truncated: false }
    }
}

pub(super) async fn read_output(terminal: &ClientTerminal, cancel: &CancellationToken) -> TerminalText {
    match terminal.read_output(cancel).await {
        Ok(output) => TerminalText { text: output.text, is_truncated: output.is_truncated },
        Err(error) => TerminalText::from_error(&error),
    }
}

/// Lets the client kill a command. `Err` means that the client does not respond.
pub(super) async fn kill_terminal(
    terminal: &ClientTerminal,
    cancel: &CancellationToken,
) -> Result<(), ClientError> {
    let kill_result = timeout(KILL_WAIT_MAX, terminal.kill(cancel)).await;
    match kill_result.unwrap_or(Err(ClientError::TimedOut(KILL_WAIT_MAX))) {
        Ok(()) => terminal.wait_after_kill().await,
        Err(error) => {
            tracing::warn!(%error, "the client may not have killed a command");
            if matches!(error, ClientError::TimedOut(_)) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// A command that continues in a terminal of the client. Dropping it releases the terminal, which ends the command.
#[derive(Debug)]
pub(super) struct ClientJob {
    terminal: Arc<ClientTerminal>,
    exit: watch::Receiver<Option<CommandExit>>,
    position: Mutex<ReadPosition>,
    spill_dir: PathBuf,
    _watch_guard: DropGuard,
}

impl ClientJob {
    pub(super) fn start(terminal: Arc<ClientTerminal>, lifetime: Duration, spill_dir: &Path) -> Self {
        let (exit_sender, exit) = watch::channel(None);
        let watch_cancel = CancellationToken::new();
        tokio::spawn(watch_lifetime(terminal.clone(), lifetime, exit_sender, watch_cancel.clone()));
        let (position, spill_dir) = (Mutex::default(), spill_dir.to_owned());
        Self { terminal, exit, position, spill_dir, _watch_guard: watch_cancel.drop_guard() }
    }

    pub(super) fn command_exit(&self) -> Option<CommandExit> {
        self.exit.borrow().clone()
    }

    /// Waits until it has ended, for at most `limit`.
    pub(super) async fn wait_for_exit(&self, limit: Duration) {
        let mut exit = self.exit.clone();
        // The exit is read separately.
        let _ = timeout_at(Instant::now() + limit, exit.wait_for(Option::is_some)).await;
    }

    /// Returns the output since the last call.
    pub(super) async fn take_output(&self, cancel: &CancellationToken) -> CapturedOutput {
        let output = read_output(&self.terminal, cancel).await;
        let new_text = self.position.lock().unwrap_or_else(PoisonError::into_inner).take_new_text(&output);
        CapturedOutput::from_text(&new_text, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await
    }

    pub(super) async fn end_command(&self) {
        // Dropping the job releases the terminal if the kill fails.
        let _ = kill_terminal(&self.terminal, &CancellationToken::new()).await;
    }
}

/// Waits for a command's exit, and kills it at the end of its lifetime.
async fn watch_lifetime(
    terminal: Arc<ClientTerminal>,
    lifetime: Duration,
    exit_sender: watch::Sender<Option<CommandExit>>,
    watch_cancel: CancellationToken,
) {
    let exit = match terminal.wait_for_exit(lifetime, &watch_cancel).await {
        Ok(exit) => CommandExit::from_client_exit(exit),
        Err(ClientError::TimedOut(_)) => {
            // The lifetime is over either way.
            let _ = kill_terminal(&terminal, &watch_cancel).await;
            CommandExit::Known(ExitReason::TimedOut)
        }
        Err(ClientError::Cancelled) => return,
        Err(error @ ClientError::Rejected(_)) => CommandExit::Unknown(error.to_string()),
    };
    exit_sender.send_replace(Some(exit));
}

/// The position up to which a terminal's output was read.
#[derive(Debug, Default)]
struct ReadPosition {
    n_bytes: usize,
    /// The end of the output that was read.
    tail: String,
}

impl ReadPosition {
    /// Returns the new output and advances the position.
    fn take_new_text(&mut self, output: &TerminalText) -> String {
        let text = output.text.as_str();
        let new_start = match text.get(..self.n_bytes) {
            Some(before) if !output.is_truncated && before.ends_with(&self.tail) => Some(self.n_bytes),
            Some(_) | None if self.tail.is_empty() => None,
            Some(_) | None => text.rfind(&self.tail).map(|at| at + self.tail.len()),
        };
        let new_text = match new_start {
            Some(new_start) => text[new_start..].to_owned(),
            None if output.is_truncated => format!("{TRUNCATED_NOTE}{text}"),
            None => text.to_owned(),
        };
        let start = text.ceil_char_boundary(text.len().saturating_sub(POSITION_BYTES));
        *self = Self { n_bytes: text.len(), tail: text[start..].to_owned() };
        new_text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the new text of each of these outputs of one terminal; a leading `…` is a missing beginning.
    #[track_caller]
    fn assert_new_text(outputs: &[&str], expected: &[&str]) {
        let mut position = ReadPosition::default();
        let new_texts: Vec<String> = outputs
            .iter()
            .map(|text| {
                let (is_truncated, text) = (text.starts_with('…'), text.trim_start_matches('…').to_owned());
                position.take_new_text(&TerminalText { text, is_truncated })
            })
            .collect();
        assert_eq!(new_texts, expected);
    }

    #[test]
    fn new_output_is_found_in_a_terminal() {
        assert_new_text(&["", "one\n", "one\ntwo\n", "one\ntwo\n"], &["", "one\n", "two\n", ""]);
        let long = "x".repeat(2 * POSITION_BYTES);
        let (whole, rest) = (format!("{long}two\n"), format!("…{}two\nthree\n", &long[POSITION_BYTES / 2..]));
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
