//! Running a command in a terminal of the client.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crow_acp::{ClientError, ClientTerminal, Editor, Exit};
use crow_process::{Ended, Output};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    HEAD_BYTES, JOB_LIFE, SETTLE, TAIL_BYTES, Terminal,
    held::not_opened,
    here::begun,
    jobs::Place,
    wanted::Start,
    words::{Came, How},
};
use crate::{Progress, ToolCx, tool::Refusal};

/// A client that does not end a command in this time does nothing else for it either.
const KILL_WAIT_MAX: Duration = Duration::from_secs(5);

/// As much of the end of what was shown as tells where it was, when its beginning is gone.
const MARK_BYTES: usize = 1024;

impl Terminal {
    /// Runs a command in a terminal of the client; `None` when it opens none.
    pub(super) async fn run_in_client(
        &self,
        start: &Start,
        editor: &Editor,
        cx: &ToolCx<'_>,
    ) -> Result<Option<Came>, Refusal> {
        let jobs = cx.workspace.jobs();
        let seat = if start.is_job() { Some(jobs.reserve()?) } else { None };
        self.check_client_sandbox(cx)?;
        let terminal = match editor.open_terminal(self.launch(start, cx), cx.cut).await {
            Ok(terminal) => terminal,
            Err(ClientError::Cut) => {
                return Ok(Some(Came::Ended(How::Here(Ended::Cancelled), Output::default())));
            }
            Err(error @ ClientError::Refused(_)) => {
                self.check_refused(&error, editor, cx).await?;
                tracing::warn!(%error, "the client opens no terminal; the command runs here");
                return Ok(None);
            }
            // A client that is merely slow may run it yet.
            Err(error @ ClientError::Silent(_)) => return Err(not_opened(&error)),
        };
        (cx.progress)(Progress::Terminal(terminal.clone()));
        if let Some(seat) = seat {
            let job = ClientJob::start(terminal, start.timeout.unwrap_or(JOB_LIFE), &self.spill_dir);
            let entry = seat.fill(&start.command, cx.confinement, Place::InClient(job));
            cx.cut.run_until_cancelled(entry.wait(SETTLE)).await;
            let came = begun(jobs, entry, cx).await;
            self.check_started(&came, editor, cx).await?;
            return Ok(Some(came));
        }
        let came = self.wait_in_client(start, terminal, cx).await;
        self.check_started(&came, editor, cx).await?;
        Ok(Some(came))
    }

    async fn wait_in_client(&self, start: &Start, terminal: Arc<ClientTerminal>, cx: &ToolCx<'_>) -> Came {
        let patience = start.timeout.unwrap_or(self.soft_limit);
        let how = match terminal.wait(patience, cx.cut).await {
            Ok(exit) => How::of_client(exit),
            Err(ClientError::Silent(_)) if start.timeout.is_none() => {
                if let Ok(seat) = cx.workspace.jobs().reserve() {
                    let job = ClientJob::start(terminal, JOB_LIFE, &self.spill_dir);
                    let entry = seat.fill(&start.command, cx.confinement, Place::InClient(job));
                    let output = entry.take(cx.cut).await;
                    return Came::Runs { entry, output, waited: Some(patience) };
                }
                How::Here(Ended::TimedOut)
            }
            Err(ClientError::Silent(_)) => How::Here(Ended::TimedOut),
            Err(ClientError::Cut) => How::Here(Ended::Cancelled),
            Err(error @ ClientError::Refused(_)) => How::Lost(error.to_string()),
        };
        let is_over = matches!(how, How::Here(Ended::Exited(_)) | How::InClient { .. });
        let killed = if is_over { Ok(()) } else { kill(&terminal, cx.cut).await };
        let said = match killed {
            Ok(()) => said(&terminal, cx.cut).await,
            Err(silent) => Shown::lost(&silent),
        };
        let text = if said.is_cut { format!("{CUT}{}", said.text) } else { said.text };
        Came::Ended(how, Output::of(&text, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await)
    }
}

/// Said in front of what lost its beginning.
const CUT: &str = "(the client dropped the beginning)\n";

/// What a terminal shows; the beginning may be missing.
struct Shown {
    text: String,
    is_cut: bool,
}

impl Shown {
    fn lost(why: &ClientError) -> Self {
        Self { text: format!("(the output is lost: {why})\n"), is_cut: false }
    }
}

async fn said(terminal: &ClientTerminal, cut: &CancellationToken) -> Shown {
    match terminal.output(cut).await {
        Ok(output) => Shown { text: output.text, is_cut: output.is_cut },
        Err(error) => Shown::lost(&error),
    }
}

/// Has the client end a command. The other side is that it says nothing any more.
async fn kill(terminal: &ClientTerminal, cut: &CancellationToken) -> Result<(), ClientError> {
    let killed = timeout(KILL_WAIT_MAX, terminal.kill(cut)).await;
    match killed.unwrap_or(Err(ClientError::Silent(KILL_WAIT_MAX))) {
        Ok(()) => terminal.gone().await,
        Err(error) => {
            tracing::warn!(%error, "the client may not have ended a command");
            if matches!(error, ClientError::Silent(_)) {
                return Err(error);
            }
        }
    }
    Ok(())
}

impl How {
    fn of_client(exit: Exit) -> Self {
        match exit {
            Exit { code: Some(code), .. } => {
                Self::Here(Ended::Exited(i32::try_from(code).unwrap_or(i32::MAX)))
            }
            Exit { signal: Some(signal), .. } => Self::InClient { signal },
            Exit { code: None, signal: None } => Self::Lost("the client does not say how it ended".into()),
        }
    }
}

/// A command that runs on in a terminal of the client. Dropping it gives the terminal back, which ends the command.
#[derive(Debug)]
pub(super) struct ClientJob {
    terminal: Arc<ClientTerminal>,
    ended: watch::Receiver<Option<How>>,
    mark: Mutex<Mark>,
    spill_dir: std::path::PathBuf,
    _unwatched: DropGuard,
}

impl ClientJob {
    fn start(terminal: Arc<ClientTerminal>, lifetime: Duration, spill_dir: &std::path::Path) -> Self {
        let (ends, ended) = watch::channel(None);
        let unwatched = CancellationToken::new();
        tokio::spawn(watch_over(terminal.clone(), lifetime, ends, unwatched.clone()));
        let (mark, spill_dir) = (Mutex::default(), spill_dir.to_owned());
        Self { terminal, ended, mark, spill_dir, _unwatched: unwatched.drop_guard() }
    }

