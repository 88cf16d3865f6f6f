//! Runs one turn on its own task: what is stored before it, and what is kept after it.

use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, PromptBlock, SessionLocation, TurnScope};
use crow_children::ChildAgents;
use crow_core::{
    CompactionOutcome, ContentPart, ContextCommand, Failure, FailureKind, MessageId, RESULT_UNKNOWN,
    SessionId, SessionUpdate, Transcript, TranscriptEntry, TurnEnd, UndoRequest, prompt_title, text_title,
};
use crow_tools::{UndoContext, Workspace, load_prompt_parts};
use crow_workflow::WorkflowRequest;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::approvals::GrantStore;
use crate::compact;
use crate::config_loader::ProjectConfigLoader;
use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::hooks::{self, PromptRejection};
use crate::pending_session::PendingSession;
use crate::run_turn::run_turn;
use crate::runtime::AgentRuntime;
use crate::session_settings::SessionSettings;
use crate::stored_session;
use crate::toolbox::Toolbox;
use crate::turn_context::FallbackModel;
use crate::turn_context::TurnHookState;
use crate::turn_context::{SessionState, StoredState, TurnCx};
use crate::workflow::{self, PromptInput, WorkflowInput};
use crate::{clock, linked_content};

/// Time that a cancelled turn waits for the directories of a new session, which are read before the session is stored.
const STORE_WAIT_MAX: Duration = Duration::from_secs(3);

/// The work of a turn.
#[derive(Debug)]
pub(crate) enum TurnWork {
    /// The model answers a prompt.
    Prompt(Vec<PromptBlock>),
    /// The context is changed; the result is sent as this message.
    Context { command: ContextCommand, message: MessageId },
    /// The model handles the mailbox.
    Mail,
    /// A request for the Spec Kit workflow is run.
    Workflow { request: WorkflowRequest, content: Vec<PromptBlock> },
    /// The file changes of the last turn are undone; the result is sent as this message.
    Undo { message: MessageId, request: UndoRequest },
}

/// The work of a turn and the receiver of its steering input.
struct TurnInput<'a> {
    work: TurnWork,
    steering: &'a mut mpsc::Receiver<SteeringInput>,
}

/// One turn with everything it needs.
pub(crate) struct TurnJob {
    pub(crate) id: SessionId,
    pub(crate) runtime: Arc<AgentRuntime>,
    pub(crate) client: Client,
    pub(crate) location: SessionLocation,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) config_loader: Arc<ProjectConfigLoader>,
    pub(crate) children: Arc<ChildAgents>,
    pub(crate) grants: Arc<GrantStore>,
    pub(crate) settings: watch::Receiver<SessionSettings>,
    pub(crate) turn_scope: TurnScope,
    pub(crate) cancel: CancellationToken,
}

impl TurnJob {
    /// Runs the turn; returns the session state in any case.
    pub(crate) async fn run(
        self,
        mut state: SessionState,
        work: TurnWork,
        mut steering: mpsc::Receiver<SteeringInput>,
    ) -> (SessionState, Result<TurnEnd, Failure>, mpsc::Receiver<SteeringInput>) {
        tracing::info!(session = %self.id, "a turn begins");
        let end = self.run_turn(&mut state, work, &mut steering).await;
        // Steering input that arrives later starts a turn of its own.
        steering.close();
        match &end {
            // The sentence may contain text of a server; the kind is enough for a log.
            Ok(TurnEnd::Failed(failure)) | Err(failure) => {
                tracing::warn!(session = %self.id, kind = %failure.kind, "a turn failed");
            }
            Ok(end) => tracing::info!(session = %self.id, ?end, "a turn ended"),
        }
        if let Err(error) = self.runtime.store.sync().await {
            tracing::warn!(session = %self.id, %error, "the end of the turn may be lost in a power failure");
        }
        self.client.send_update(&self.id, SessionUpdate::LastChanged(clock::format_rfc3339(clock::now())));
        (state, end, steering)
    }

