//! The end of a turn: its cause, its process and worktree, and its report.

use std::sync::PoisonError;
use std::time::Duration;

use crow_acp::{AgentProgram, ProgramEnded, StopReason};
use crow_store::{TaskEnd, TaskState};
use crow_tools::SettledWorktree;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::child::{ChildActor, ChildStatus, ChildStop};
use crate::report::{self, ChildTurnSummary, render_report};

/// Time to wait for the exit of a program whose connection was lost: both happen at the same moment.
const END_WAIT_MAX: Duration = Duration::from_millis(200);

/// The outcome of a turn.
#[derive(Debug)]
pub(crate) struct ChildTurnEnd {
    pub(crate) state: TaskState,
    pub(crate) reason: Option<String>,
}

impl ChildActor {
    /// Ends the running turn, if there is one: first in the store, then for those who wait.
    pub(crate) async fn finish_turn(&mut self, end: ChildTurnEnd) {
        let Some(turn) = self.turn.take() else { return };
        // Its open questions are no longer answered.
        turn.questions.cancel();
        let ChildTurnEnd { state, reason } = end;
        if let Some(record) = self.event_handler.recorder.take()
            && let Err(error) = record.end().await
        {
            tracing::warn!(%error, task = %self.task, "what a child said could not be stored");
        }
        let n_tokens = self.event_handler.n_turn_tokens;
        let settled = self.settle_worktree().await;
        let (branch, worktree, diff) = match settled {
            Some((settled, text)) => (settled.branch, Some(text), Some(settled.diff)),
            None => (None, None, None),
        };
        let text = {
            let view = self.event_handler.view.lock().unwrap_or_else(PoisonError::into_inner);
            let summary = ChildTurnSummary {
                task: &self.task,
                label: &self.event_handler.label,
                state,
                reason: reason.as_deref(),
                n_tokens: Some(n_tokens),
                worktree: worktree.as_deref(),
            };
            render_report(&summary, &view)
        };
        let end = TaskEnd {
            state,
            n_tokens,
            branch,
            delivery: Some(text.clone()),
            now: self.event_handler.shared.session.now(),
        };
        let shared = self.event_handler.shared.clone();
        if let Err(error) = shared.store.end_task(&self.lease, end).await {
            tracing::error!(%error, task = %self.task, "the end of a task could not be stored");
        }
        let notify_parent = turn.notify_parent;
        drop(turn);
        self.event_handler.send_child_state(false);
        self.status.send_modify(|status| {
            let diff = diff.filter(|diff| !diff.is_empty());
            *status = ChildStatus { n_ended: status.n_ended + 1, state, report: text, diff };
        });
        if notify_parent {
            shared.notify_mail(state);
        }
    }

    /// Commits the changes in the child's own worktree; returns the outcome and its description.
    async fn settle_worktree(&self) -> Option<(SettledWorktree, String)> {
        let worktree = self.worktree.as_ref()?;
        let shared = &self.event_handler.shared;
        let git = shared.session.git();
        // This is short, and cancelling the child must not interrupt it.
        let settled = worktree.settle(&git, &CancellationToken::new()).await;
        let text = report::describe_worktree(worktree, &settled);
        Some((settled, text))
    }
}

/// Converts the stop reason of an agent that was not cancelled from here.
pub(crate) fn turn_end_from(reason: StopReason) -> ChildTurnEnd {
    let completed =
        |note: Option<&str>| ChildTurnEnd { state: TaskState::Completed, reason: note.map(str::to_owned) };
    match reason {
        StopReason::EndTurn => completed(None),
        StopReason::MaxTokens => completed(Some("its answer was truncated at the output limit")),
        StopReason::MaxTurnRequests => completed(Some("its turn reached a limit before it was done")),
        StopReason::Refusal => {
            ChildTurnEnd { state: TaskState::Failed, reason: Some("its model refused".to_owned()) }
        }
        StopReason::Cancelled => ChildTurnEnd {
            state: TaskState::Failed,
            reason: Some("it stopped on its own, as some agents do after a rejected request".to_owned()),
        },
    }
}

/// Ends a child's program; returns a description of its exit.
pub(crate) async fn end_program(program: Option<AgentProgram>, stop: Option<&ChildStop>) -> String {
    let Some(mut program) = program else { return String::new() };
    let (exit, shutdown) = match stop {
        Some(ChildStop::Disconnected(_)) => {
            let waited = timeout(END_WAIT_MAX, program.wait_for_exit()).await;
            (waited.ok().flatten(), program.shut_down().await)
        }
        Some(ChildStop::Unresponsive(_)) => (None, program.kill().await),
        Some(ChildStop::Finished(_) | ChildStop::Stopped | ChildStop::Failed(_)) | None => {
            (None, program.shut_down().await)
        }
    };
    let mut text = match exit {
        Some(ProgramEnded::Exited(code)) => format!(" It ended with exit code {code}."),
        Some(ProgramEnded::Signalled(signal)) => format!(" It was ended by signal {signal}."),
        Some(ProgramEnded::TimedOut | ProgramEnded::Cancelled) | None => String::new(),
    };
    let is_reported =
        |stray_output: &str| matches!(stop, Some(ChildStop::Failed(why)) if why.contains(stray_output));
    if let Some(stray_output) = shutdown.stray_line.filter(|stray| !is_reported(stray)) {
        text.push_str(&format!(" It printed a line that is not a protocol message: {stray_output}"));
    }
    if !shutdown.stderr.is_empty() {
        text.push_str(&format!("\nThe end of its stderr:\n{}", shutdown.stderr));
    }
    text
}
