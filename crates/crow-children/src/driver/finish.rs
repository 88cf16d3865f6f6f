//! The end of a turn: its worktree is settled, its report is stored, and then those who wait are told.

use std::sync::PoisonError;

use crow_core::{AgentTransport, ChildOutcome, ChildTurnEnd};
use crow_store::{TaskEnd, TaskState};

use crate::driver::ChildDriver;
use crate::report::{ChildTurnSummary, TaskContinuation, render_report};
use crate::shared::ChildrenShared;
use crate::worktree::{AgentWorktree, WorktreeEnd};

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
        let shared = self.event_handler.shared.clone();
        let worktree = match &self.parameters.worktree {
            Some(worktree) => Some(settle_worktree(worktree, &shared).await),
            None => None,
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
                worktree: worktree.as_ref().map(|worktree| worktree.text.as_str()),
                continuation,
            };
            render_report(&summary, &view)
        };
        let now = shared.session.now();
        let WorktreeEnd { branch, diff, fetched, kept: _, text: _, problem: _ } =
            worktree.unwrap_or_default();
        let end = TaskEnd { state, n_tokens, branch, delivery: Some(text.clone()), now };
        if let Some(lease) = &self.lease {
            match shared.store.end_task(lease, end).await {
                Ok(_) => self.parameters.end_stored.cancel(),
                Err(error) => tracing::error!(%error, %task, "the end of a task could not be stored"),
            }
        }
        if let Some(fetched) = fetched {
            fetched.delete().await;
        }
        let notify_parent = turn.request.notify_parent;
        drop(turn);
        self.event_handler.send_child_state(false);
        self.status.end_turn(state, text, Some(diff).filter(|diff| !diff.is_empty()));
        if notify_parent {
            shared.notify_mail(state);
        }
    }
}

/// Puts the work in a child's own worktree on a branch.
async fn settle_worktree(worktree: &AgentWorktree, shared: &ChildrenShared) -> WorktreeEnd {
    let (git, scratch_dir) = (shared.session.git(), shared.session.agents_config().worktrees_dir);
    worktree.settle(&git, &shared.farms, &scratch_dir).await
}

fn task_state(outcome: ChildOutcome) -> TaskState {
    match outcome {
        ChildOutcome::Completed => TaskState::Completed,
        ChildOutcome::Failed => TaskState::Failed,
        ChildOutcome::Cancelled => TaskState::Cancelled,
    }
}