    async fn run_turn(
        &self,
        state: &mut SessionState,
        work: TurnWork,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        // After an error from here on, the stored state is unknown.
        let stored_state = match std::mem::take(&mut state.stored_state) {
            StoredState::Pending(pending) => {
                // A cancelled prompt is stored nevertheless, unless the disk does not respond.
                if self.cancel.run_until_cancelled(pending.wait_until_settled()).await.is_none()
                    && timeout(STORE_WAIT_MAX, pending.wait_until_settled()).await.is_err()
                {
                    state.stored_state = StoredState::Pending(pending);
                    return Ok(TurnEnd::Cancelled);
                }
                state.transcript = Transcript::new(
                    pending.wait_until_stored(&self.runtime, &self.id, &self.settings).await?,
                );
                StoredState::Current
            }
            stored_state @ (StoredState::Current | StoredState::Unknown) => stored_state,
        };
        let lease = match self.runtime.store.acquire_session_lease(&self.id).await {
            Ok(lease) => lease,
            Err(error) => {
                state.stored_state = stored_state;
                return Err(store_failure(error));
            }
        };
        let cx = TurnCx {
            session: &self.id,
            runtime: &self.runtime,
            lease: &lease,
            client: &self.client,
            editor: &self.client.editor(&self.id),
            workspace: &self.workspace,
            toolbox: &self.toolbox,
            config_loader: &self.config_loader,
            children: &self.children,
            approvals: &self.grants,
            settings: &self.settings,
            turn_scope: self.turn_scope,
            cancel: &self.cancel,
            hook_state: &TurnHookState::default(),
            fallback: &FallbackModel::default(),
            step_policy: None,
        };
        let end = self.run_leased_turn(&cx, state, stored_state, TurnInput { work, steering }).await;
        self.runtime.store.release_session_lease(lease).await;
        end
    }

    /// Runs a turn while it holds the session lease.
    async fn run_leased_turn(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        stored_state: StoredState,
        TurnInput { work, steering }: TurnInput<'_>,
    ) -> Result<TurnEnd, Failure> {
        let tip = self.runtime.store.session_tip(&self.id).await.map_err(store_failure)?;
        let config = tip.as_ref().map(|tip| tip.config.as_str());
        if let Some(problem) = cx.approvals.load_grants(config, &self.location.cwd).await {
            cx.client.send_update(cx.session, SessionUpdate::Notice(problem));
        }
        match stored_state {
            // Another process may have continued or deleted the session.
            StoredState::Current | StoredState::Pending(_) => {
                let transcript = &state.transcript;
                let is_current = tip.as_ref().is_some_and(|tip| {
                    (tip.n_messages, tip.compaction.as_ref())
                        == (transcript.next_seq(), transcript.compaction())
                });
                if !is_current {
                    reload_state(cx, state, &self.location).await?;
                    self.config_loader.forget_known_skills().await;
                }
            }
            StoredState::Unknown => reload_state(cx, state, &self.location).await?,
        }
        if let Some(in_memory) = state.unfinished.take() {
            // The other process may have received more of the reply.
            let in_draft = self.runtime.store.read_draft(&self.id, state.transcript.next_seq()).await;
            let matching =
                Some(in_memory).filter(|in_memory| in_memory.id == state.transcript.next_message_id());
            if let Some(reply) = stored_session::longer_reply(matching, in_draft) {
                state.unfinished = Some(reply.clone());
                cx.append_entry(state, TranscriptEntry::Reply(reply)).await?;
                state.unfinished = None;
            }
        }
        cx.close_open_calls(state, RESULT_UNKNOWN).await?;
        let end = match work {
            TurnWork::Prompt(content) => {
                let undo_note = tip.and_then(|tip| crow_history::pending_undo_part(&tip.config));
                let request = workflow::find_answer(&state.transcript, &content);
                let input = PromptInput { content, undo_note };
                match request {
                    Some(request) => {
                        self.run_workflow(cx, state, WorkflowInput { request, input }, steering).await
                    }
                    None => self.answer_prompt(cx, state, input, steering).await,
                }
            }
            TurnWork::Mail => self.answer_mail(cx, state, steering).await,
            TurnWork::Context { command, message } => {
                self.run_context_command(cx, state, command, message).await
            }
            TurnWork::Undo { message, request } => self.undo_turns(cx, message, request).await,
            TurnWork::Workflow { request, content } => {
                let undo_note = tip.and_then(|tip| crow_history::pending_undo_part(&tip.config));
                let input = PromptInput { content, undo_note };
                self.run_workflow(cx, state, WorkflowInput { request, input }, steering).await
            }
        }?;
        state.stored_state = StoredState::Current;
        Ok(end)
    }

