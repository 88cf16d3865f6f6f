//! One turn: asks, runs, stores, until [`Turn`] says it is over.

use std::sync::Arc;

use crow_acp::{Client, ClientEditor, SteerOutcome, TurnScope};
use crow_core::{
    ContentPart, Failure, FailureKind, MessageId, Prompt, Reply, ReplyBuilder, ReplyDelta, ReplyEnd,
    SessionId, SessionUpdate, TokenUsage, ToolResult, ToolSpec, Transcript, TranscriptEntry, Turn,
    TurnAction, TurnEnd, context_limit, estimate_tool_tokens,
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
use crate::go_on;
use crate::handle::SteeringInput;
use crate::hold::WarnedOnce;
use crate::hooks::{self, PromptRejection, TurnHookState};
use crate::kit::AgentRuntime;
use crate::linked;
use crate::open::{self, PendingSession};
use crate::session::SessionSettings;
use crate::speckit::StepPolicy;
use crate::spoken;
use crate::supplies::ProjectConfigLoader;
use crate::toolbox::{ToolSet, Toolbox};

/// What a turn works with; the transcript it works on goes beside it.
#[derive(Clone, Copy)]
pub(crate) struct TurnCx<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) kit: &'a Arc<AgentRuntime>,
    pub(crate) writer: &'a SessionLease,
    pub(crate) client: &'a Client,
    pub(crate) editor: &'a ClientEditor,
    pub(crate) workspace: &'a Workspace,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) stock: &'a ProjectConfigLoader,
    pub(crate) children: &'a ChildAgents,
    pub(crate) approvals: &'a GrantStore,
    pub(crate) standing: &'a watch::Receiver<SessionSettings>,
    pub(crate) until: TurnScope,
    pub(crate) cut: &'a CancellationToken,
    pub(crate) hook_marks: &'a TurnHookState,
    /// The model that answers in place of the session's own.
    pub(crate) fallback: &'a FallbackModel,
    /// What the step of the workflow that runs allows and offers, if one does.
    pub(crate) scope: Option<&'a StepPolicy>,
}

/// What a session remembers between turns.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    pub(crate) transcript: Transcript,
    pub(crate) on_disk: StoredState,
    /// What a reply came to whose end was never stored.
    pub(crate) unfinished: Option<Reply>,
    /// Its title is stored.
    pub(crate) is_titled: bool,
    pub(crate) told: WarnedOnce,
    /// The tools that the store knows the model is offered.
    pub(crate) offered: Arc<[ToolSpec]>,
    /// The person rejected a call and says what to do instead with the next prompt: the turn ends for that.
    pub(crate) waits_for_words: bool,
    /// Place of the prompt whose turn runs.
    pub(crate) turn: u64,
    /// What a step that waits for an answer is held against when it is over.
    pub(crate) before: Option<Box<StepBaseline>>,
}

/// What the store holds of a conversation between turns.
#[derive(Debug, Default)]
pub(crate) enum StoredState {
    /// Nothing yet: the session is on its way there.
    Coming(PendingSession),
    /// The same transcript.
    Same,
    /// Nobody knows: a turn broke or could not store. The next one reads it again first.
    #[default]
    Unsure,
}

/// Whether a number of tokens is our own guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsEstimate {
    /// Nobody has counted them.
    Yes,
    /// The provider has counted them.
    No,
}

/// Whether an entry could be stored with what it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    /// It is stored.
    Yes,
    /// It is not: another process has told the model already.
    BySomebodyElse,
}