    pub(super) fn ended(&self) -> Option<How> {
        self.ended.borrow().clone()
    }

    /// Waits until it ended, at most so long.
    pub(super) async fn wait(&self, within: Duration) {
        let mut ended = self.ended.clone();
        // Whether it did is what it says then.
        let _ = timeout_at(Instant::now() + within, ended.wait_for(Option::is_some)).await;
    }

    /// Takes what it said since this was last done.
    pub(super) async fn take(&self, cut: &CancellationToken) -> Output {
        let shown = said(&self.terminal, cut).await;
        let fresh = self.mark.lock().unwrap_or_else(PoisonError::into_inner).news(&shown);
        Output::of(&fresh, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await
    }

    pub(super) async fn end(&self) {
        // Giving it back is all that is left when the client does not hear.
        let _ = kill(&self.terminal, &CancellationToken::new()).await;
    }
}

/// Waits for the end of a command, and ends it when its time is over.
async fn watch_over(
    terminal: Arc<ClientTerminal>,
    lifetime: Duration,
    ends: watch::Sender<Option<How>>,
    unwatched: CancellationToken,
) {
    let how = match terminal.wait(lifetime, &unwatched).await {
        Ok(exit) => How::of_client(exit),
        Err(ClientError::Silent(_)) => {
            // Its time is over either way.
            let _ = kill(&terminal, &unwatched).await;
            How::Here(Ended::TimedOut)
        }
        Err(ClientError::Cut) => return,
        Err(error @ ClientError::Refused(_)) => How::Lost(error.to_string()),
    };
    ends.send_replace(Some(how));
}

/// How far a terminal was read.
#[derive(Debug, Default)]
struct Mark {
    n_bytes: usize,
    /// The end of what was read.
    end: String,
}

impl Mark {
    /// Gives what is new, and moves on to its end.
    fn news(&mut self, shown: &Shown) -> String {
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
    fn check(pictures: &[&str], news: &[&str]) {
        let mut mark = Mark::default();
        let found: Vec<String> = pictures
            .iter()
            .map(|text| {
                let (is_cut, text) = (text.starts_with('…'), text.trim_start_matches('…').to_owned());
                mark.news(&Shown { text, is_cut })
            })
            .collect();
        assert_eq!(found, news);
    }

    #[test]
    fn what_is_new_in_a_terminal() {
        check(&["", "one\n", "one\ntwo\n", "one\ntwo\n"], &["", "one\n", "two\n", ""]);
        let long = "x".repeat(2 * MARK_BYTES);
        let (whole, rest) = (format!("{long}two\n"), format!("…{}two\nthree\n", &long[MARK_BYTES / 2..]));
        check(&[&whole, &rest], &[&whole, "three\n"]);
        check(&["…two\n", "…two\nthree\n"], &["(the client dropped the beginning)\ntwo\n", "three\n"]);
        check(&["one\n", "drawn anew"], &["one\n", "drawn anew"]);
        check(
            &["one\n", "…nothing of it\n"],
            &["one\n", "(the client dropped the beginning)\nnothing of it\n"],
        );
        check(&["é\n", "é\né\n"], &["é\n", "é\n"]);
    }
}
