//! The way into a session: what it can be told, and how it is stopped whatever it is busy with.

use crow_acp::{Answer, Place, Spoken, Steered, Ticket, Until};
use crow_core::{Failure, Options, SessionId, TurnEnd};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::run_turn::Conversation;

/// More than the host hands on before it lets a session run: what does not fit is told that the session is stuck.
pub(crate) const INBOX_LEN: usize = 256;

/// Something a session is told.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    Prompt {
        ticket: Ticket,
        said: Vec<Spoken>,
        until: Until,
        answer: Answer<TurnEnd>,
    },
    Withdraw {
        ticket: Ticket,
    },
    Steer {
        said: Vec<Spoken>,
        answer: Answer<Steered>,
    },
    Cancel,
    /// Something came into the mailbox.
    Mail,
    SetOption {
        option: String,
        value: String,
        answer: Answer<Options>,
    },
    /// The client opens it again, perhaps elsewhere.
    Reopen {
        place: Place,
        answer: Answer<Options>,
    },
    Close {
        answer: Answer<()>,
    },
    TurnEnded {
        ended: Box<TurnEnded>,
    },
}

impl SessionMsg {
    /// Answers what a session that has ended was told.
    pub(crate) fn refuse(self, id: &SessionId) {
        let gone = || crate::open::not_found(id);
        match self {
            Self::Prompt { answer, .. } => answer.give(Err(gone())),
            Self::Steer { answer, .. } => answer.give(Err(gone())),
            Self::SetOption { answer, .. } | Self::Reopen { answer, .. } => answer.give(Err(gone())),
            Self::Close { answer } => answer.give(Ok(())),
            Self::TurnEnded { ended } => ended.answer.give(ended.end),
            Self::Withdraw { .. } | Self::Cancel | Self::Mail => {}
        }
    }
}

/// What a turn gives back.
#[derive(Debug)]
pub(crate) struct TurnEnded {
    pub(crate) talk: Conversation,
    pub(crate) end: Result<TurnEnd, Failure>,
    pub(crate) answer: Answer<TurnEnd>,
    /// What came too late for its last request.
    pub(crate) more_words: mpsc::Receiver<MoreWords>,
}

/// Words for a turn that runs.
#[derive(Debug)]
pub(crate) struct MoreWords {
    pub(crate) said: Vec<Spoken>,
    pub(crate) answer: Answer<Steered>,
}

/// The way into a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) id: SessionId,
    pub(crate) inbox: mpsc::Sender<SessionMsg>,
    /// Cuts the turn that runs; an inbox that is full must not stand in the way of that.
    pub(crate) turn: watch::Receiver<CancellationToken>,
    /// Cut when the session has ended.
    pub(crate) gone: CancellationToken,
}

impl SessionHandle {
    /// Tells the session something that wants an answer; a session that is stuck answers so at once.
    pub(crate) fn tell<T>(&self, answer: Answer<T>, msg: impl FnOnce(Answer<T>) -> SessionMsg) {
        match self.inbox.try_reserve() {
            Ok(room) => room.send(msg(answer)),
            Err(mpsc::error::TrySendError::Full(())) => {
                answer.give(Err(crate::open::stuck()));
            }
            Err(mpsc::error::TrySendError::Closed(())) => answer.give(Err(crate::open::not_found(&self.id))),
        }
    }

    /// Stops the turn that runs, at once, and what waits behind it.
    pub(crate) fn cancel(&self) {
        self.turn.borrow().cancel();
        if let Err(mpsc::error::TrySendError::Full(cancel)) = self.inbox.try_send(SessionMsg::Cancel) {
            // It stands behind what it is to stop.
            let inbox = self.inbox.clone();
            tokio::spawn(async move { drop(inbox.send(cancel).await) });
        }
    }

    /// Ends the session with its turn and its servers, and waits for that.
    pub(crate) async fn close(self) {
        self.turn.borrow().cancel();
        let closed = Answer::new(|_: Result<(), Failure>| ());
        if self.inbox.send(SessionMsg::Close { answer: closed }).await.is_ok() {
            self.gone.cancelled().await;
        }
    }

    /// Takes one prompt back.
    pub(crate) fn withdraw(&self, ticket: Ticket) {
        if self.inbox.try_send(SessionMsg::Withdraw { ticket }).is_err() {
            tracing::warn!(session = %self.id, "the session is stuck; a prompt could not be taken back");
        }
    }
}
