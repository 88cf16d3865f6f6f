//! The port of a running step: what it asks of its session.

use crow_core::{ContentPart, Failure, ReportOutcome, SuggestedCommand, TurnEnd};
use crow_speckit::StepBaseline;

use crate::speckit::step_policy::SharedStepState;
use crate::speckit::step_scope::StepScope;

/// The report of a step.
pub(super) struct StepReport {
    pub(super) text: String,
    pub(super) next: Vec<SuggestedCommand>,
    pub(super) outcome: ReportOutcome,
}

/// The session of a step.
pub(super) trait StepPort {
    /// The step and what it works on.
    fn scope(&self) -> &StepScope;

    /// The state shared with the tools of the step.
    fn step_state(&self) -> &SharedStepState;

    /// Sends a note to the user.
    fn send_note(&self, text: &str);

    /// Keeps the baseline until the user has answered a question.
    fn keep_baseline(&mut self, baseline: StepBaseline);

    /// The line about created issues in the report.
    fn issue_summary(&self) -> Option<String>;

    /// Runs a turn with a prompt, within the policy of the step.
    async fn run_turn(&mut self, prompt: ContentPart) -> Result<TurnEnd, Failure>;

    /// Runs the hooks after the step; returns how the turn ends if a hook ended it.
    async fn run_after_hooks(&mut self) -> Result<Option<TurnEnd>, Failure>;

    /// Writes the task list; the user can undo it.
    async fn write_tasks(&mut self, text: &str) -> Result<(), String>;

    /// Sends the task list as the plan.
    async fn send_plan(&mut self) -> Result<(), Failure>;

    /// Sends the report and stores it.
    async fn send_report(&mut self, report: StepReport) -> Result<(), Failure>;
}
