//! The port of a workflow request in a session.

use std::path::Path;
use std::sync::Arc;

use crow_acp::{OfferedAnswers, PermissionOutcome, PermissionSubject};
use crow_core::{
    CallId, ContentPart, CrowPart, Failure, FailureKind, MessageId, PlanEntry, Prompt, Reply, ReplyEnd,
    ReportOutcome, SessionUpdate, SpeckitPart, ToolArguments, ToolCall, ToolCallContent, ToolCallStatus,
    Transcript, TranscriptEntry, replace_control_chars, to_sentence,
};
use crow_model::RequestBounds;
use crow_speckit::{BackgroundWork, StepBaseline};
use crow_store::{DeliveryId, SpeckitEvent, SpeckitRow};
use crow_tools::{UndoRecorder, Workspace};
use crow_workflow::{
    ChildTask, ChildTaskReport, ConfirmationAnswer, ConfirmationSubject, FeatureBinding, ServerTool,
    SessionFacts, StepConfirmation, StepPolicy, StepReport, StepTurnEnd, SyntheticCall, UserQuestions,
    WorkflowExit, WorkflowPort,
};

use super::binding::feature_binding;
use super::child_tasks::ChildTasks;
use super::user_forms::UserForms;
use super::user_prompt::{self, PromptInput, SteeringReceiver};
use crate::calls;
use crate::clock;
use crate::confirm::{ConfirmationRequest, ask_confirmation, synthetic_call_id};
use crate::failures::store_failure;
use crate::permission_gate;
use crate::run_turn::run_turn;
use crate::turn_context::{ClaimOutcome, SessionState, TurnCx, TurnHookState};
use crow_files::hash_content;

/// The source of the workflow's confirmations.
const SOURCE: &str = "speckit";

/// A workflow request in its session.
pub(super) struct SessionPort<'a> {
    cx: TurnCx<'a>,
    state: &'a mut SessionState,
    steering: SteeringReceiver<'a>,
    input: PromptInput,
    children: ChildTasks<'a>,
}

impl<'a> SessionPort<'a> {
    pub(super) fn new(
        cx: TurnCx<'a>,
        state: &'a mut SessionState,
        steering: SteeringReceiver<'a>,
        input: PromptInput,
    ) -> Self {
        Self { cx, state, steering, input, children: ChildTasks::default() }
    }

    /// Appends a part without a request, with deliveries.
    async fn append_with_deliveries(
        &mut self,
        part: ContentPart,
        delivery_ids: &[DeliveryId],
    ) -> Result<(), Failure> {
        let id = self.state.transcript.next_message_id();
        let entry = TranscriptEntry::Prompt(Prompt { id, parts: vec![part] });
        let outcome = self.cx.append_with_claims(self.state, entry.clone(), delivery_ids).await;
        if outcome.is_err() && !delivery_ids.is_empty() {
            self.cx.children.mark_mail_pending();
        }
        match outcome? {
            ClaimOutcome::Stored => Ok(()),
            ClaimOutcome::AlreadyClaimed => self.cx.append_entry(self.state, entry).await,
        }
    }
}

