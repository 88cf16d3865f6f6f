//! A running workflow step: its requests to the model, its messages to the user, and the files it restores.

use std::path::Path;

use crow_core::{
    CallId, ContentPart, CrowPart, Failure, PlanEntry, PlanPriority, PlanStatus, Prompt, SessionUpdate,
    SpeckitPart, TranscriptEntry, TurnEnd,
};
use crow_speckit::{
    ProtectedChangeKind, SET_ASIDE_DIR, TaskFacts, TaskId, TaskList, TaskPlanPriority, TickState,
    build_plan_view, set_task_ticked,
};
use crow_store::{DeliveryId, SpeckitEvent};
use serde_json::json;
use tokio::sync::mpsc;

use crate::clock;
use crate::confirm::{replace_control_chars, synthetic_call_id};
use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::run_turn::run_turn;
use crate::speckit::issues::IssueHome;
use crate::speckit::project_files::{self, project_failure, run_blocking};
use crate::speckit::report;
use crate::speckit::step_policy::StepPolicy;
use crate::speckit::step_port::StepReport;
use crate::speckit::step_prompt::StepPrompt;
use crate::speckit::step_scope::StepScope;
use crate::turn_context::TurnHookState;
use crate::turn_context::{ClaimOutcome, SessionState, TurnCx};
use crate::undo_recorder::CallUndoRecorder;

/// A running step.
pub(super) struct WorkflowStep<'a> {
    pub(super) cx: TurnCx<'a>,
    pub(super) scope: StepScope,
    pub(super) policy: StepPolicy,
    /// The source of its prompt.
    pub(super) prompt: StepPrompt,
}

impl WorkflowStep<'_> {
    /// Runs a turn with a prompt within the limits of the step; files that it may not change are restored at the end.
    pub(super) async fn run_turn(
        &self,
        state: &mut SessionState,
        parts: Vec<ContentPart>,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let mail = self.cx.children.take_deliveries().await.map_err(store_failure)?;
        self.cx.append_prompt(state, parts, mail).await?;
        self.continue_turn(state, steering).await
    }

    /// Continues the turn within the limits of the step.
    pub(super) async fn continue_turn(
        &self,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        // Each turn of a step has its own hook state.
        let hook_state = TurnHookState::default();
        let cx = TurnCx { turn_policy: Some(&self.policy), hook_state: &hook_state, ..self.cx };
        let end = run_turn(&cx, state, steering).await;
        if hook_state.is_ended() {
            self.policy.step_state.lock_state().has_stopped = true;
        }
        // Also after a failed turn.
        let restored = self.restore_files().await;
        let end = end?;
        restored?;
        Ok(end)
    }

    /// Whether the user, or a hook, ended the step.
    pub(super) fn has_stopped(&self) -> bool {
        self.policy.step_state.lock_state().has_stopped
    }

    /// Appends parts to the model's context without a request.
    pub(super) async fn append_parts(
        &self,
        state: &mut SessionState,
        parts: Vec<ContentPart>,
        delivery_ids: &[DeliveryId],
    ) -> Result<(), Failure> {
        let entry = TranscriptEntry::Prompt(Prompt { id: state.transcript.next_message_id(), parts });
        let outcome = self.cx.append_with_claims(state, entry.clone(), delivery_ids).await;
        if outcome.is_err() && !delivery_ids.is_empty() {
            self.cx.children.mark_mail_pending();
        }
        match outcome? {
            ClaimOutcome::Stored => Ok(()),
            ClaimOutcome::AlreadyClaimed => self.cx.append_entry(state, entry).await,
        }
    }

    /// Restores files that may not be changed in this step, and reports it.
    pub(super) async fn restore_files(&self) -> Result<(), Failure> {
        let background = self.cx.background_work();
        let restored = self.policy.with_watch(move |watch| watch.end_turn(background)).await;
        for change in restored.map_err(project_failure)? {
            let (path, command) =
                (self.scope.context.project.display_path(&change.path), self.scope.definition.command);
            let detail = match change.kind {
                _ if !change.is_undone => "; the change was kept".to_owned(),
                ProtectedChangeKind::Changed => {
                    let set_aside_dir = self.scope.context.project.specify_path(SET_ASIDE_DIR);
                    format!(
                        "; it was restored, and the changed version is in {}",
                        self.scope.context.project.display_path(&set_aside_dir)
                    )
                }
                ProtectedChangeKind::Removed => "; it was restored".to_owned(),
                ProtectedChangeKind::Created => {
                    let set_aside_dir = self.scope.context.project.specify_path(SET_ASIDE_DIR);
                    format!(
                        "; it was new and was moved to {}",
                        self.scope.context.project.display_path(&set_aside_dir)
                    )
                }
            };
            self.send_note(&format!("{command} may not change {path}{detail}."));
        }
        Ok(())
    }

    /// Sends a message to the user, in the model's text.
    pub(super) fn send_note(&self, text: &str) {
        let message = self.cx.runtime.next_message_id();
        let text = format!("\n{}\n", replace_control_chars(text.trim()));
        self.cx.client.send_update(self.cx.session, SessionUpdate::Text { message, text });
    }

    /// Returns an id for a call without a reply.
    pub(super) fn synthetic_call_id(&self, state: &SessionState) -> CallId {
        synthetic_call_id(&self.cx, state)
    }

    /// Renders the first prompt of the step.
    pub(super) async fn opening_part(&self, current: Vec<TaskFacts>) -> Result<ContentPart, Failure> {
        let (prompt, mut facts) = (self.prompt.clone(), self.scope.prompt_facts().await?);
        facts.tasks.current = current;
        facts.issues = self.policy.issues.as_ref().map(IssueHome::facts).unwrap_or_default();
        let text = run_blocking(move || prompt.render_prompt(&facts)).await.map_err(project_failure)?;
        Ok(hidden_part(SpeckitPart::Step(self.scope.definition.command.as_str().to_owned()), text))
    }

    /// Sends the report of the step and stores it.
    pub(super) async fn send_report(
        &self,
        StepReport { text, next, outcome }: StepReport,
        state: &mut SessionState,
    ) -> Result<(), Failure> {
        let message = state.transcript.next_message_id();
        let text = replace_control_chars(&format!("{text}{}", report::render_handoffs(&next)));
        // The model knows the report from here on, and a replay shows it.
        self.append_parts(state, vec![hidden_part(SpeckitPart::Report, text.clone())], &[]).await?;
        self.cx.client.send_update(self.cx.session, SessionUpdate::Report { message, text, outcome, next });
        let event = SpeckitEvent {
            ts: clock::now(),
            command: self.scope.definition.command.as_str().to_owned(),
            args_sha: Some(project_files::hash_text(&self.scope.text)),
            outcome: outcome.as_str().to_owned(),
            files: self.changed_files(state).await?,
        };
        self.cx.runtime.store.log_speckit_event(self.cx.lease, event).await.map_err(store_failure)
    }

    /// Returns the files changed since the step began, by tools and by Crow.
    async fn changed_files(&self, state: &SessionState) -> Result<Vec<String>, Failure> {
        let changes = self.cx.runtime.store.last_changes(self.cx.session).await.map_err(store_failure)?;
        let step_changes = changes.into_iter().filter(|change| change.turn == state.turn);
        let mut paths: Vec<String> = step_changes.map(|change| change.path).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Ticks or unticks a task.
    pub(super) async fn mark_task(
        &self,
        id: &TaskId,
        tick: TickState,
        state: &SessionState,
    ) -> Result<(), String> {
        let text = self.scope.read_tasks_text().await.map_err(|failure| failure.message)?;
        let updated = set_task_ticked(&text, id, tick).map_err(|error| error.to_string())?;
        self.write_tasks(&updated, state).await
    }

    pub(super) async fn write_tasks(&self, text: &str, state: &SessionState) -> Result<(), String> {
        let Some(feature) = &self.scope.feature else { return Ok(()) };
        let keeper = self.undo_recorder(state);
        project_files::write_project_file(Some(&keeper), self.cx.workspace, &feature.tasks_path(), text)
            .await?;
        self.accept_file(&feature.tasks_path()).await
    }

    /// Accepts a change that Crow made itself.
    async fn accept_file(&self, path: &Path) -> Result<(), String> {
        let path = path.to_owned();
        let accepted = self.policy.with_watch(move |watch| watch.accept_file(&path)).await?;
        accepted.map_err(|error| error.to_string())
    }

    pub(super) fn undo_recorder(&self, state: &SessionState) -> CallUndoRecorder<'_> {
        CallUndoRecorder::new(&self.cx, state.turn, self.synthetic_call_id(state))
    }

    /// Like [`Self::send_plan`], but an error is only logged.
    pub(super) async fn try_send_plan(&self, running: &[TaskId]) {
        if let Err(failure) = self.send_plan(running).await {
            tracing::warn!(%failure, "the task list could not be shown");
        }
    }

    /// Sends the task list as the plan.
    pub(super) async fn send_plan(&self, running: &[TaskId]) -> Result<(), Failure> {
        let list = self.scope.read_task_list().await?;
        if !list.tasks.is_empty() {
            self.cx.client.send_update(self.cx.session, SessionUpdate::Plan(plan_entries(&list, running)));
        }
        Ok(())
    }
}

