//! The handle of a session: its messages, and how to stop it even if it is busy.

use crow_acp::{
    PromptBlock, PromptId, PromptResult, ResponseSender, SessionLocation, SteerOutcome, TurnScope,
};
use crow_core::{Failure, SessionConfigOptions, SessionId, TurnEnd};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::live_replays::LiveReplays;
use crate::turn_context::SessionState;

/// More than the host sends before it lets a session run; a request beyond that fails because the session is stuck.
pub(crate) const INBOX_LEN: usize = 256;

/// A message to a session.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    Prompt {
        prompt_id: PromptId,
        content: Vec<PromptBlock>,
        turn_scope: TurnScope,
        answer: ResponseSender<PromptResult>,
    },
    Withdraw {
        prompt_id: PromptId,
    },
    Steer {
        content: Vec<PromptBlock>,
        answer: ResponseSender<SteerOutcome>,
    },
    Cancel,
    /// The mailbox has a message.
    Mail,
    SetOption {
        option: String,
        value: String,
        answer: ResponseSender<SessionConfigOptions>,
    },
    /// The client opens the session again, perhaps in another directory.
    Reopen {
        location: SessionLocation,
        answer: ResponseSender<SessionConfigOptions>,
    },
    Close {
        answer: ResponseSender<()>,
    },
    TurnEnded {
        finished: Box<FinishedTurn>,
    },
}

impl SessionMsg {
    /// Answers a message to a session that has ended.
    pub(crate) fn reject(self, id: &SessionId) {
        let not_open = || crate::failures::session_not_open(id);
        match self {
            Self::Prompt { answer, .. } => answer.send(Err(not_open())),
            Self::Steer { answer, .. } => answer.send(Err(not_open())),
            Self::SetOption { answer, .. } | Self::Reopen { answer, .. } => answer.send(Err(not_open())),
            Self::Close { answer } => answer.send(Ok(())),
            Self::TurnEnded { finished: ended } => ended.answer.send(ended.end.map(Into::into)),
            Self::Withdraw { .. } | Self::Cancel | Self::Mail => {}
        }
    }
}

/// The result of a turn.
#[derive(Debug)]
pub(crate) struct FinishedTurn {
    pub(crate) state: SessionState,
    pub(crate) end: Result<TurnEnd, Failure>,
    pub(crate) answer: ResponseSender<PromptResult>,
    /// Steering input that arrived after the last request of the turn.
    pub(crate) steering: mpsc::Receiver<SteeringInput>,
}

/// Input for a running turn.
#[derive(Debug)]
pub(crate) struct SteeringInput {
    pub(crate) content: Vec<PromptBlock>,
    pub(crate) answer: ResponseSender<SteerOutcome>,
}

/// A handle to a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) id: SessionId,
    pub(crate) inbox: mpsc::Sender<SessionMsg>,
    /// Cancels the running turn, even if the inbox is full.
    pub(crate) turn_cancel: watch::Receiver<CancellationToken>,
    pub(crate) replays: LiveReplays,
    /// Cancelled when the session has ended.
    pub(crate) closed: CancellationToken,
}

impl SessionHandle {
    /// Sends a message that needs an answer; a session that is stuck answers so at once.
    pub(crate) fn send_request<T>(
        &self,
        answer: ResponseSender<T>,
        msg: impl FnOnce(ResponseSender<T>) -> SessionMsg,
    ) {
        match self.inbox.try_reserve() {
            Ok(permit) => permit.send(msg(answer)),
            Err(mpsc::error::TrySendError::Full(())) => {
                answer.send(Err(crate::failures::stuck_session()));
            }
            Err(mpsc::error::TrySendError::Closed(())) => {
                answer.send(Err(crate::failures::session_not_open(&self.id)));
            }
        }
    }

    /// Cancels the running turn at once, and the waiting prompts.
    pub(crate) fn cancel_turn(&self) {
        self.turn_cancel.borrow().cancel();
        if let Err(mpsc::error::TrySendError::Full(msg)) = self.inbox.try_send(SessionMsg::Cancel) {
            // The queue must be emptied first.
            let inbox = self.inbox.clone();
            tokio::spawn(async move { drop(inbox.send(msg).await) });
        }
    }

    /// Ends the session with its turn and its servers, and waits for the end.
    pub(crate) async fn close(self) {
        self.turn_cancel.borrow().cancel();
        let responder = ResponseSender::new(|_: Result<(), Failure>| ());
        if self.inbox.send(SessionMsg::Close { answer: responder }).await.is_ok() {
            self.closed.cancelled().await;
        }
    }

    /// Withdraws one prompt.
    pub(crate) fn withdraw_prompt(&self, prompt_id: PromptId) {
        if self.inbox.try_send(SessionMsg::Withdraw { prompt_id }).is_err() {
            tracing::warn!(session = %self.id, "the session is stuck; a prompt could not be withdrawn");
        }
    }
}