    /// Lets the model handle the mailbox.
    async fn answer_mail(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        self.config_loader.refresh_config(&self.cancel).await;
        state.turn = state.transcript.next_seq();
        match cx.append_mail(state).await? {
            0 => Ok(TurnEnd::Completed),
            _ => run_turn(cx, state, steering).await,
        }
    }

    /// Changes the context and sends the result.
    async fn run_context_command(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        command: ContextCommand,
        message: MessageId,
    ) -> Result<TurnEnd, Failure> {
        let (outcome, text) = compact::run_context_command(cx, state, command).await?;
        if outcome == CompactionOutcome::Cancelled {
            return Ok(TurnEnd::Cancelled);
        }
        if let Some(text) = text {
            self.client.send_update(&self.id, SessionUpdate::Text { message, text: format!("{text}\n") });
        }
        Ok(TurnEnd::Completed)
    }

    /// Lets the model answer a prompt.
    async fn answer_prompt(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        PromptInput { content, undo_note }: PromptInput,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let parts = match self.prepare_prompt(cx, state, content).await {
            Ok(parts) => parts,
            Err(turn_result) => {
                // Nothing was appended since the state was read.
                state.stored_state = StoredState::Current;
                return turn_result;
            }
        };
        let has_undo_note = undo_note.is_some();
        let reminder = workflow::workflow_reminder(cx, &state.transcript).await?;
        let parts = parts.into_iter().chain(undo_note).chain(reminder).collect();
        state.turn = state.transcript.next_seq();
        let mail = cx.children.take_deliveries().await.map_err(store_failure)?;
        cx.append_prompt(state, parts, mail).await?;
        if has_undo_note {
            crow_history::clear_pending_undo(&self.runtime.store, &self.id).await.map_err(store_failure)?;
        }
        // A compaction in the turn may remove the first prompt.
        let title = state.transcript.entries().iter().find_map(prompt_title);
        let end = run_turn(cx, state, steering).await?;
        self.set_title(state, title).await?;
        Ok(end)
    }

    /// Runs a workflow request.
    async fn run_workflow(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        workflow_input: WorkflowInput,
        steering: &mut mpsc::Receiver<SteeringInput>,
    ) -> Result<TurnEnd, Failure> {
        let title = workflow_input.input.content.iter().find_map(|block| match block {
            PromptBlock::Part(ContentPart::Text(text)) => Some(text_title(text)),
            PromptBlock::Part(_) | PromptBlock::ImageUri { .. } => None,
        });
        self.config_loader.refresh_config(&self.cancel).await;
        let seq_before = state.transcript.next_seq();
        let end = workflow::run_workflow(cx, state, workflow_input, steering).await;
        if state.transcript.next_seq() > seq_before {
            self.set_title(state, title).await?;
        }
        end
    }

    /// Sets the title of a session, once.
    async fn set_title(&self, state: &mut SessionState, title: Option<String>) -> Result<(), Failure> {
        if let Some(title) = title.filter(|_| !state.is_titled) {
            self.runtime.store.set_title(&self.id, &title).await.map_err(store_failure)?;
            state.is_titled = true;
            self.client.send_update(&self.id, SessionUpdate::Title(title));
        }
        Ok(())
    }

