//! The connection to the agent: opened beside the loop, which draws before the agent answers. Keeps the senders for
//! the answers to its questions.

use std::collections::{HashMap, HashSet};

use crow_acp::{
    AgentConnection, AgentUpdate, ClientEvent, ClientInfo, ElicitationOutcome, FormSubject, LineTransport,
    PermissionAnswer, PermissionSubject, drive_agent,
};
use crow_core::{Failure, SessionId};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::app::event::{AppEvent, QuestionId};

/// Events between the connection and the loop; a slow terminal slows the agent down.
const EVENTS_LEN: usize = 256;

/// The loss of the connection.
#[derive(Debug, Clone)]
pub struct AgentLoss {
    pub failure: Failure,
    /// Whether the agent had answered before.
    pub was_initialized: bool,
}

/// A connection with the events of its agent.
pub(super) struct OpenConnection {
    pub(super) connection: AgentConnection,
    pub(super) events: mpsc::Receiver<ClientEvent>,
}

/// Connects, and keeps the connection until `quit` or its loss, which it returns.
pub(super) async fn keep_connection(
    connect: impl Future<Output = Result<LineTransport, Failure>>,
    client_info: ClientInfo,
    opened: oneshot::Sender<OpenConnection>,
    quit: CancellationToken,
) -> Option<AgentLoss> {
    let mut was_initialized = false;
    let result = async {
        let transport = connect.await?;
        let (event_sender, events) = mpsc::channel(EVENTS_LEN);
        drive_agent(transport, client_info, event_sender, async |connection| {
            was_initialized = true;
            let closed = connection.clone();
            if opened.send(OpenConnection { connection, events }).is_err() {
                return None;
            }
            tokio::select! {
                biased;
                () = quit.cancelled() => None,
                () = closed.wait_closed() => closed.disconnect_failure(),
            }
        })
        .await
    };
    match result.await {
        Ok(None) => None,
        Ok(Some(failure)) | Err(failure) => Some(AgentLoss { failure, was_initialized }),
    }
}

/// The sender for the answer to a question.
enum AnswerSender {
    Call(oneshot::Sender<PermissionAnswer>),
    Form(oneshot::Sender<ElicitationOutcome>),
}

/// The questions of the agent that wait for an answer.
pub(super) struct QuestionSenders {
    waiting: HashMap<QuestionId, AnswerSender>,
    next_id: QuestionId,
    approves_all: bool,
    /// The sessions that were started by ours.
    children: HashSet<SessionId>,
}

impl QuestionSenders {
    pub(super) fn new(approves_all: bool) -> Self {
        Self { waiting: HashMap::new(), next_id: 0, approves_all, children: HashSet::new() }
    }

    /// Converts an event of the agent; keeps the sender of a question.
    pub(super) fn receive(&mut self, event: ClientEvent) -> Option<AppEvent> {
        match event {
            ClientEvent::Update { session, message, update } => {
                if let AgentUpdate::Child { session, .. } = &update {
                    self.children.insert(session.clone());
                }
                Some(match self.children.contains(&session) {
                    true => AppEvent::ChildUpdate { session, message, update },
                    false => AppEvent::Update { message, update },
                })
            }
            ClientEvent::Permission { question, answer, .. } => {
                let is_call = question.subject != PermissionSubject::Continue;
                if let Some(allowed) = question.allow_once().filter(|_| self.approves_all && is_call) {
                    send_answer(answer, allowed);
                    return None;
                }
                let id = self.keep(AnswerSender::Call(answer));
                Some(AppEvent::Permission { id, request: question })
            }
            ClientEvent::Form { form, answer, .. } => {
                if self.approves_all && form.subject == FormSubject::Trust {
                    let reason = "-y does not answer questions about trust".to_owned();
                    send_answer(answer, ElicitationOutcome::Unavailable { reason });
                    return None;
                }
                let id = self.keep(AnswerSender::Form(answer));
                Some(AppEvent::Form { id, form })
            }
            ClientEvent::AccessRequest(request) => {
                request.reject("this client provides no files or terminals");
                None
            }
            // A dropped claim is rejected: an agent counts the children it starts itself.
            ClientEvent::RawUpdate { .. } | ClientEvent::Claim { .. } | ClientEvent::Release { .. } => None,
        }
    }

    pub(super) fn answer_call(&mut self, id: QuestionId, answer: PermissionAnswer) {
        if let Some(AnswerSender::Call(sender)) = self.waiting.remove(&id) {
            send_answer(sender, answer);
        }
    }

    pub(super) fn answer_form(&mut self, id: QuestionId, outcome: ElicitationOutcome) {
        if let Some(AnswerSender::Form(sender)) = self.waiting.remove(&id) {
            send_answer(sender, outcome);
        }
    }

    /// Drops a question, which tells the agent that it was not answered.
    pub(super) fn drop_question(&mut self, id: QuestionId) {
        self.waiting.remove(&id);
    }

    /// Returns a question whose agent no longer waits.
    pub(super) fn take_withdrawn(&mut self) -> Option<QuestionId> {
        let is_closed = |sender: &AnswerSender| match sender {
            AnswerSender::Call(sender) => sender.is_closed(),
            AnswerSender::Form(sender) => sender.is_closed(),
        };
        let id = self.waiting.iter().find(|(_, sender)| is_closed(sender)).map(|(id, _)| *id)?;
        self.waiting.remove(&id);
        Some(id)
    }

    /// Waits until the agent no longer waits for some question.
    pub(super) async fn wait_withdrawn(&mut self) -> QuestionId {
        loop {
            if let Some(id) = self.take_withdrawn() {
                return id;
            }
            let closed = self.waiting.values_mut().map(|sender| match sender {
                AnswerSender::Call(sender) => Box::pin(sender.closed()) as ClosedFuture<'_>,
                AnswerSender::Form(sender) => Box::pin(sender.closed()),
            });
            let closed: Vec<ClosedFuture<'_>> = closed.collect();
            if closed.is_empty() {
                std::future::pending::<()>().await;
            }
            futures_util::future::select_all(closed).await;
        }
    }

    fn keep(&mut self, sender: AnswerSender) -> QuestionId {
        self.next_id += 1;
        self.waiting.insert(self.next_id, sender);
        self.next_id
    }
}

type ClosedFuture<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn send_answer<A>(sender: oneshot::Sender<A>, answer: A) {
    if sender.send(answer).is_err() {
        tracing::debug!("the agent no longer waits for the answer");
    }
}
