//! The turns of a session, one at a time: prompts that wait, input for the running turn, and what follows its end.

use crow_acp::{PromptBlock, PromptId, PromptResult, ResponseSender, SteerOutcome, TurnScope};
use crow_core::{Failure, FailureKind, SessionUpdate, TurnEnd, to_sentence};
use tokio::sync::mpsc;
use tracing::Instrument;

use super::{DriverState, SessionDriver, WaitingPrompt};
use crate::handle::{FinishedTurn, SessionMsg, SteeringInput};
use crate::turn_context::SessionState;
use crate::turn_job::{TurnJob, TurnWork};

/// Prompts that may wait behind a turn: people type them.
const QUEUE_LEN_MAX: usize = 16;

impl SessionDriver {
    /// Starts a turn, or queues its prompt behind the running one.
    pub(super) fn begin_or_wait(&mut self, prompt: WaitingPrompt) {
        match &mut self.state {
            DriverState::Idle(state) => {
                let state = std::mem::take(&mut **state);
                self.start_turn(state, prompt);
            }
            DriverState::Running { .. } if self.queue.len() < QUEUE_LEN_MAX => self.queue.push_back(prompt),
            DriverState::Running { .. } => prompt.answer.send(Err(queue_full_failure())),
        }
    }

    pub(super) fn on_cancel(&mut self) {
        self.turn_cancel.borrow().cancel();
        self.children.cancel_all();
        for prompt in self.queue.drain(..) {
            prompt.answer.send(Ok(TurnEnd::Cancelled.into()));
        }
    }

    pub(super) fn on_withdraw(&mut self, withdrawn: PromptId) {
        match &self.state {
            DriverState::Running { prompt_id: Some(prompt_id), .. } if *prompt_id == withdrawn => {
                self.turn_cancel.borrow().cancel();
            }
            DriverState::Running { .. } | DriverState::Idle(_) => {
                let index = self.queue.iter().position(|prompt| prompt.prompt_id == Some(withdrawn));
                if let Some(prompt) = index.and_then(|index| self.queue.remove(index)) {
                    prompt.answer.send(Ok(TurnEnd::Cancelled.into()));
                }
            }
        }
    }

    pub(super) fn on_steer(&mut self, content: Vec<PromptBlock>, answer: ResponseSender<SteerOutcome>) {
        let input = SteeringInput { content, answer };
        let input = match &self.state {
            DriverState::Running { steering, .. } => match steering.try_send(input) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Closed(input)) => input,
                Err(mpsc::error::TrySendError::Full(input)) => {
                    let reason = "too many messages wait for this turn; wait until the model has read them";
                    return input.answer.send(Err(Failure::new(FailureKind::InvalidValue, reason)));
                }
            },
            DriverState::Idle(_) => input,
        };
        self.start_own_turn(input);
    }

    /// Starts a turn from steering input; its failure is shown as a notice.
    fn start_own_turn(&mut self, input: SteeringInput) {
        if self.queue.len() >= QUEUE_LEN_MAX {
            return input.answer.send(Err(queue_full_failure()));
        }
        input.answer.send(Ok(SteerOutcome::StartedNewTurn));
        let (client, id) = (self.client.clone(), self.id.clone());
        let answer = ResponseSender::new(move |result: Result<PromptResult, _>| {
            if let Ok(TurnEnd::Failed(failure)) | Err(failure) = result.map(|result| result.end) {
                client.send_update(&id, SessionUpdate::Notice(to_sentence(&failure.message)));
            }
        });
        let (work, turn_scope) = (TurnWork::Prompt(input.content), TurnScope::WithoutTasks);
        self.begin_or_wait(WaitingPrompt { prompt_id: None, work, turn_scope, answer });
    }

    fn start_turn(&mut self, state: SessionState, prompt: WaitingPrompt) {
        let WaitingPrompt { prompt_id, work, turn_scope, answer } = prompt;
        let cancel = self.cancel.child_token();
        self.turn_cancel.send_replace(cancel.clone());
        let (input, steering) = mpsc::channel(QUEUE_LEN_MAX);
        self.state = DriverState::Running { prompt_id, steering: input };
        let job = TurnJob {
            id: self.id.clone(),
            runtime: self.runtime.clone(),
            client: self.client.clone(),
            location: self.location.clone(),
            workspace: self.workspace.clone(),
            toolbox: self.toolbox.clone(),
            config_loader: self.config_loader.clone(),
            children: self.children.clone(),
            grants: self.grants.clone(),
            settings: self.settings.subscribe(),
            replays: self.replays.clone(),
            turn_scope,
            cancel,
        };
        let inbox_sender = self.inbox_sender.clone();
        let (client, id) = (self.client.clone(), self.id.clone());
        let turn = self.turns.spawn(job.run(state, work, steering).in_current_span());
        self.turns.spawn(async move {
            let (state, end, steering) = match turn.await {
                Ok(finished) => finished,
                // A panicking turn loses its state; the next one reloads it from disk.
                Err(error) => {
                    let failure =
                        Failure::new(FailureKind::Internal, format!("the turn failed unexpectedly: {error}"));
                    (SessionState::default(), Err(failure), mpsc::channel(1).1)
                }
            };
            client.flush_updates(&id).await;
            let finished = Box::new(FinishedTurn { state, end, answer, steering });
            match inbox_sender.upgrade() {
                Some(inbox_sender) => {
                    if inbox_sender.send(SessionMsg::TurnEnded { finished }).await.is_err() {
                        tracing::debug!(session = %id, "the session ended before its turn");
                    }
                }
                None => finished.answer.send(finished.end.map(Into::into)),
            }
        });
    }

    pub(super) fn on_turn_ended(&mut self, finished: FinishedTurn) {
        let FinishedTurn { state, end, answer, mut steering } = finished;
        let was_cancelled = matches!(end, Ok(TurnEnd::Cancelled));
        // A failed turn is not repeated automatically: the next prompt finds the mail.
        let is_success = !was_cancelled && !matches!(end, Ok(TurnEnd::Failed(_)) | Err(_));
        let session_usage = self.children.tree_budget().session_usage();
        answer.send(end.map(|end| PromptResult { end, session_usage }));
        self.state = DriverState::Idle(Box::new(state));
        while let Ok(input) = steering.try_recv() {
            if was_cancelled {
                let reason = "the turn was cancelled before the model read this; send it as a prompt";
                input.answer.send(Err(Failure::new(FailureKind::InvalidValue, reason)));
            } else {
                self.start_own_turn(input);
            }
        }
        if self.cancel.is_cancelled() || !self.close_responders.is_empty() {
            // Waiting prompts would be stored and never sent.
            self.on_cancel();
        }
        if let DriverState::Idle(state) = &mut self.state
            && let Some(prompt) = self.queue.pop_front()
        {
            let state = std::mem::take(&mut **state);
            self.start_turn(state, prompt);
        }
        if is_success {
            self.on_mail();
        }
    }
}

fn queue_full_failure() -> Failure {
    let reason = "too many prompts wait in this session; cancel the turn or wait for it";
    Failure::new(FailureKind::InvalidValue, reason)
}