/// Runs a turn whose prompt is on disk already; what the person says meanwhile comes with the next request.
pub(crate) async fn run_turn(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    more_words: &mut mpsc::Receiver<SteeringInput>,
) -> Result<TurnEnd, Failure> {
    let (mut turn, mut next) = Turn::start(cx.kit.config().limits);
    cx.toolbox.wait_until_connected(cx.cut).await;
    let mut tools = cx.current_tools();
    let mut n_gone_on = 0;
    loop {
        next = match next {
            TurnAction::Ask => {
                cx.drain_steering(talk, more_words).await?;
                cx.append_mail(talk).await?;
                cx.remember_tools(talk).await?;
                talk.transcript.set_tool_tokens(estimate_tool_tokens(&cx.current_tools().specs));
                match turn.before_asking(talk.transcript.context_tokens(), cx.context_limit()) {
                    TurnAction::Ask => {
                        tools = cx.current_tools();
                        cx.request_reply(talk, &tools, &mut turn).await?
                    }
                    first @ (TurnAction::Compact(_)
                    | TurnAction::Run(_)
                    | TurnAction::Resume(_)
                    | TurnAction::Confirm(_)
                    | TurnAction::End(_)) => first,
                }
            }
            TurnAction::Compact(occasion) => {
                let (compacted, _) = compact_context(cx, talk, occasion, "").await?;
                turn.on_compacted(compacted, talk.transcript.context_tokens().measured)
            }
            TurnAction::Run(calls) => {
                run_calls(cx, &tools.tools, &calls, talk).await?;
                let next = turn.on_results(cx.is_over(), talk.transcript.entries());
                let has_to_wait = std::mem::take(&mut talk.waits_for_words) || cx.hook_marks.is_ended();
                let is_end = matches!(next, TurnAction::End(_));
                if !is_end && (has_to_wait || cx.scope.is_some_and(StepPolicy::is_over)) {
                    return Ok(TurnEnd::Done);
                }
                next
            }
            TurnAction::Resume(resume) => go_on::resume_broken_reply(cx, talk, &resume).await?,
            TurnAction::Confirm(repeated) => go_on::confirm_repetition(cx, (talk, &turn), &repeated).await,
            TurnAction::End(TurnEnd::Done)
                if cx.drain_steering(talk, more_words).await? + cx.append_unasked_mail(talk).await? > 0 =>
            {
                turn.on_steering_input()
            }
            TurnAction::End(TurnEnd::Done) if cx.wait_for_tasks().await => match cx.cut.is_cancelled() {
                true => TurnAction::End(TurnEnd::Cancelled),
                false => TurnAction::End(TurnEnd::Done),
            },
            TurnAction::End(TurnEnd::Done) if hooks::run_stop_hooks(cx, talk, &mut n_gone_on).await? => {
                if cx.is_over() { TurnAction::End(TurnEnd::Cancelled) } else { turn.on_steering_input() }
            }
            TurnAction::End(end) => {
                cx.close_open_calls(talk, "not run: the turn ended before it").await?;
                return Ok(end);
            }
        };
    }
}

