//! Runs one turn on its own task: what is stored before it, and what is kept after it.

mod work;

use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, PromptBlock, SessionLocation, TurnScope};
use crow_children::ChildAgents;
use crow_core::{
    ContextCommand, Failure, FailureKind, MessageId, RESULT_UNKNOWN, SessionId, SessionUpdate,
    TranscriptEntry, TurnEnd, UndoRequest,
};
use crow_model::CurrentFallback;
use crow_project::{GrantStore, ProjectConfigLoader};
use crow_store::SessionTip;
use crow_tools::{Toolbox, Workspace};
use crow_workflow::WorkflowRequest;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::clock;
use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::live_replays::LiveReplays;
use crate::pending_session::PendingSession;
use crate::runtime::AgentRuntime;
use crate::session_settings::SessionSettings;
use crate::stored_session;
use crate::telemetry;
use crate::turn_context::{SessionState, StoredState, TurnCx, TurnHookState};
use crate::workflow::{self, PromptInput, WorkflowInput};

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
    pub(crate) config_loader: Arc<ProjectConfigLoader<AgentRuntime>>,
    pub(crate) children: Arc<ChildAgents>,
    pub(crate) grants: Arc<GrantStore<AgentRuntime>>,
    pub(crate) settings: watch::Receiver<SessionSettings>,
    pub(crate) replays: LiveReplays,
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
        let span = telemetry::turn_span(&self.id, || {
            let name = self.settings.borrow().model.clone();
            self.runtime.find_model(name.as_deref()).ok()
        });
        let end = self.run_turn(&mut state, work, &mut steering).instrument(span.clone()).await;
        telemetry::record_turn_end(&span, &end);
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
                state.begin(pending.wait_until_stored(&self.runtime, &self.id, &self.settings).await?);
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
            replays: &self.replays,
            turn_scope: self.turn_scope,
            cancel: &self.cancel,
            hook_state: &TurnHookState::default(),
            fallback: &CurrentFallback::default(),
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
        // Its calls are open in the client as well.
        let was_interrupted = matches!(stored_state, StoredState::Unknown);
        if was_interrupted || !is_current(state, tip.as_ref()) {
            reload_state(cx, state, &self.location).await?;
            // The prompt that named them may not have been stored.
            self.config_loader.forget_known_skills().await;
        }
        // Another process may have received a reply, or more of it, and was killed since the state was read.
        let in_draft = self.runtime.store.read_draft(&self.id, state.transcript.next_seq()).await;
        let in_memory =
            state.unfinished.take().filter(|reply| reply.id == state.transcript.next_message_id());
        if let Some(reply) = stored_session::longer_reply(in_memory, in_draft) {
            state.unfinished = Some(reply.clone());
            cx.append_entry(state, TranscriptEntry::Reply(reply)).await?;
            state.unfinished = None;
        }
        let closed_calls = cx.close_open_calls(state, RESULT_UNKNOWN).await?;
        if was_interrupted {
            cx.show_failed_calls(&closed_calls, RESULT_UNKNOWN);
        }
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
}

/// Whether the store has the same transcript: another process may have continued or deleted the session.
fn is_current(state: &SessionState, tip: Option<&SessionTip>) -> bool {
    let transcript = &state.transcript;
    tip.is_some_and(|tip| {
        (tip.n_messages, tip.compaction.as_ref()) == (transcript.next_seq(), transcript.compaction())
    })
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
            state.begin(pending.wait_until_stored(cx.runtime, cx.session, cx.settings).await?);
            Ok(())
        }
        result => {
            cx.children.tree_budget().set_session_usage(result?);
            Ok(())
        }
    }
}
