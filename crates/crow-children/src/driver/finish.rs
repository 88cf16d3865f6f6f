//! The end of a turn: its worktree is settled, its report is stored, and then those who wait are told.

use std::sync::PoisonError;

use crow_core::{AgentTransport, ChildOutcome, ChildTurnEnd};
use crow_store::{TaskEnd, TaskState};
use crow_tools::{GitCli, SettledWorktree, Worktree};
use tokio_util::sync::CancellationToken;

use crate::driver::ChildDriver;
use crate::report::{self, ChildTurnSummary, TaskContinuation, render_report};
use crate::turn::ChildStatus;

impl ChildDriver {
    /// Ends the running turn: first in the store, then for those who wait.
    pub(super) async fn finish_turn(&mut self, ChildTurnEnd { outcome, reason }: ChildTurnEnd) {
        let Some(turn) = self.turn.take() else { return };
        // Its open questions are no longer answered.
        turn.questions.cancel();
        let (task, state) = (&self.parameters.task, task_state(outcome));
        if let Some(record) = self.event_handler.recorder.take()
            && let Err(error) = record.end().await
        {
            tracing::warn!(%error, %task, "what a child said could not be stored");
        }
        let n_tokens = self.event_handler.n_turn_tokens;
        turn.record_end(&self.parameters.agent_name, task, state);
        let git = self.event_handler.shared.session.git();
        let (branch, worktree, diff) = match &self.parameters.worktree {
            Some(worktree) => {
                let (settled, text) = settle_worktree(worktree, &git).await;
                (settled.branch, Some(text), Some(settled.diff))
            }
            None => (None, None, None),
        };
        let has_session = self.held.session.is_some() || self.parameters.has_stored_session;
        let continuation = match has_session {
            true if matches!(self.parameters.transport, AgentTransport::Farm(_)) => TaskContinuation::OneTurn,
            true => TaskContinuation::Possible,
            false => TaskContinuation::NoSession,
        };
        let text = {
            let view = self.event_handler.view.lock().unwrap_or_else(PoisonError::into_inner);
            let summary = ChildTurnSummary {
                task,
                label: &self.event_handler.label,
                state,
                reason: reason.as_deref(),
                n_tokens: Some(n_tokens),
                worktree: worktree.as_deref(),
                continuation,
            };
            render_report(&summary, &view)
        };
        let shared = self.event_handler.shared.clone();
        let now = shared.session.now();
        let end = TaskEnd { state, n_tokens, branch, delivery: Some(text.clone()), now };
        if let Some(lease) = &self.lease
            && let Err(error) = shared.store.end_task(lease, end).await
        {
            tracing::error!(%error, %task, "the end of a task could not be stored");
        }
        let notify_parent = turn.request.notify_parent;
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
}

/// Commits the changes in a child's own worktree; returns the outcome and its description.
async fn settle_worktree(worktree: &Worktree, git: &GitCli) -> (SettledWorktree, String) {
    // This is short, and cancelling the child must not interrupt it.
    let settled = worktree.settle(git, &CancellationToken::new()).await;
    let text = report::describe_worktree(worktree, &settled);
    (settled, text)
}

fn task_state(outcome: ChildOutcome) -> TaskState {
    match outcome {
        ChildOutcome::Completed => TaskState::Completed,
        ChildOutcome::Failed => TaskState::Failed,
        ChildOutcome::Cancelled => TaskState::Cancelled,
    }
}
