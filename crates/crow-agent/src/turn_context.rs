//! The context of a turn: what the parts of a turn share, and the one way to store an entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crow_acp::{Client, ClientEditor, TurnScope};
use crow_children::{ChildAgents, ContextUsage};
use crow_core::{
    CallId, Confinement, ContentPart, Failure, FailureKind, Prompt, Reply, SelectableTools, SelectingModel,
    SessionId, SessionUpdate, TokenUsage, ToolAccess, ToolCall, ToolCallContent, ToolCallInfo,
    ToolCallStatus, ToolProfile, ToolResult, ToolSpec, Transcript, TranscriptEntry, TurnLimits,
    context_limit, model_family,
};
use crow_history::CallUndoRecorder;
use crow_model::{CurrentFallback, EncodedMessages, ModelSettings};
use crow_project::{GrantStore, ProjectConfigLoader};
use crow_speckit::{BackgroundWork, StepBaseline};
use crow_store::{DeliveredEntry, Delivery, DeliveryId, SessionLease, StoreError};
use crow_tools::{ToolCx, ToolSet, Toolbox, Workspace};
use crow_workflow::{EndedCall, StepPolicy};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::builtin_tools;
use crate::clock;
use crate::failures::store_failure;
use crate::live_replays::LiveReplays;
use crate::pending_session::{NewSessionContext, PendingSession};
use crate::runtime::AgentRuntime;
use crate::session_settings::SessionSettings;

/// The context of a turn, without the state that it changes.
#[derive(Clone, Copy)]
pub(crate) struct TurnCx<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) runtime: &'a Arc<AgentRuntime>,
    pub(crate) lease: &'a SessionLease,
    pub(crate) client: &'a Client,
    pub(crate) editor: &'a ClientEditor,
    pub(crate) workspace: &'a Workspace,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) config_loader: &'a ProjectConfigLoader<AgentRuntime>,
    pub(crate) children: &'a ChildAgents,
    pub(crate) approvals: &'a GrantStore<AgentRuntime>,
    pub(crate) settings: &'a watch::Receiver<SessionSettings>,
    pub(crate) replays: &'a LiveReplays,
    pub(crate) turn_scope: TurnScope,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) hook_state: &'a TurnHookState,
    /// The fallback of the session's own model.
    pub(crate) fallback: &'a CurrentFallback,
    /// The restrictions of the running workflow step, if there is one.
    pub(crate) step_policy: Option<&'a StepPolicy>,
}

/// The effect of hooks on a turn so far.
#[derive(Debug, Default)]
pub(crate) struct TurnHookState {
    is_ended: AtomicBool,
}

impl TurnHookState {
    /// Ends the turn after the current calls.
    pub(crate) fn end_turn(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// Whether a hook has ended the turn.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

/// The state of a session between turns.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    pub(crate) transcript: Transcript,
    /// The messages of the transcript that requests have sent.
    pub(crate) encoded_messages: EncodedMessages,
    pub(crate) stored_state: StoredState,
    /// A description of a new session's directory, for its first prompt.
    pub(crate) directory_at_start: Option<String>,
    /// The model about whose tools the user was told.
    pub(crate) reported_tools_model: Option<String>,
    /// A partial reply whose end was never stored.
    pub(crate) unfinished: Option<Reply>,
    pub(crate) is_titled: bool,
    pub(crate) warned: WarnedOnce,
    /// The tool definitions that the store has.
    pub(crate) offered_tools: Arc<[ToolSpec]>,
    /// True if the user rejected a call and gives instructions with the next prompt, for which the turn ends.
    pub(crate) awaits_instructions: bool,
    /// The most times that a read of the last reply was made with the same result.
    pub(crate) n_equal_calls: usize,
    /// Sequence number of the running turn's prompt.
    pub(crate) turn: u64,
    /// The baseline of a step that waits for an answer.
    pub(crate) step_baseline: Option<Box<StepBaseline>>,
}

impl SessionState {
    /// Starts the conversation of a session that was just stored.
    pub(crate) fn begin(&mut self, context: NewSessionContext) {
        self.transcript = Transcript::new(context.system_prompt);
        self.directory_at_start = Some(context.directory_at_start);
    }
}

/// Which limits of the sandbox the user has been warned about.
#[derive(Debug, Default)]
pub(crate) struct WarnedOnce {
    pub(crate) local: AtomicBool,
    pub(crate) in_client: AtomicBool,
}

/// The relation of the store to the transcript between turns.
#[derive(Debug, Default)]
pub(crate) enum StoredState {
    /// The session is not stored yet.
    Pending(PendingSession),
    /// The store has the same transcript.
    Current,
    /// Not known: a turn panicked or could not store. The next turn reloads the state first.
    #[default]
    Unknown,
}

/// The outcome of storing an entry with deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    Stored,
    /// Another process has delivered them to the model already.
    AlreadyClaimed,
}

