//! Runs one turn: requests, runs calls and stores, until [`Turn`] ends it.

use std::sync::Arc;

use crow_acp::{Client, ClientEditor, SteerOutcome, TurnScope};
use crow_core::{
    CallsReport, CompactionTrigger, ContentPart, Failure, FailureKind, MessageId, Prompt, Reply,
    ReplyBuilder, ReplyDelta, ReplyEnd, SessionId, SessionUpdate, SettleCheck, SettleFinding, TokenUsage,
    ToolResult, ToolSpec, Transcript, TranscriptEntry, Turn, TurnAction, TurnEnd, context_limit,
    estimate_tool_tokens,
};
use crow_model::{ModelRequest, ModelSettings, ReplyListener};
use crow_speckit::{BackgroundWork, StepBaseline};
use crow_store::{Delivery, DeliveryId, Draft, SessionLease, StoreError};
use crow_tools::Workspace;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::approvals::GrantStore;
use crate::calls::run_calls;
use crate::children::{ChildAgents, ContextUsage, MailWaitOutcome};
use crate::clock;
use crate::compact::compact_context;
use crate::fallback::{self, FallbackModel, limit_of};
use crate::handle::SteeringInput;
use crate::hooks::{self, PromptRejection, TurnHookState};
use crate::linked_content;
use crate::project_config::ProjectConfigLoader;
use crate::prompt_parts;
use crate::reply_recovery;
use crate::runtime::AgentRuntime;
use crate::sandbox_retry::WarnedOnce;
use crate::session::SessionSettings;
use crate::session_init::{self, PendingSession};
use crate::speckit::StepPolicy;
use crate::toolbox::{ToolSet, Toolbox};

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
    pub(crate) config_loader: &'a ProjectConfigLoader,
    pub(crate) children: &'a ChildAgents,
    pub(crate) approvals: &'a GrantStore,
    pub(crate) settings: &'a watch::Receiver<SessionSettings>,
    pub(crate) turn_scope: TurnScope,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) hook_state: &'a TurnHookState,
    /// The fallback of the session's own model.
    pub(crate) fallback: &'a FallbackModel,
    /// The policy of the running workflow step, if there is one.
    pub(crate) step_policy: Option<&'a StepPolicy>,
}

/// The state of a session between turns.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    pub(crate) transcript: Transcript,
    pub(crate) stored_state: StoredState,
    /// A partial reply whose end was never stored.
    pub(crate) unfinished: Option<Reply>,
    pub(crate) is_titled: bool,
    pub(crate) warned: WarnedOnce,
    /// The tool definitions that the store has.
    pub(crate) offered_tools: Arc<[ToolSpec]>,
    /// True if the user rejected a call and gives instructions with the next prompt, for which the turn ends.
    pub(crate) awaits_instructions: bool,
    /// Sequence number of the running turn's prompt.
    pub(crate) turn: u64,
    /// The baseline of a step that waits for an answer.
    pub(crate) step_baseline: Option<Box<StepBaseline>>,
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

/// Runs a turn whose prompt is on disk; steering input is sent with the next request.
pub(crate) async fn run_turn(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    steering: &mut mpsc::Receiver<SteeringInput>,
) -> Result<TurnEnd, Failure> {
    let (mut turn, mut next) = Turn::start(cx.runtime.config().limits);
    cx.toolbox.wait_until_connected(cx.cancel).await;
    let mut tools = cx.current_tools();
    loop {
        next = match next {
            TurnAction::RequestReply => {
                cx.prepare_request(state, steering).await?;
                if turn.needs_compaction(state.transcript.context_tokens(), cx.context_limit()) {
                    TurnAction::Compact(CompactionTrigger::LimitReached)
                } else {
                    tools = cx.current_tools();
                    cx.request_reply(state, &tools, &mut turn).await?
                }
            }
            TurnAction::Compact(trigger) => {
                let (outcome, _) = compact_context(cx, state, trigger, "").await?;
                turn.on_compacted(outcome, state.transcript.context_tokens().measured)
            }
            TurnAction::Run(calls) => {
                run_calls(cx, &tools.tools, &calls, state).await?;
                turn.on_results(cx.calls_report(state), state.transcript.entries())
            }
            TurnAction::Resume(resume) => reply_recovery::resume_broken_reply(cx, state, &resume).await?,
            TurnAction::Confirm(repeated) => {
                reply_recovery::confirm_repetition(cx, state, &turn, &repeated).await
            }
            TurnAction::Settle(check) => {
                let finding = cx.settle(check, state, steering).await?;
                turn.on_settled(check, finding)
            }
            TurnAction::End(end) => {
                cx.close_open_calls(state, "not run: the turn ended before it").await?;
                return Ok(end);
            }
        };
    }
}