/// The source of the workflow's confirmations.
pub(super) const SOURCE: &str = "speckit";

/// Returns the text of a report part.
pub(crate) fn find_report(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::FromCrow { kind: CrowPart::Speckit(SpeckitPart::Report), text } => Some(text),
        ContentPart::FromCrow { .. }
        | ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. } => None,
    }
}

/// Returns a part for the model that a replay does not show.
pub(super) fn hidden_part(part: SpeckitPart, text: String) -> ContentPart {
    ContentPart::FromCrow { kind: CrowPart::Speckit(part), text }
}

/// Converts a task list to a plan.
pub(super) fn plan_entries(list: &TaskList, running: &[TaskId]) -> Vec<PlanEntry> {
    let entries = build_plan_view(list, running).into_iter();
    let entries = entries.map(|entry| PlanEntry {
        text: entry.text,
        priority: match entry.priority {
            TaskPlanPriority::High => PlanPriority::High,
            TaskPlanPriority::Medium => PlanPriority::Medium,
            TaskPlanPriority::Low => PlanPriority::Low,
        },
        status: match entry.status {
            crow_speckit::TaskPlanStatus::Pending => PlanStatus::Pending,
            crow_speckit::TaskPlanStatus::InProgress => PlanStatus::InProgress,
            crow_speckit::TaskPlanStatus::Completed => PlanStatus::Completed,
        },
        meta: Some(json!({ "speckit": {
            "id": entry.id.as_ref().map(TaskId::as_str),
            "phase": entry.phase,
            "story": entry.stories.first().map(|story| format!("US{story}")),
            "parallel": entry.parallel,
            "line": entry.line,
        } })),
    });
    entries.collect()
}