impl TurnCx<'_> {
    /// Whether the turn was cancelled or its client has disconnected.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.client.is_gone()
    }

    /// Returns the current tools.
    pub(crate) fn current_tools(&self) -> Arc<ToolSet> {
        let current = self.selected_tools(self.toolbox.current_tools());
        match self.step_policy {
            Some(policy) => Arc::new(current.with_tools(policy.extra_tools())),
            None => current,
        }
    }

    /// Returns those of the tools that the session's model gets.
    fn selected_tools(&self, tools: Arc<ToolSet>) -> Arc<ToolSet> {
        let Ok(model) = self.own_model() else { return tools };
        let own = builtin_tools::unbound_tools(self.runtime);
        let alternatives = own.tools.alternative_specs();
        let selectable = SelectableTools { all: &tools.specs, own: &own.specs, alternatives: &alternatives };
        let family_tool = model_family(&model.model).edit_tool;
        let selecting = SelectingModel { context_window: model.context_window, family_tool };
        match model.tools.select_tools(selectable, selecting) {
            Some(specs) => {
                let removed = model.tools.removed_names(selectable, &specs, family_tool);
                Arc::new(ToolSet { tools: tools.tools.without_tools(&removed), specs: specs.into() })
            }
            None => tools,
        }
    }

    /// Notifies the user, once for each model, of what is not plain from its configuration: that a small context window
    /// selects the core tools, or that a tool does not exist.
    pub(crate) fn report_tool_selection(&self, state: &mut SessionState) {
        let Ok(model) = self.own_model() else { return };
        if state.reported_tools_model.as_ref() == Some(&model.name) {
            return;
        }
        let own = builtin_tools::unbound_tools(self.runtime);
        let unknown = model.tools.unknown_names(&own.specs, &own.tools.alternative_specs()).join(", ");
        if model.tools.profile == ToolProfile::Auto && model.gets_core_tools() {
            self.send_notice(format!(
                "The context window of {} is {} tokens, so it gets only the tools {}. `tools: full` in its \
                 configuration gives it all.",
                model.name,
                model.context_window,
                model.tools.core_tool_names(model_family(&model.model).edit_tool).join(", ")
            ));
        }
        if !unknown.is_empty() {
            self.send_notice(format!(
                "`tools` of {} has names of no tool: {unknown}. `crow-cli tools` lists the tools.",
                model.name
            ));
        }
        state.reported_tools_model = Some(model.name);
    }

    fn send_notice(&self, text: String) {
        self.client.send_update(self.session, SessionUpdate::Notice(text));
    }

    /// Lets the running step watch a call.
    pub(crate) async fn begin_call(&self, call: &ToolCall, info: &ToolCallInfo) {
        self.toolbox.note_use(&call.name);
        if let Some(step_policy) = self.step_policy {
            step_policy.begin_call(call, info, self.background_work()).await;
        }
    }

    /// Lets the running step check what a call has changed.
    pub(crate) async fn end_call(
        &self,
        call: &ToolCall,
        info: &ToolCallInfo,
        result: ToolResult,
    ) -> ToolResult {
        match self.step_policy {
            Some(step_policy) => {
                let (workspace, background) = (self.workspace, self.background_work());
                step_policy.end_call(EndedCall { call, info, workspace, background }, result).await
            }
            None => result,
        }
    }

    /// Returns the recorder of the changes that a call makes; `turn` is the sequence number of the turn's prompt.
    pub(crate) fn undo_recorder(&self, turn: u64, call: CallId) -> CallUndoRecorder<'_> {
        CallUndoRecorder::new(&self.runtime.store, self.lease, turn, call, clock::now)
    }

    /// Returns the context of a tool without a call, progress, undo and requests to the user.
    pub(crate) fn tool_cx<'a>(&'a self, access: &'a ToolAccess) -> ToolCx<'a> {
        ToolCx {
            workspace: self.workspace,
            editor: Some(self.editor),
            access,
            may_read_written: false,
            call: None,
            confinement: Confinement::Unconfined,
            cancel: self.cancel,
            progress: &|_| (),
            undo_recorder: None,
            mcp_session: None,
        }
    }

    /// Whether a background job or a child agent is running.
    pub(crate) fn background_work(&self) -> BackgroundWork {
        match self.workspace.has_running_jobs() || self.children.is_any_working() {
            true => BackgroundWork::Running,
            false => BackgroundWork::None,
        }
    }

    /// Stores a prompt with deliveries, and sends these to the client. Deliveries that another process has claimed are
    /// left out. What the model does not know about the session comes first.
    pub(crate) async fn append_prompt(
        &self,
        state: &mut SessionState,
        parts: Vec<ContentPart>,
        deliveries: Vec<Delivery>,
    ) -> Result<(), Failure> {
        let id = state.transcript.next_message_id();
        let mut context = self.session_context(state).await;
        let has_content = !parts.is_empty();
        context.extend(parts);
        let parts = context;
        let delivery_parts: Vec<ContentPart> =
            deliveries.iter().map(|delivery| ContentPart::Text(delivery.text.clone())).collect();
        let delivery_ids: Vec<DeliveryId> = deliveries.iter().map(|delivery| delivery.id).collect();
        let all_parts = parts.iter().chain(&delivery_parts).cloned().collect();
        let entry = TranscriptEntry::Prompt(Prompt { id: id.clone(), parts: all_parts });
        let outcome = self.append_with_claims(state, entry, &delivery_ids).await;
        if outcome.is_err() && !delivery_ids.is_empty() {
            self.children.mark_mail_pending();
        }
        match outcome? {
            ClaimOutcome::Stored => {
                for part in delivery_parts {
                    self.client
                        .send_update(self.session, SessionUpdate::Prompt { message: id.clone(), part });
                }
                Ok(())
            }
            ClaimOutcome::AlreadyClaimed if !has_content => {
                self.config_loader.forget_known_skills().await;
                Ok(())
            }
            ClaimOutcome::AlreadyClaimed => {
                self.append_entry(state, TranscriptEntry::Prompt(Prompt { id, parts })).await
            }
        }
    }

    /// Stores an entry and claims the deliveries in it, atomically.
    pub(crate) async fn append_with_claims(
        &self,
        state: &mut SessionState,
        entry: TranscriptEntry,
        delivery_ids: &[DeliveryId],
    ) -> Result<ClaimOutcome, Failure> {
        if delivery_ids.is_empty() {
            return self.append_entry(state, entry).await.map(|()| ClaimOutcome::Stored);
        }
        state.transcript.check_entry(&entry).map_err(rejected_entry)?;
        let seq = state.transcript.next_seq();
        let delivered = DeliveredEntry { entry: &entry, deliveries: delivery_ids };
        match self.runtime.store.append_with_deliveries(self.lease, seq, &delivered, clock::now()).await {
            Ok(()) => apply_entry(state, entry).map(|()| ClaimOutcome::Stored),
            Err(StoreError::AlreadyDelivered { .. }) => Ok(ClaimOutcome::AlreadyClaimed),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Returns the model that answers now, with its settings.
    pub(crate) fn current_model(&self) -> Result<ModelSettings, Failure> {
        let session_model = self.own_model()?;
        let fallback = self.fallback.substitute_of(&session_model.name);
        Ok(fallback.and_then(|name| self.model_named(Some(&name)).ok()).unwrap_or(session_model))
    }

    /// Returns the session's own model.
    pub(crate) fn own_model(&self) -> Result<ModelSettings, Failure> {
        let name = self.settings.borrow().model.clone();
        self.model_named(name.as_deref())
    }

    /// Returns a configured model with the session's thought level.
    pub(crate) fn model_named(&self, name: Option<&str>) -> Result<ModelSettings, Failure> {
        let mut model = self.runtime.find_model(name)?;
        if let Some(effort) = self.settings.borrow().thought_level.reasoning_effort() {
            model.reasoning_effort = Some(effort.to_owned());
        }
        Ok(model)
    }

    /// Returns the context window of the current model; 0 if none is configured.
    pub(crate) fn context_window(&self) -> u64 {
        self.current_model().map_or(0, |model| model.context_window)
    }

    /// Returns the maximum number of tokens in the context.
    pub(crate) fn context_limit(&self) -> u64 {
        let limits = self.runtime.config().limits;
        match self.current_model() {
            Ok(model) => limit_of(limits, &model),
            Err(_) => context_limit(limits, 0, None),
        }
    }

    /// Sends the current context usage, as the provider counted it.
    pub(crate) fn send_counted_usage(&self, used: u64) {
        self.send_context_usage(ContextUsage { used, size: self.context_window(), is_estimate: false });
    }

    /// Sends an estimate of the current context usage.
    pub(crate) fn send_estimated_usage(&self, used: u64) {
        self.send_context_usage(ContextUsage { used, size: self.context_window(), is_estimate: true });
    }

    fn send_context_usage(&self, context: ContextUsage) {
        self.client.send_update(self.session, self.children.tree_budget().record_context(context));
    }

    /// Adds the usage of a side request.
    pub(crate) async fn add_side_usage(&self, usage: TokenUsage) {
        self.children.tree_budget().add_session_usage(usage);
        if let Err(error) = self.runtime.store.record_side_request(self.lease, usage, clock::now()).await {
            tracing::warn!(session = %self.session, %error, "the usage of a side request could not be stored");
        }
    }

    /// Stores an entry, then applies it: the transcript only has entries that are on disk.
    pub(crate) async fn append_entry(
        &self,
        state: &mut SessionState,
        entry: TranscriptEntry,
    ) -> Result<(), Failure> {
        self.store_entry(state, &entry).await?;
        apply_entry(state, entry)
    }

    pub(crate) async fn store_entry(
        &self,
        state: &SessionState,
        entry: &TranscriptEntry,
    ) -> Result<(), Failure> {
        state.transcript.check_entry(entry).map_err(rejected_entry)?;
        let seq = state.transcript.next_seq();
        self.runtime.store.append_entry(self.lease, seq, entry, clock::now()).await.map_err(store_failure)
    }

    /// Adds a result with the reason to every call without a result.
    pub(crate) async fn close_open_calls(
        &self,
        state: &mut SessionState,
        reason: &str,
    ) -> Result<Vec<CallId>, Failure> {
        let mut closed = Vec::new();
        for call in state.transcript.open_calls().to_vec() {
            let info = self.current_tools().tools.call_info(&call, self.workspace);
            let result = ToolResult::failure(reason);
            self.append_entry(state, TranscriptEntry::Result { call: call.id, info, result }).await?;
            self.children.record_failed_call(call.id, reason);
            closed.push(call.id);
        }
        Ok(closed)
    }

    /// Shows the end of calls that the client knows.
    pub(crate) fn show_failed_calls(&self, calls: &[CallId], reason: &str) {
        for &call in calls {
            let content = Some(vec![ToolCallContent::Text(reason.to_owned())]);
            let update = SessionUpdate::CallChanged { call, status: ToolCallStatus::Failed, content };
            self.client.send_update(self.session, update);
        }
    }
}

/// Returns the maximum number of tokens in a model's context.
pub(crate) fn limit_of(limits: TurnLimits, model: &ModelSettings) -> u64 {
    let compact_tokens_max = model.compact_tokens_max.unwrap_or(limits.compact_tokens_max);
    context_limit(TurnLimits { compact_tokens_max, ..limits }, model.context_window, model.max_tokens)
}

pub(crate) fn apply_entry(state: &mut SessionState, entry: TranscriptEntry) -> Result<(), Failure> {
    state.transcript.push(entry).map_err(rejected_entry)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
fn rejected_entry(error: crow_core::InvalidEntry) -> Failure {
    Failure::new(FailureKind::Internal, error.to_string())
}
