//! Takes up a task that is in its queue already: an earlier process gave it, or it waited without a client. Its server may
//! be away for long: its client is answered meanwhile, and what it cancels is taken out of the queue if the server comes
//! back soon.

use std::io;
use std::sync::Arc;

use crow_acp::{ParentRelay, ParentRelayAction};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::records::FarmConnection;
use super::task::{CLEAN_UP_TIMEOUT, FarmTaskDriver};
use crate::code::CodeReturn;
use crate::place::{FarmPlace, PlaceKeeper};

/// A task whose server is not reached yet.
pub(super) struct PendingResumption {
    place: FarmPlace,
    keeper: Option<Arc<dyn PlaceKeeper>>,
    code_return: Option<CodeReturn>,
    client: ResumedClient,
}

/// The client of a task, as far as it has spoken.
struct ResumedClient {
    relay: ParentRelay,
    was_prompted: bool,
    is_cancelled: bool,
}

impl PendingResumption {
    pub(super) fn new(place: FarmPlace, relay: ParentRelay) -> Self {
        let client = ResumedClient { relay, was_prompted: false, is_cancelled: false };
        Self { place, keeper: None, code_return: None, client }
    }

    /// Keeps what the server has of the task until the keeper has its end.
    pub(super) fn keep_in(self, keeper: Arc<dyn PlaceKeeper>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Returns what the end of the task says about its code.
    pub(super) fn return_code_to(self, code_return: Option<CodeReturn>) -> Self {
        Self { code_return, ..self }
    }

    /// Waits for the server and the prompt, then drives the task as any other.
    pub(super) async fn run(
        self,
        reaching: impl Future<Output = Arc<FarmConnection>>,
        mut from_client: mpsc::Receiver<io::Result<String>>,
        to_client: mpsc::Sender<io::Result<String>>,
    ) {
        let Self { place, keeper, code_return, mut client } = self;
        tokio::pin!(reaching);
        let (mut connection, mut deadline) = (None, None);
        let connection = loop {
            // An end that comes before the prompt would answer nothing.
            if let Some(connection) = connection.take_if(|_| client.was_prompted || deadline.is_some()) {
                break connection;
            }
            tokio::select! {
                biased;
                line = from_client.recv(), if deadline.is_none() => match line {
                    Some(Ok(line)) => client.handle_line(&line, &to_client).await,
                    Some(Err(_)) | None => deadline = Some(Instant::now() + CLEAN_UP_TIMEOUT),
                },
                reached = &mut reaching, if connection.is_none() => connection = Some(reached),
                () = wait_until(deadline) => return,
            }
        };
        let records = connection.receive_records(place.session().as_str());
        let mut driver = FarmTaskDriver::resume(connection, &place, keeper, client.relay);
        driver.return_code_to(code_return);
        if client.was_prompted {
            driver.look_for_task().await;
        }
        if client.is_cancelled {
            driver.cancel().await;
        }
        driver.run(from_client, to_client, records).await;
    }
}

impl ResumedClient {
    async fn handle_line(&mut self, line: &str, to_client: &mpsc::Sender<io::Result<String>>) {
        let mut answers = Vec::new();
        for action in self.relay.handle_client_line(line) {
            match action {
                ParentRelayAction::StartTask { .. } => self.was_prompted = true,
                ParentRelayAction::CancelTask => {
                    self.is_cancelled = true;
                    answers.extend(self.relay.finish_cancelled());
                }
                answer @ (ParentRelayAction::SendToClient(_) | ParentRelayAction::SendToWorker(_)) => {
                    answers.push(answer);
                }
            }
        }
        for answer in answers {
            if let ParentRelayAction::SendToClient(line) = answer
                && to_client.send(Ok(line)).await.is_err()
            {
                // The end of its lines follows.
                return;
            }
        }
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