impl WorkflowPort for SessionPort<'_> {
    async fn read_facts(&mut self) -> Result<SessionFacts, Failure> {
        let cx = &self.cx;
        let binding = feature_binding(cx.runtime, cx.session).await.map_err(store_failure)?;
        let (config, cwd) = (cx.runtime.config(), cx.workspace.cwd().to_owned());
        let resolve = move || {
            let cwd = crow_files::resolve_links(&cwd);
            let repository = crow_project::repository_root(&cwd).to_owned();
            (cwd, repository)
        };
        let resolved = cx.runtime.spawn_blocking(resolve).await;
        let (cwd, repository) =
            resolved.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        Ok(SessionFacts {
            binding,
            config: config.workflow.clone(),
            prompts_dir: config.prompts_dir.clone(),
            config_file: config.config_dir.join("config.yaml"),
            cwd,
            roots: cx.workspace.roots().to_vec(),
            repository,
            approvals: Arc::new(cx.config_loader.current_config().approved.clone()),
            now: clock::local_now(),
        })
    }

    fn check_model(&self) -> Result<(), Failure> {
        self.cx.current_model().map(drop)
    }

    fn forbidden_write_reason(&self, path: &Path) -> Option<String> {
        permission_gate::forbidden_write_reason(&self.cx, path)
    }

    async fn server_tools(&mut self) -> Vec<ServerTool> {
        self.cx.toolbox.wait_until_connected(self.cx.cancel).await;
        let tools = self.cx.toolbox.served().into_iter();
        tools.map(|(server, name, spec)| ServerTool { server, name, spec }).collect()
    }

    fn is_over(&self) -> bool {
        self.cx.is_over()
    }

    fn transcript(&self) -> &Transcript {
        &self.state.transcript
    }

    fn workspace(&self) -> &Workspace {
        self.cx.workspace
    }

    fn undo_recorder(&self) -> Box<dyn UndoRecorder + '_> {
        let call = synthetic_call_id(&self.cx, self.state.transcript.next_seq());
        Box::new(self.cx.undo_recorder(self.state.turn, call))
    }

    fn background_work(&self) -> BackgroundWork {
        self.cx.background_work()
    }

    async fn bind_feature(&mut self, binding: FeatureBinding) -> Result<(), Failure> {
        let variables = binding.variables();
        let row = SpeckitRow {
            project_root: binding.project_root,
            feature_dir: binding.feature_dir,
            last_command: binding.last_command.map(|last_command| last_command.as_str().to_owned()),
            updated: clock::now(),
        };
        self.cx.runtime.store.set_speckit_state(self.cx.lease, row).await.map_err(store_failure)?;
        self.cx.workspace.set_variables(variables);
        Ok(())
    }

    fn keep_baseline(&mut self, baseline: StepBaseline) {
        self.state.step_baseline = Some(Box::new(baseline));
    }

    fn take_baseline(&mut self) -> Option<StepBaseline> {
        self.state.step_baseline.take().map(|baseline| *baseline)
    }

    async fn append_user_prompt(&mut self, expansion: Option<ContentPart>) -> Result<(), WorkflowExit> {
        let input = std::mem::take(&mut self.input);
        user_prompt::append_user_prompt(&self.cx, self.state, input, expansion).await
    }

    async fn append_part(&mut self, part: ContentPart) -> Result<(), Failure> {
        self.append_with_deliveries(part, &[]).await
    }

    async fn append_child_report(&mut self, part: ContentPart) -> Result<(), Failure> {
        let delivery_ids = self.children.take_deliveries(&self.cx);
        self.append_with_deliveries(part, &delivery_ids).await
    }

    async fn run_turn(
        &mut self,
        prompt: Option<ContentPart>,
        policy: Option<&StepPolicy>,
    ) -> Result<StepTurnEnd, Failure> {
        if let Some(prompt) = prompt {
            let mail = self.cx.children.take_deliveries().await.map_err(store_failure)?;
            self.cx.append_prompt(self.state, vec![prompt], mail).await?;
        }
        // Each turn of a step has its own hook state.
        let hook_state = TurnHookState::default();
        let cx = match policy {
            Some(_) => TurnCx { step_policy: policy, hook_state: &hook_state, ..self.cx },
            None => self.cx,
        };
        let end = run_turn(&cx, self.state, self.steering).await?;
        Ok(StepTurnEnd { end, is_ended_by_hook: hook_state.is_ended() })
    }

    async fn run_call(&mut self, call: SyntheticCall) -> Result<bool, Failure> {
        let seq = self.state.transcript.next_seq();
        let arguments = call.arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        let call = ToolCall {
            id: CallId::from_position(seq, 0),
            provider_id: format!("crow_{seq}"),
            name: call.tool.to_owned(),
            arguments: ToolArguments::Valid(arguments.collect()),
        };
        let reply = Reply {
            id: MessageId::from_seq(seq),
            thought: String::new(),
            text: String::new(),
            calls: vec![call.clone()],
            end: ReplyEnd::Complete,
            usage: None,
            provider_state: None,
            fallback_model: None,
        };
        self.cx.append_entry(self.state, TranscriptEntry::Reply(reply)).await?;
        calls::run_calls(&self.cx, &self.cx.current_tools().tools, &[call], self.state).await?;
        let is_done = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::Result { result, .. } if result.status == ToolCallStatus::Completed);
        Ok(self.state.transcript.entries().last().is_some_and(is_done))
    }

    async fn ask_model(&mut self, system: &str, prompt: String) -> Option<String> {
        let model = self.cx.current_model().ok()?;
        let transcript = Transcript::from_dialogue(system.to_owned(), vec![prompt]).ok()?;
        let reply = self.cx.send_side_request(&model, &transcript, RequestBounds::default()).await;
        (reply.end == ReplyEnd::Complete).then_some(reply.text)
    }

    fn send_text(&self, text: &str) {
        let (message, text) = (self.cx.runtime.next_message_id(), replace_control_chars(text));
        self.cx.client.send_update(self.cx.session, SessionUpdate::Text { message, text });
    }

    fn send_refusal(&self, reason: &str) {
        let text = format!("{}\n", replace_control_chars(to_sentence(reason).trim_end()));
        let (message, outcome) = (self.cx.runtime.next_message_id(), ReportOutcome::NotStarted);
        let update = SessionUpdate::Report { message, text, outcome, next: Vec::new() };
        self.cx.client.send_update(self.cx.session, update);
    }

    fn send_plan(&self, entries: Vec<PlanEntry>) {
        self.cx.client.send_update(self.cx.session, SessionUpdate::Plan(entries));
    }

    async fn send_report(&mut self, report: StepReport) -> Result<(), Failure> {
        let StepReport { command, arguments, text, next, outcome } = report;
        let (message, text) = (self.state.transcript.next_message_id(), replace_control_chars(&text));
        // The model knows the report from here on, and a replay shows it.
        let kind = CrowPart::Speckit(SpeckitPart::Report);
        self.append_part(ContentPart::FromCrow { kind, text: text.clone() }).await?;
        let update = SessionUpdate::Report { message, text, outcome, next };
        self.cx.client.send_update(self.cx.session, update);
        let event = SpeckitEvent {
            ts: clock::now(),
            command: command.as_str().to_owned(),
            args_sha: Some(hash_content(arguments.as_bytes())),
            outcome: outcome.as_str().to_owned(),
            files: changed_files(&self.cx, self.state.turn).await?,
        };
        self.cx.runtime.store.log_speckit_event(self.cx.lease, event).await.map_err(store_failure)
    }

    async fn confirm(&mut self, confirmation: StepConfirmation) -> ConfirmationAnswer {
        let (subject, answers) = match confirmation.subject {
            ConfirmationSubject::Step => (PermissionSubject::Call, OfferedAnswers::Once),
            ConfirmationSubject::Proposal => (PermissionSubject::Proposal, OfferedAnswers::Once),
            ConfirmationSubject::RepeatedProposal => (PermissionSubject::Proposal, OfferedAnswers::Session),
        };
        let content = confirmation.texts.into_iter().map(ToolCallContent::Text).collect();
        let request =
            ConfirmationRequest { source: SOURCE, title: &confirmation.title, content, subject, answers };
        match ask_confirmation(&self.cx, request, self.state).await {
            PermissionOutcome::AllowOnce => ConfirmationAnswer::Allowed { is_lasting: false },
            PermissionOutcome::AllowForSession
            | PermissionOutcome::AllowInProject
            | PermissionOutcome::AllowPrefixInProject(_) => ConfirmationAnswer::Allowed { is_lasting: true },
            PermissionOutcome::Reject => ConfirmationAnswer::Rejected { is_lasting: false },
            PermissionOutcome::RejectForSession | PermissionOutcome::RejectWithFeedback => {
                ConfirmationAnswer::Rejected { is_lasting: true }
            }
            PermissionOutcome::Cancelled => ConfirmationAnswer::Cancelled,
            PermissionOutcome::Unavailable { reason } => ConfirmationAnswer::Unavailable { reason },
        }
    }

    fn user_questions(&self) -> Arc<dyn UserQuestions> {
        Arc::new(UserForms {
            runtime: self.cx.runtime.clone(),
            client: self.cx.client.clone(),
            session: self.cx.session.clone(),
        })
    }

    async fn start_child(&mut self, task: ChildTask) -> bool {
        self.children.start_child(self.cx, self.state, task).await
    }

    async fn next_child_report(&mut self) -> Option<ChildTaskReport> {
        self.children.next_report().await
    }
}

/// Returns the files changed in a turn, by tools and by Crow.
async fn changed_files(cx: &TurnCx<'_>, turn: u64) -> Result<Vec<String>, Failure> {
    let changes = cx.runtime.store.last_changes(cx.session).await.map_err(store_failure)?;
    let turn_changes = changes.into_iter().filter(|change| change.turn == turn);
    let mut paths: Vec<String> = turn_changes.map(|change| change.path).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}
