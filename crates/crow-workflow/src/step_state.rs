//! The state of a running step that its tools and its driver share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crow_speckit::ConvergenceGap;

/// State shared with the tools of a step.
#[derive(Debug, Default)]
pub(crate) struct SharedStepState(Mutex<StepState>);

#[derive(Debug, Default)]
pub(crate) struct StepState {
    /// True if no further reply is requested in this turn.
    pub(crate) is_over: bool,
    /// Questions asked since the step began.
    pub(crate) n_questions: usize,
    /// True if the user ended the step.
    pub(crate) has_stopped: bool,
    /// True if a question was shown that the next prompt answers.
    pub(crate) is_waiting: bool,
    /// The task that the model works on, and its result.
    pub(crate) task: Option<String>,
    pub(crate) result: Option<StepTaskResult>,
    /// The reported gaps.
    pub(crate) gaps: Option<Vec<ConvergenceGap>>,
}

/// The result of a task, as reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepTaskResult {
    Done { note: String },
    Failed { reason: String },
}

impl SharedStepState {
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, StepState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns a task.
    pub(crate) fn set_current_task(&self, id: &str) {
        let mut state = self.lock_state();
        state.task = Some(id.to_owned());
        state.result = None;
        state.is_over = false;
    }

    /// Allows further requests to the model.
    pub(crate) fn allow_further_replies(&self) {
        let mut state = self.lock_state();
        state.is_over = false;
        state.is_waiting = false;
    }
}
