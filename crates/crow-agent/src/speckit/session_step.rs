//! The port of a step in a session.

use crow_core::{ContentPart, Failure, TurnEnd};
use crow_speckit::{Feature, HookTiming, StepBaseline};

use crate::speckit::issues::IssueHome;
use crate::speckit::step::WorkflowStep;
use crate::speckit::step_hooks::{self, HookContext};
use crate::speckit::step_policy::SharedStepState;
use crate::speckit::step_port::{StepPort, StepReport};
use crate::speckit::step_scope::StepScope;
use crate::speckit::user_prompt::SteeringReceiver;
use crate::turn_context::SessionState;

/// A step in its session.
pub(super) struct SessionStep<'a, 'b> {
    pub(super) step: &'a WorkflowStep<'b>,
    pub(super) state: &'a mut SessionState,
    pub(super) steering: SteeringReceiver<'a>,
}

impl StepPort for SessionStep<'_, '_> {
    fn scope(&self) -> &StepScope {
        &self.step.scope
    }

    fn step_state(&self) -> &SharedStepState {
        &self.step.policy.step_state
    }

    fn send_note(&self, text: &str) {
        self.step.send_note(text);
    }

    fn keep_baseline(&mut self, baseline: StepBaseline) {
        self.state.step_baseline = Some(Box::new(baseline));
    }

    fn issue_summary(&self) -> Option<String> {
        self.step.policy.issues.as_ref().map(IssueHome::line)
    }

    async fn run_turn(&mut self, prompt: ContentPart) -> Result<TurnEnd, Failure> {
        self.step.run_turn(self.state, vec![prompt], self.steering).await
    }

    async fn run_after_hooks(&mut self) -> Result<Option<TurnEnd>, Failure> {
        let scope = &self.step.scope;
        let plan = scope.feature.as_ref().map(Feature::plan_path);
        let hook_context = HookContext {
            timing: HookTiming::After,
            command: scope.definition.command,
            context: &scope.context,
            invocation: None,
            plan_path: plan.as_deref(),
        };
        step_hooks::run_hooks(&self.step.cx, self.state, hook_context, self.steering).await
    }

    async fn write_tasks(&mut self, text: &str) -> Result<(), String> {
        self.step.write_tasks(text, self.state).await
    }

    async fn send_plan(&mut self) -> Result<(), Failure> {
        self.step.send_plan(&[]).await
    }

    async fn send_report(&mut self, report: StepReport) -> Result<(), Failure> {
        self.step.send_report(report, self.state).await
    }
}