impl TurnCx<'_> {
    /// Tells whether nobody waits for the turn any longer.
    pub(crate) fn is_over(&self) -> bool {
        self.cut.is_cancelled() || self.client.is_gone()
    }

    /// The tools there are now.
    pub(crate) fn current_tools(&self) -> Arc<ToolSet> {
        let now = self.toolbox.current_tools();
        match self.scope {
            Some(scope) => Arc::new(ToolSet::new(now.tools.with_tools(scope.step_tools()))),
            None => now,
        }
    }

    /// Makes prompts of what the person said meanwhile; tells how many.
    async fn drain_steering(
        &self,
        talk: &mut SessionState,
        more_words: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<usize, Failure> {
        let mut n_taken = 0;
        while let Ok(SteeringInput { said, answer }) = more_words.try_recv() {
            let parts = match spoken::load_prompt_parts(said).await {
                Ok(parts) => hooks::on_prompt(self, parts).await.map_err(PromptRejection::into_failure),
                Err(failure) => Err(failure),
            };
            match parts {
                Ok(parts) => {
                    let parts = linked::with_contents(self, talk, parts).await;
                    let parts = self.stock.current_config().expand_prompt(parts);
                    let prompt = Prompt { id: talk.transcript.next_message_id(), parts };
                    self.append_entry(talk, TranscriptEntry::Prompt(prompt)).await?;
                    answer.send(Ok(SteerOutcome::Injected));
                    n_taken += 1;
                }
                Err(failure) => answer.send(Err(failure)),
            }
        }
        Ok(n_taken)
    }

    /// Waits for the next end of a task, where the turn is to last as long as its tasks; tells whether one came, or
    /// the turn was stopped.
    async fn wait_for_tasks(&self) -> bool {
        self.until == TurnScope::TasksEnded
            && self.cut.run_until_cancelled(self.children.wait_for_mail()).await
                != Some(MailWaitOutcome::Nothing)
    }

    /// Whether a job or a child agent runs on behind the calls.
    pub(crate) fn background_work(&self) -> BackgroundWork {
        match self.workspace.has_running_jobs() || self.children.is_any_working() {
            true => BackgroundWork::Running,
            false => BackgroundWork::None,
        }
    }

    /// Makes a prompt of what came into the mailbox; tells how many deliveries that were.
    pub(crate) async fn append_mail(&self, talk: &mut SessionState) -> Result<usize, Failure> {
        let mail = self.children.take_deliveries().await.map_err(store_failure)?;
        if mail.is_empty() {
            return Ok(0);
        }
        let n_deliveries = mail.len();
        let n_messages = talk.transcript.next_seq();
        self.append_prompt(talk, Vec::new(), mail).await?;
        Ok(if talk.transcript.next_seq() == n_messages { 0 } else { n_deliveries })
    }

    /// The same, where the model should hear of it without being asked: what a person stopped is told with their next
    /// words.
    async fn append_unasked_mail(&self, talk: &mut SessionState) -> Result<usize, Failure> {
        if self.children.has_pending_mail() { self.append_mail(talk).await } else { Ok(0) }
    }

    /// Stores a prompt with the mail that comes with it, and tells the client of that. Mail that somebody else claimed
    /// meanwhile is left out.
    pub(crate) async fn append_prompt(
        &self,
        talk: &mut SessionState,
        parts: Vec<ContentPart>,
        mail: Vec<Delivery>,
    ) -> Result<(), Failure> {
        let id = talk.transcript.next_message_id();
        let news: Vec<ContentPart> =
            mail.iter().map(|delivery| ContentPart::Text(delivery.text.clone())).collect();
        let claims: Vec<DeliveryId> = mail.iter().map(|delivery| delivery.id).collect();
        let all = parts.iter().chain(&news).cloned().collect();
        let entry = TranscriptEntry::Prompt(Prompt { id: id.clone(), parts: all });
        let claimed = self.append_with_claims(talk, entry, &claims).await;
        if claimed.is_err() && !claims.is_empty() {
            self.children.mark_mail_pending();
        }
        match claimed? {
            ClaimOutcome::Yes => {
                for part in news {
                    self.client
                        .send_update(self.session, SessionUpdate::Prompt { message: id.clone(), part });
                }
                Ok(())
            }
            ClaimOutcome::BySomebodyElse if parts.is_empty() => Ok(()),
            ClaimOutcome::BySomebodyElse => {
                self.append_entry(talk, TranscriptEntry::Prompt(Prompt { id, parts })).await
            }
        }
    }

    /// Stores an entry and claims the deliveries that stand in it, both or neither.
    pub(crate) async fn append_with_claims(
        &self,
        talk: &mut SessionState,
        entry: TranscriptEntry,
        claims: &[DeliveryId],
    ) -> Result<ClaimOutcome, Failure> {
        if claims.is_empty() {
            return self.append_entry(talk, entry).await.map(|()| ClaimOutcome::Yes);
        }
        talk.transcript.check_entry(&entry).map_err(rejected_entry)?;
        let seq = talk.transcript.next_seq();
        match self.kit.store.append_with_deliveries(self.writer, seq, (&entry, claims), clock::now()).await {
            Ok(()) => apply_entry(talk, entry).map(|()| ClaimOutcome::Yes),
            Err(StoreError::AlreadyDelivered { .. }) => Ok(ClaimOutcome::BySomebodyElse),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// Stores which tools the model is offered, when they are others than before.
    async fn remember_tools(&self, talk: &mut SessionState) -> Result<(), Failure> {
        let specs = self.current_tools().specs.clone();
        if Arc::ptr_eq(&specs, &talk.offered) || specs == talk.offered {
            return Ok(());
        }
        let definitions = specs.iter().map(|ToolSpec { name, description, parameters }| {
            let function = json!({"name": name, "description": description, "parameters": parameters});
            json!({"type": "function", "function": function})
        });
        let definitions = Value::Array(definitions.collect()).to_string();
        self.kit.store.set_tool_definitions(self.session, definitions).await.map_err(store_failure)?;
        talk.offered = specs;
        Ok(())
    }

    /// The model that the session asks now, and how.
    pub(crate) fn current_model(&self) -> Result<ModelSettings, Failure> {
        let own = self.own_model()?;
        let substitute = self.fallback.substitute_of(&own.name);
        Ok(substitute.and_then(|name| self.model_named(Some(&name)).ok()).unwrap_or(own))
    }

    /// The model that the session asks where its provider has room.
    pub(crate) fn own_model(&self) -> Result<ModelSettings, Failure> {
        let name = self.standing.borrow().model.clone();
        self.model_named(name.as_deref())
    }

    /// A configured model, at the session's thought level.
    pub(crate) fn model_named(&self, name: Option<&str>) -> Result<ModelSettings, Failure> {
        let mut settings = self.kit.find_model(name)?;
        if let Some(effort) = self.standing.borrow().thought_level.reasoning_effort() {
            settings.reasoning_effort = Some(effort.to_owned());
        }
        Ok(settings)
    }

    /// The window of that model; nothing where none is configured.
    pub(crate) fn context_window(&self) -> u64 {
        self.current_model().map_or(0, |model| model.context_window)
    }

    /// How many tokens the context may have.
    pub(crate) fn context_limit(&self) -> u64 {
        let limits = self.kit.config().limits;
        match self.current_model() {
            Ok(model) => limit_of(limits, &model),
            Err(_) => context_limit(limits, 0, None),
        }
    }

    /// Asks the model and stores what it said; gives what comes next.
    async fn request_reply(
        &self,
        talk: &mut SessionState,
        tools: &ToolSet,
        turn: &mut Turn,
    ) -> Result<TurnAction, Failure> {
        let (mut reply, draft) = self.stream_reply(&talk.transcript, tools).await;
        // From here on everybody sees the names that the tools know.
        reply.calls = reply.calls.iter().map(|call| tools.tools.resolve_call(call)).collect();
        let next = turn.on_reply(&reply);
        // A call that it was cut in tells of it with its result.
        let is_too_large = reply.ended == ReplyEnd::SizeLimit && reply.calls.is_empty();
        self.store_reply(talk, reply).await?;
        draft.discard();
        if is_too_large {
            go_on::note_size_limit(self, talk).await?;
        }
        Ok(next)
    }

    /// Asks the model; what the client saw of its reply is in the draft until the reply is stored.
    async fn stream_reply(&self, transcript: &Transcript, tools: &ToolSet) -> (Reply, Draft) {
        // A step has ended, and the model takes longer than the disk.
        self.kit.store.sync_soon();
        let seq = transcript.next_seq();
        let draft = self.kit.store.begin_draft(self.writer, seq);
        let mut telling = StreamForwarder { cx: self, message: MessageId::from_seq(seq), draft };
        let asked = async {
            let settings = self.current_model()?;
            let http = self.kit.http_client().await?;
            let open =
                |open: crow_core::OpenCallsError| Failure::new(FailureKind::Internal, open.to_string());
            let n_tokens = transcript.context_tokens().tokens;
            let transcript = transcript.for_model().map_err(open)?;
            let ask = ModelRequest { settings: &settings, transcript, tools: &tools.specs, seq };
            Ok(fallback::ask(self, (http, n_tokens), ask, &mut telling).await)
        };
        let reply = asked
            .await
            .unwrap_or_else(|failure| ReplyBuilder::new(seq).into_reply(ReplyEnd::Failed(failure)));
        telling.draft.flush();
        (reply, telling.draft)
    }

    async fn store_reply(&self, talk: &mut SessionState, reply: Reply) -> Result<(), Failure> {
        if reply.is_empty() {
            return Ok(());
        }
        let entry = TranscriptEntry::Reply(reply);
        if let Err(failure) = self.store_entry(talk, &entry).await {
            // It was shown; the next turn stores it, if the disk can by then.
            if let TranscriptEntry::Reply(reply) = entry {
                let ended = ReplyEnd::Failed(failure.clone());
                talk.unfinished = Some(Reply { calls: Vec::new(), ended, ..reply });
            }
            return Err(failure);
        }
        let usage = entry.usage();
        apply_entry(talk, entry)?;
        if let Some(usage) = usage {
            self.children.tree_budget().add_session_usage(usage);
        }
        match usage.and_then(TokenUsage::context_tokens) {
            Some(used) => self.send_context_usage(used, IsEstimate::No),
            // A guess is on no bill.
            None => self.send_context_usage(talk.transcript.context_tokens().tokens, IsEstimate::Yes),
        }
        Ok(())
    }

    /// Tells how full the context is by now.
    pub(crate) fn send_context_usage(&self, used: u64, is_guess: IsEstimate) {
        let context =
            ContextUsage { used, size: self.context_window(), is_guess: is_guess == IsEstimate::Yes };
        self.client.send_update(self.session, self.children.tree_budget().record_context(context));
    }

    /// Puts on the bill what a question took that is no message.
    pub(crate) async fn add_side_usage(&self, usage: TokenUsage) {
        self.children.tree_budget().add_session_usage(usage);
        if let Err(error) = self.kit.store.record_side_request(self.writer, usage, clock::now()).await {
            tracing::warn!(session = %self.session, %error, "what a question to the model took is not stored");
        }
    }

    /// Stores an entry, then believes it: what is in the transcript is on disk.
    pub(crate) async fn append_entry(
        &self,
        talk: &mut SessionState,
        entry: TranscriptEntry,
    ) -> Result<(), Failure> {
        self.store_entry(talk, &entry).await?;
        apply_entry(talk, entry)
    }

    async fn store_entry(&self, talk: &SessionState, entry: &TranscriptEntry) -> Result<(), Failure> {
        talk.transcript.check_entry(entry).map_err(rejected_entry)?;
        let seq = talk.transcript.next_seq();
        self.kit.store.append_entry(self.writer, seq, entry, clock::now()).await.map_err(store_failure)
    }

    /// Gives every call without a result one that says why.
    pub(crate) async fn close_open_calls(&self, talk: &mut SessionState, why: &str) -> Result<(), Failure> {
        for call in talk.transcript.open_calls().to_vec() {
            let facets = self.current_tools().tools.call_info(&call, self.workspace);
            let outcome = ToolResult::failure(why);
            self.append_entry(talk, TranscriptEntry::Result { call: call.id, facets, outcome }).await?;
        }
        Ok(())
    }
}

fn apply_entry(talk: &mut SessionState, entry: TranscriptEntry) -> Result<(), Failure> {
    talk.transcript.push(entry).map_err(rejected_entry)
}

#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
fn rejected_entry(error: crow_core::InvalidEntry) -> Failure {
    Failure::new(FailureKind::Internal, error.to_string())
}

/// Says what went wrong with the store, as a failure of the turn.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    if let StoreError::NoSession(id) = error {
        return open::not_found(&id);
    }
    Failure::new(FailureKind::Store, error.to_string())
}

/// Tells the client what the model says while it says it.
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
        // Nothing was waited for since it was heard, so nobody has seen it yet.
        self.draft.flush();
        self.cx.client.wait_for_capacity().await;
    }
}