    /// Undoes the file changes of the last turns. A conflict ends it: the turns before change the same files.
    async fn undo_turns(
        &self,
        cx: &TurnCx<'_>,
        message: MessageId,
        UndoRequest { mode, n_turns }: UndoRequest,
    ) -> Result<TurnEnd, Failure> {
        let (editor, cancel) = (Some(cx.editor), cx.cancel);
        let undo_context = UndoContext { workspace: cx.workspace, editor, cancel, mode };
        let mut text = String::new();
        for _ in 0..n_turns {
            let undone = crow_history::undo_turn(&self.runtime.store, cx.lease, undo_context, clock::now());
            let outcome = undone.await.map_err(store_failure)?;
            if outcome.is_some() || text.is_empty() {
                text.push_str(&crow_history::render_undo(outcome.as_ref(), &self.location.cwd, mode));
            }
            if self.cancel.is_cancelled() || !outcome.is_some_and(|undone| undone.is_complete()) {
                break;
            }
        }
        if self.cancel.is_cancelled() {
            text.push_str("Stopped. Files that are not listed here are unchanged.\n");
        }
        self.client.send_update(&self.id, SessionUpdate::Text { message, text });
        Ok(if self.cancel.is_cancelled() { TurnEnd::Cancelled } else { TurnEnd::Completed })
    }

    /// Prepares a prompt for the model; the error is how the turn ends instead.
    async fn prepare_prompt(
        &self,
        cx: &TurnCx<'_>,
        state: &mut SessionState,
        content: Vec<PromptBlock>,
    ) -> Result<Vec<ContentPart>, Result<TurnEnd, Failure>> {
        self.config_loader.refresh_config(&self.cancel).await;
        let parts = match self.toolbox.fetch_prompt(&content, &self.cancel).await {
            Some(_) if self.cancel.is_cancelled() => return Err(Ok(TurnEnd::Cancelled)),
            Some(fetched) => {
                let mut parts = fetched.map_err(Err)?;
                parts.extend(load_prompt_parts(content.into_iter().skip(1).collect()).await.map_err(Err)?);
                parts
            }
            None => load_prompt_parts(content).await.map_err(Err)?,
        };
        match hooks::on_prompt(cx, parts).await {
            Ok(parts) => {
                let parts = linked_content::with_contents(cx, state, parts).await;
                Ok(self.config_loader.complete_prompt(parts, &state.transcript).await)
            }
            Err(rejection) => Err(Ok(self.end_rejected(rejection))),
        }
    }

    /// Ends a turn whose prompt was rejected by hooks: nothing of it is stored.
    fn end_rejected(&self, rejection: PromptRejection) -> TurnEnd {
        match rejection {
            PromptRejection::Rejected(text) => {
                let message = MessageId::new(format!("refused-{}", self.runtime.next_number()));
                self.client.send_update(&self.id, SessionUpdate::Text { message, text });
                TurnEnd::Completed
            }
            PromptRejection::Cancelled => TurnEnd::Cancelled,
        }
    }
}

/// Reloads the state from disk; a session that is not stored yet is stored now.
async fn reload_state(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    location: &SessionLocation,
) -> Result<(), Failure> {
    match stored_session::recover_conversation(cx.runtime, cx.session, state).await {
        Err(failure) if failure.kind == FailureKind::SessionNotFound && state.transcript.next_seq() == 0 => {
            let pending =
                PendingSession::start(cx.runtime, cx.session, location, cx.settings.borrow().clone());
            state.transcript =
                Transcript::new(pending.wait_until_stored(cx.runtime, cx.session, cx.settings).await?);
            Ok(())
        }
        result => {
            cx.children.tree_budget().set_session_usage(result?);
            Ok(())
        }
    }
}