impl TurnCx<'_> {
    /// Whether the turn was cancelled or its client has disconnected.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.client.is_gone()
    }

    /// Returns what the calls of a reply mean for the turn.
    fn calls_report(&self, state: &mut SessionState) -> CallsReport {
        let awaits_instructions = std::mem::take(&mut state.awaits_instructions);
        CallsReport {
            is_cancelled: self.is_over(),
            must_stop: awaits_instructions
                || self.hook_state.is_ended()
                || self.step_policy.is_some_and(StepPolicy::is_over),
        }
    }

    /// Looks for more work after the model has finished.
    async fn settle(
        &self,
        check: SettleCheck,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<SettleFinding, Failure> {
        let found_work = match check {
            SettleCheck::Input => {
                self.drain_steering(state, steering).await? + self.append_unasked_mail(state).await? > 0
            }
            SettleCheck::Tasks => return Ok(self.wait_for_tasks().await),
            SettleCheck::Hooks { n_continuations } => {
                match hooks::run_stop_hooks(self, state, n_continuations).await? {
                    true if self.is_over() => return Ok(SettleFinding::Cancelled),
                    is_continued => is_continued,
                }
            }
        };
        Ok(if found_work { SettleFinding::MoreWork } else { SettleFinding::Nothing })
    }

    /// Appends what the next request must contain.
    async fn prepare_request(
        &self,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<(), Failure> {
        self.drain_steering(state, steering).await?;
        self.append_mail(state).await?;
        self.remember_tools(state).await?;
        state.transcript.set_tool_tokens(estimate_tool_tokens(&self.current_tools().specs));
        Ok(())
    }

    /// Returns the current tools.
    pub(crate) fn current_tools(&self) -> Arc<ToolSet> {
        let current = self.toolbox.current_tools();
        match self.step_policy {
            Some(step_policy) => Arc::new(ToolSet::new(current.tools.with_tools(step_policy.step_tools()))),
            None => current,
        }
    }

    /// Appends steering input as prompts; returns their number.
    async fn drain_steering(
        &self,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<usize, Failure> {
        let mut n_prompts = 0;
        while let Ok(SteeringInput { content, answer }) = steering.try_recv() {
            let parts = match prompt_parts::load_prompt_parts(content).await {
                Ok(parts) => hooks::on_prompt(self, parts).await.map_err(PromptRejection::into_failure),
                Err(failure) => Err(failure),
            };
            match parts {
                Ok(parts) => {
                    let parts = linked_content::with_contents(self, state, parts).await;
                    let parts = self.config_loader.current_config().expand_prompt(parts);
                    let prompt = Prompt { id: state.transcript.next_message_id(), parts };
                    self.append_entry(state, TranscriptEntry::Prompt(prompt)).await?;
                    answer.send(Ok(SteerOutcome::Injected));
                    n_prompts += 1;
                }
                Err(failure) => answer.send(Err(failure)),
            }
        }
        Ok(n_prompts)
    }

    /// Waits for the end of a task, if the turn lasts as long as its tasks.
    async fn wait_for_tasks(&self) -> SettleFinding {
        if self.turn_scope != TurnScope::WithTasks {
            return SettleFinding::Nothing;
        }
        match self.cancel.run_until_cancelled(self.children.wait_for_mail()).await {
            Some(MailWaitOutcome::NoTasks) => SettleFinding::Nothing,
            Some(MailWaitOutcome::Mail) if !self.cancel.is_cancelled() => SettleFinding::MoreWork,
            Some(MailWaitOutcome::Mail) | None => SettleFinding::Cancelled,
        }
    }

    /// Whether a background job or a child agent is running.
    pub(crate) fn background_work(&self) -> BackgroundWork {
        match self.workspace.has_running_jobs() || self.children.is_any_working() {
            true => BackgroundWork::Running,
            false => BackgroundWork::None,
        }
    }

    /// Appends pending deliveries as a prompt; returns their number.
    pub(crate) async fn append_mail(&self, state: &mut SessionState) -> Result<usize, Failure> {
        let deliveries = self.children.take_deliveries().await.map_err(store_failure)?;
        if deliveries.is_empty() {
            return Ok(0);
        }
        let n_deliveries = deliveries.len();
        let n_messages = state.transcript.next_seq();
        self.append_prompt(state, Vec::new(), deliveries).await?;
        Ok(if state.transcript.next_seq() == n_messages { 0 } else { n_deliveries })
    }

    /// Appends pending deliveries for which the model should be called; a cancelled task is reported with the next
    /// prompt.
    async fn append_unasked_mail(&self, state: &mut SessionState) -> Result<usize, Failure> {
        if self.children.has_pending_mail() { self.append_mail(state).await } else { Ok(0) }
    }

    /// Stores a prompt with deliveries, and sends these to the client. Deliveries that another process has claimed are
    /// left out.
    pub(crate) async fn append_prompt(
        &self,
        state: &mut SessionState,
        parts: Vec<ContentPart>,
        deliveries: Vec<Delivery>,
    ) -> Result<(), Failure> {
        let id = state.transcript.next_message_id();
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
            ClaimOutcome::AlreadyClaimed if parts.is_empty() => Ok(()),
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
        match self
            .runtime
            .store
            .append_with_deliveries(self.lease, seq, (&entry, delivery_ids), clock::now())
            .await
        {
            Ok(()) => apply_entry(state, entry).map(|()| ClaimOutcome::Stored),
            Err(StoreError::AlreadyDelivered { .. }) => Ok(ClaimOutcome::AlreadyClaimed),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Stores the definitions of the tools if they have changed.
    async fn remember_tools(&self, state: &mut SessionState) -> Result<(), Failure> {
        let specs = self.current_tools().specs.clone();
        if Arc::ptr_eq(&specs, &state.offered_tools) || specs == state.offered_tools {
            return Ok(());
        }
        let definitions = specs.iter().map(|ToolSpec { name, description, parameters }| {
            let function = json!({"name": name, "description": description, "parameters": parameters});
            json!({"type": "function", "function": function})
        });
        let definitions = Value::Array(definitions.collect()).to_string();
        self.runtime.store.set_tool_definitions(self.session, definitions).await.map_err(store_failure)?;
        state.offered_tools = specs;
        Ok(())
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

    /// Requests a reply and stores it; returns the next action.
    async fn request_reply(
        &self,
        state: &mut SessionState,
        tools: &ToolSet,
        turn: &mut Turn,
    ) -> Result<TurnAction, Failure> {
        let (mut reply, draft) = self.stream_reply(&state.transcript, tools).await;
        // From here on, calls have the names that the tools use.
        reply.calls = reply.calls.iter().map(|call| tools.tools.resolve_call(call)).collect();
        let next = turn.on_reply(&reply);
        // A truncated call is reported with its result.
        let is_too_large = reply.end == ReplyEnd::SizeLimit && reply.calls.is_empty();
        self.store_reply(state, reply).await?;
        draft.discard();
        if is_too_large {
            reply_recovery::note_size_limit(self, state).await?;
        }
        Ok(next)
    }

    /// Requests a reply; the part that the client has seen is in the draft until the reply is stored.
    async fn stream_reply(&self, transcript: &Transcript, tools: &ToolSet) -> (Reply, Draft) {
        // A step has ended, and the model takes longer than the disk.
        self.runtime.store.sync_soon();
        let seq = transcript.next_seq();
        let draft = self.runtime.store.begin_draft(self.lease, seq);
        let mut forwarder = StreamForwarder { cx: self, message: MessageId::from_seq(seq), draft };
        let request = async {
            let model = self.current_model()?;
            let http = self.runtime.http_client().await?;
            let to_failure =
                |open: crow_core::OpenCallsError| Failure::new(FailureKind::Internal, open.to_string());
            let n_tokens = transcript.context_tokens().tokens;
            let transcript = transcript.for_model().map_err(to_failure)?;
            let model_request = ModelRequest { settings: &model, transcript, tools: &tools.specs, seq };
            Ok(fallback::ask(self, http, n_tokens, model_request, &mut forwarder).await)
        };
        let reply = request
            .await
            .unwrap_or_else(|failure| ReplyBuilder::new(seq).into_reply(ReplyEnd::Failed(failure)));
        forwarder.draft.flush();
        (reply, forwarder.draft)
    }

    async fn store_reply(&self, state: &mut SessionState, reply: Reply) -> Result<(), Failure> {
        if reply.is_empty() {
            return Ok(());
        }
        let entry = TranscriptEntry::Reply(reply);
        if let Err(failure) = self.store_entry(state, &entry).await {
            // The reply was shown; the next turn stores it, if the disk works by then.
            if let TranscriptEntry::Reply(reply) = entry {
                let end = ReplyEnd::Failed(failure.clone());
                state.unfinished = Some(Reply { calls: Vec::new(), end, ..reply });
            }
            return Err(failure);
        }
        let usage = entry.usage();
        apply_entry(state, entry)?;
        if let Some(usage) = usage {
            self.children.tree_budget().add_session_usage(usage);
        }
        match usage.and_then(TokenUsage::context_tokens) {
            Some(used) => self.send_counted_usage(used),
            // An estimate is not added to the usage.
            None => self.send_estimated_usage(state.transcript.context_tokens().tokens),
        }
        Ok(())
    }

    /// Sends the current context usage, as the provider counted it.
    fn send_counted_usage(&self, used: u64) {
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

    async fn store_entry(&self, state: &SessionState, entry: &TranscriptEntry) -> Result<(), Failure> {
        state.transcript.check_entry(entry).map_err(rejected_entry)?;
        let seq = state.transcript.next_seq();
        self.runtime.store.append_entry(self.lease, seq, entry, clock::now()).await.map_err(store_failure)
    }

    /// Adds a result with the reason to every call without a result.
    pub(crate) async fn close_open_calls(
        &self,
        state: &mut SessionState,
        reason: &str,
    ) -> Result<(), Failure> {
        for call in state.transcript.open_calls().to_vec() {
            let info = self.current_tools().tools.call_info(&call, self.workspace);
            let result = ToolResult::failure(reason);
            self.append_entry(state, TranscriptEntry::Result { call: call.id, info, result }).await?;
        }
        Ok(())
    }
}

fn apply_entry(state: &mut SessionState, entry: TranscriptEntry) -> Result<(), Failure> {
    state.transcript.push(entry).map_err(rejected_entry)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
fn rejected_entry(error: crow_core::InvalidEntry) -> Failure {
    Failure::new(FailureKind::Internal, error.to_string())
}

/// Converts an error of the store into the failure of a turn.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    if let StoreError::NoSession(id) = error {
        return session_init::not_found(&id);
    }
    Failure::new(FailureKind::Store, error.to_string())
}

/// Forwards the model's stream to the client.
struct StreamForwarder<'a> {
    cx: &'a TurnCx<'a>,
    message: MessageId,
    draft: Draft,
}

impl ReplyListener for StreamForwarder<'_> {
    fn on_delta(&mut self, delta: ReplyDelta<'_>) {
        let message = self.message.clone();
        let update = match delta {
            ReplyDelta::Thought(text) => {
                self.draft.push_thought(text);
                SessionUpdate::Thought { message, text: text.to_owned() }
            }
            ReplyDelta::Text(text) => {
                self.draft.push_text(text);
                SessionUpdate::Text { message, text: text.to_owned() }
            }
        };
        self.cx.client.send_update(self.cx.session, update);
    }

    fn on_notice(&mut self, notice: String) {
        self.cx.client.send_update(self.cx.session, SessionUpdate::Notice(notice));
    }

    async fn wait_for_capacity(&mut self) {
        // The client has not been waited for since the last delta, so it has not been seen yet.
        self.draft.flush();
        self.cx.client.wait_for_capacity().await;
    }
}
