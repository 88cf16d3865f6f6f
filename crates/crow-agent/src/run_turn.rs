//! Runs one turn: requests, runs calls and stores, until [`Turn`] ends it.

use std::sync::Arc;

use crow_acp::{SteerOutcome, TurnScope};
use crow_children::MailWaitOutcome;
use crow_core::{
    CallsReport, CompactionTrigger, Failure, FailureKind, MessageId, Prompt, PromptRejection, Reply,
    ReplyBuilder, ReplyDelta, ReplyEnd, SessionUpdate, SettleCheck, SettleFinding, TokenUsage, ToolSpec,
    TranscriptEntry, Turn, TurnAction, TurnEnd, estimate_tool_tokens,
};
use crow_model::{ModelRequest, ReplyListener, RequestBounds};
use crow_store::Draft;
use crow_tools::ToolSet;
use crow_workflow::StepPolicy;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::calls::run_calls;
use crate::compact::compact_context;
use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::hooks;
use crate::linked_content;
use crate::reply_recovery;
use crate::turn_context::{SessionState, TurnCx, apply_entry};

/// Shown for a reply without text and calls, which would look like a fault of the client.
const EMPTY_REPLY: &str = "The model's reply was empty.";

/// Runs a turn whose prompt is on disk; steering input is sent with the next request.
pub(crate) async fn run_turn(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    steering: &mut mpsc::Receiver<SteeringInput>,
) -> Result<TurnEnd, Failure> {
    let (mut turn, mut next) = Turn::start(cx.runtime.config().limits);
    cx.toolbox.wait_until_connected(cx.cancel).await;
    cx.report_tool_selection(state);
    let mut tools = cx.current_tools();
    loop {
        next = match next {
            TurnAction::RequestReply => {
                tools = cx.prepare_request(state, steering).await?;
                if turn.needs_compaction(state.transcript.context_tokens(), cx.context_limit()) {
                    TurnAction::Compact(CompactionTrigger::LimitReached)
                } else {
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
            TurnAction::StopRepeating => reply_recovery::report_equal_calls(cx),
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
    /// Returns what the calls of a reply mean for the turn.
    fn calls_report(&self, state: &mut SessionState) -> CallsReport {
        let awaits_instructions = std::mem::take(&mut state.awaits_instructions);
        CallsReport {
            is_cancelled: self.is_over(),
            must_stop: awaits_instructions
                || self.hook_state.is_ended()
                || self.step_policy.is_some_and(StepPolicy::is_over),
            n_equal_calls: std::mem::take(&mut state.n_equal_calls),
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
            SettleCheck::Announcement => reply_recovery::ask_for_announced_work(self, state).await?,
            SettleCheck::Hooks { n_continuations } => {
                match hooks::run_stop_hooks(self, state, n_continuations).await? {
                    true if self.is_over() => return Ok(SettleFinding::Cancelled),
                    is_continued => is_continued,
                }
            }
        };
        Ok(if found_work { SettleFinding::MoreWork } else { SettleFinding::Nothing })
    }

    /// Appends what the next request must contain, and returns its tools.
    async fn prepare_request(
        &self,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<Arc<ToolSet>, Failure> {
        self.drain_steering(state, steering).await?;
        self.append_mail(state).await?;
        let tools = self.current_tools().in_order_of(&state.offered_tools);
        self.remember_tools(state, &tools.specs).await?;
        if let Some(notice) = self.toolbox.take_offer_notice() {
            self.client.send_update(self.session, SessionUpdate::Notice(notice));
        }
        state.transcript.set_tool_tokens(estimate_tool_tokens(&tools.specs));
        Ok(tools)
    }

    /// Appends steering input as prompts; returns their number.
    async fn drain_steering(
        &self,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<usize, Failure> {
        let mut n_prompts = 0;
        while let Ok(SteeringInput { content, answer }) = steering.try_recv() {
            let parts = match crow_tools::load_prompt_parts(content).await {
                Ok(parts) => hooks::on_prompt(self, parts).await.map_err(PromptRejection::into_failure),
                Err(failure) => Err(failure),
            };
            match parts {
                Ok(parts) => {
                    let parts = linked_content::with_contents(self, state, parts).await;
                    let parts = self.config_loader.current_config().expand_prompt(parts);
                    let prompt = Prompt { id: state.transcript.next_message_id(), parts };
                    let stored = self.append_entry(state, TranscriptEntry::Prompt(prompt)).await;
                    answer.send(stored.clone().map(|()| SteerOutcome::Injected));
                    stored?;
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

    /// Stores the definitions of the tools if they have changed, and appends what else changed since the last request.
    async fn remember_tools(&self, state: &mut SessionState, specs: &Arc<[ToolSpec]>) -> Result<(), Failure> {
        let is_new = |spec: &&ToolSpec| !state.offered_tools.iter().any(|other| other.name == spec.name);
        // A step explains its tools itself.
        let tells_tools = !state.offered_tools.is_empty() && self.step_policy.is_none();
        let new_tools: Vec<&ToolSpec> = specs.iter().filter(|spec| tells_tools && is_new(spec)).collect();
        self.append_context_changes(state, &new_tools).await?;
        if Arc::ptr_eq(specs, &state.offered_tools) {
            return Ok(());
        }
        if *specs != state.offered_tools {
            let definitions = specs.iter().map(|ToolSpec { name, description, parameters }| {
                let function = json!({"name": name, "description": description, "parameters": parameters});
                json!({"type": "function", "function": function})
            });
            let definitions = Value::Array(definitions.collect()).to_string();
            let stored = self.runtime.store.set_tool_definitions(self.session, definitions).await;
            stored.map_err(store_failure)?;
        }
        // Also if they are equal: the next request finds the same allocation and compares nothing.
        state.offered_tools = specs.clone();
        Ok(())
    }

    /// Requests a reply and stores it; returns the next action.
    async fn request_reply(
        &self,
        state: &mut SessionState,
        tools: &ToolSet,
        turn: &mut Turn,
    ) -> Result<TurnAction, Failure> {
        let (mut reply, draft) = self.stream_reply(state, tools).await;
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
    async fn stream_reply(&self, state: &SessionState, tools: &ToolSet) -> (Reply, Draft) {
        // A step has ended, and the model takes longer than the disk.
        self.runtime.store.sync_soon();
        let SessionState { transcript, encoded_messages, .. } = state;
        let seq = transcript.next_seq();
        let draft = self.runtime.store.begin_draft(self.lease, seq);
        let mut forwarder = StreamForwarder { cx: self, message: MessageId::from_seq(seq), draft };
        let request = async {
            let model = self.current_model()?;
            let to_failure =
                |open: crow_core::OpenCallsError| Failure::new(FailureKind::Internal, open.to_string());
            let n_tokens = transcript.context_tokens().tokens;
            let bounds = RequestBounds { n_tokens, ..RequestBounds::default() };
            let transcript = transcript.for_model().map_err(to_failure)?;
            let model_request =
                ModelRequest { settings: &model, transcript, tools: &tools.specs, seq, encoded_messages };
            self.send_model_request(model_request, bounds, &mut forwarder).await
        };
        let reply = request
            .await
            .unwrap_or_else(|failure| ReplyBuilder::new(seq).into_reply(ReplyEnd::Failed(failure)));
        forwarder.draft.flush();
        (reply, forwarder.draft)
    }

    async fn store_reply(&self, state: &mut SessionState, reply: Reply) -> Result<(), Failure> {
        if reply.is_empty() {
            if reply.end == ReplyEnd::Complete {
                let notice = SessionUpdate::Notice(EMPTY_REPLY.to_owned());
                self.client.send_update(self.session, notice);
            }
            if let Some(usage) = reply.usage {
                self.add_side_usage(usage).await;
            }
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
        self.cx.replays.count_delta(&message, delta);
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
