//! The way into a session: what it can be told, and how it is stopped whatever it is busy with.

use crow_acp::{PromptBlock, PromptId, ResponseSender, SessionLocation, SteerOutcome, TurnScope};
use crow_core::{Failure, SessionConfigOptions, SessionId, TurnEnd};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::run_turn::SessionState;

/// More than the host hands on before it lets a session run: what does not fit is told that the session is stuck.
pub(crate) const INBOX_LEN: usize = 256;

/// Something a session is told.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    Prompt {
        prompt_id: PromptId,
        content: Vec<PromptBlock>,
        turn_scope: TurnScope,
        answer: ResponseSender<TurnEnd>,
    },
    Withdraw {
        prompt_id: PromptId,
    },
    Steer {
        content: Vec<PromptBlock>,
        answer: ResponseSender<SteerOutcome>,
    },
    Cancel,
    /// Something came into the mailbox.
    Mail,
    SetOption {
        option: String,
        value: String,
        answer: ResponseSender<SessionConfigOptions>,
    },
    /// The client opens it again, perhaps elsewhere.
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
    /// Answers what a session that has ended was told.
    pub(crate) fn reject(self, id: &SessionId) {
        let not_found = || crate::session_init::not_found(id);
        match self {
            Self::Prompt { answer, .. } => answer.send(Err(not_found())),
            Self::Steer { answer, .. } => answer.send(Err(not_found())),
            Self::SetOption { answer, .. } | Self::Reopen { answer, .. } => answer.send(Err(not_found())),
            Self::Close { answer } => answer.send(Ok(())),
            Self::TurnEnded { finished: ended } => ended.answer.send(ended.end),
            Self::Withdraw { .. } | Self::Cancel | Self::Mail => {}
        }
    }
}

/// What a turn gives back.
#[derive(Debug)]
pub(crate) struct FinishedTurn {
    pub(crate) state: SessionState,
    pub(crate) end: Result<TurnEnd, Failure>,
    pub(crate) answer: ResponseSender<TurnEnd>,
    /// What came too late for its last request.
    pub(crate) steering: mpsc::Receiver<SteeringInput>,
}

/// Words for a turn that runs.
#[derive(Debug)]
pub(crate) struct SteeringInput {
    pub(crate) content: Vec<PromptBlock>,
    pub(crate) answer: ResponseSender<SteerOutcome>,
}

/// The way into a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) id: SessionId,
    pub(crate) inbox: mpsc::Sender<SessionMsg>,
    /// Cuts the turn that runs; an inbox that is full must not stand in the way of that.
    pub(crate) turn_cancel: watch::Receiver<CancellationToken>,
    /// Cut when the session has ended.
    pub(crate) closed: CancellationToken,
}

impl SessionHandle {
    /// Tells the session something that wants an answer; a session that is stuck answers so at once.
    pub(crate) fn send_request<T>(
        &self,
        answer: ResponseSender<T>,
        msg: impl FnOnce(ResponseSender<T>) -> SessionMsg,
    ) {
        match self.inbox.try_reserve() {
            Ok(permit) => permit.send(msg(answer)),
            Err(mpsc::error::TrySendError::Full(())) => {
                answer.send(Err(crate::session_init::stuck_failure()));
            }
            Err(mpsc::error::TrySendError::Closed(())) => {
                answer.send(Err(crate::session_init::not_found(&self.id)))
            }
        }
    }

    /// Stops the turn that runs, at once, and what waits behind it.
    pub(crate) fn cancel_turn(&self) {
        self.turn_cancel.borrow().cancel();
        if let Err(mpsc::error::TrySendError::Full(msg)) = self.inbox.try_send(SessionMsg::Cancel) {
            // It stands behind what it is to stop.
            let inbox = self.inbox.clone();
            tokio::spawn(async move { drop(inbox.send(msg).await) });
        }
    }

    /// Ends the session with its turn and its servers, and waits for that.
    pub(crate) async fn close(self) {
        self.turn_cancel.borrow().cancel();
        let responder = ResponseSender::new(|_: Result<(), Failure>| ());
        if self.inbox.send(SessionMsg::Close { answer: responder }).await.is_ok() {
            self.closed.cancelled().await;
        }
    }

    /// Takes one prompt back.
    pub(crate) fn withdraw_prompt(&self, prompt_id: PromptId) {
        if self.inbox.try_send(SessionMsg::Withdraw { prompt_id }).is_err() {
            tracing::warn!(session = %self.id, "the session is stuck; a prompt could not be taken back");
        }
    }
}
