//! The output of one task: collected, not shown.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crow_acp::{AgentUpdate, PromptOutcome};
use crow_core::{Failure, FailureKind, SessionId};
use tokio::sync::Notify;

use crate::{
    failure::CliError,
    run::{AnswerText, ContinuationHint, RunOutput, SessionRetention},
};

/// The record of a task so far, shared by its run and the batch.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskRecord(Arc<Mutex<TaskProgress>>);

/// The progress of a task.
#[derive(Debug, Default)]
pub(super) struct TaskProgress {
    pub(super) session: Option<String>,
    /// The branch with its work.
    pub(super) branch: Option<String>,
    /// Its worktree, if that was kept.
    pub(super) kept_worktree: Option<String>,
    pub(super) answer: AnswerText,
    /// Tokens used so far, if the agent says so.
    pub(super) tokens: Option<u64>,
    /// The error that the run would have shown.
    pub(super) error: Option<CliError>,
    /// The kind of a failure of the turn.
    pub(super) failure_kind: Option<FailureKind>,
}

impl TaskRecord {
    pub(super) fn lock(&self) -> MutexGuard<'_, TaskProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a run into a record.
pub(super) struct TaskOutput {
    pub(super) record: TaskRecord,
    /// Told when the tokens change.
    pub(super) tokens_changed: Arc<Notify>,
}

impl TaskOutput {
    fn set_tokens(&self, tokens: Option<u64>) {
        if tokens.is_some() {
            self.record.lock().tokens = tokens;
            self.tokens_changed.notify_one();
        }
    }
}

impl RunOutput for TaskOutput {
    fn on_session_opened(&mut self, session: &SessionId) -> io::Result<()> {
        self.record.lock().session = Some(session.to_string());
        Ok(())
    }

    fn on_update(&mut self, update: AgentUpdate) -> io::Result<()> {
        self.record.lock().answer.on_update(&update);
        if let AgentUpdate::Usage { tokens_spent, .. } = update {
            self.set_tokens(tokens_spent);
        }
        Ok(())
    }

    fn on_turn_end(&mut self, outcome: PromptOutcome) -> io::Result<()> {
        self.set_tokens(outcome.tokens_spent);
        Ok(())
    }

    fn on_turn_failed(&mut self, failure: &Failure) -> io::Result<()> {
        self.record.lock().failure_kind = Some(failure.kind);
        Ok(())
    }

    fn on_error(&mut self, error: &CliError) -> io::Result<()> {
        if error.message().is_some() {
            self.record.lock().error = Some(error.clone());
        }
        Ok(())
    }

    fn on_first_prompt(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_turn_start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_stopping(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn prepare_for_input(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_replay_start(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn on_replay_end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_new_message(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn on_session_end(
        &mut self,
        _: &SessionId,
        _: SessionRetention,
        _: ContinuationHint<'_>,
    ) -> io::Result<()> {
        Ok(())
    }
}
