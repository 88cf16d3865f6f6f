//! A task that waits in its queue for a worker, and that no client drives yet: of thousands, each costs little.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crow_acp::{LineTransport, ParentRelay, channel_transport};
use crow_core::FarmAddress;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::new_task::FarmTask;
use super::records::FarmConnection;
use super::resumption::PendingResumption;
use super::task::{CLEAN_UP_TIMEOUT, PUBLISH_PAUSE};
use super::{FarmConnections, QUEUED_LINES_MAX};
use crate::code::CodeReturn;
use crate::place::FarmPlace;
use crate::streams::{self, PublishOutcome, TASKS, publish};
use crate::subject::{TaskAddress, random_name};
use crate::ticket::TaskTicket;

/// Time between two looks whether the server still has the task: it loses what it had not written to disk.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A task that waits for a worker.
pub struct QueuedFarmTask {
    farms: FarmConnections,
    connection: Arc<FarmConnection>,
    place: FarmPlace,
    version: &'static str,
    /// The message in the queue, once the server has said which.
    sequence: Option<u64>,
    /// The signal that a worker has it, or that it has ended.
    begun: oneshot::Receiver<()>,
    /// Gets what the end says about the code of the task.
    code_return: Option<CodeReturn>,
}

impl FarmConnections {
    /// Makes a task for a queue, which [`QueuedFarmTask::wait`] puts there. The error is the reason why it cannot be sent.
    pub async fn prepare_task(
        &self,
        address: &FarmAddress,
        task: &FarmTask,
        prompt: String,
        model: Option<String>,
    ) -> Result<QueuedFarmTask, String> {
        let connection = self.connection(address).await?;
        let name = random_name()?;
        let message = task.make_message(name.clone(), TaskTicket::generate()?, prompt, model);
        let begun = connection.await_record(&name);
        let address =
            TaskAddress { queue: address.queue.clone(), parent: address.parent_name.clone(), task: name };
        let place = FarmPlace::new(connection.servers.clone(), &address, message);
        Ok(QueuedFarmTask {
            farms: self.clone(),
            connection,
            place,
            version: task.version,
            sequence: None,
            begun,
            code_return: task.code.as_ref().map(|code| code.returned.clone()),
        })
    }
}

impl QueuedFarmTask {
    /// Puts the task into its queue and waits until a worker has it. The error is the reason why the queue does not take it.
    pub async fn wait(&mut self) -> Result<(), String> {
        {
            let connection = Arc::clone(&self.connection);
            let _permit = connection.requests.acquire().await.map_err(|error| error.to_string())?;
            // The box is gone while it waits.
            Box::pin(self.publish()).await?;
        }
        loop {
            tokio::select! {
                // Without a sender a record has come.
                _ = &mut self.begun => return Ok(()),
                () = sleep(CHECK_INTERVAL) => {}
            }
            // Its driver finds out whether it has ended, and otherwise publishes it again.
            let (jetstream, address) = (&self.connection.jetstream, self.place.address());
            if Box::pin(streams::has_task(jetstream, &address)).await == Ok(false) {
                return Ok(());
            }
        }
    }

    async fn publish(&mut self) -> Result<(), String> {
        let (address, message) = (self.place.address(), self.place.message.encode()?);
        loop {
            let (jetstream, subject) = (&self.connection.jetstream, address.task_subject());
            match publish(jetstream, subject, message.clone(), &address.task).await {
                PublishOutcome::Stored { sequence } => {
                    self.sequence = Some(sequence);
                    return Ok(());
                }
                PublishOutcome::AlreadyStored => return Ok(()),
                PublishOutcome::NoStream => return Err(streams::no_queue_reason(&address.queue)),
                PublishOutcome::Unknown(reason) => {
                    tracing::debug!(%reason, "a task was not confirmed; it is published again");
                }
            }
            sleep(PUBLISH_PAUSE).await;
        }
    }

    /// Returns the prompt of the task.
    pub fn prompt(&self) -> &str {
        self.place.prompt()
    }

    /// Opens the connection to the agent of the task. What its client chooses and prompts is what the task says already.
    pub fn open(self) -> LineTransport {
        let (to_task, from_client) = mpsc::channel(QUEUED_LINES_MAX);
        let (to_client, from_task) = mpsc::channel(QUEUED_LINES_MAX);
        let relay = ParentRelay::new(self.place.session(), self.version);
        let driver = PendingResumption::new(self.place, relay).return_code_to(self.code_return);
        self.farms.tasks.spawn(driver.run(std::future::ready(self.connection), from_client, to_client));
        channel_transport(from_task, to_task)
    }

    /// Takes the task out of its queue, in the background. A worker that has just begun it stops.
    pub fn withdraw(self) {
        let farms = self.farms.clone();
        farms.tasks.spawn(async move {
            let address = self.place.address();
            self.connection.forget_task(&address.task);
            // It is never closed.
            let _permit = self.connection.requests.acquire().await.ok();
            let withdrawal = async {
                while let Err(reason) = self.delete_message(&address).await {
                    tracing::debug!(%reason, "a task was not taken out of its queue");
                    sleep(PUBLISH_PAUSE).await;
                }
            };
            if timeout(CLEAN_UP_TIMEOUT, Box::pin(withdrawal)).await.is_err() {
                self.connection.n_unconfirmed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(task = address.task, "the server did not confirm that a task is cancelled");
            }
        });
    }

    async fn delete_message(&self, address: &TaskAddress) -> Result<(), String> {
        let jetstream = &self.connection.jetstream;
        let sequence = match self.sequence {
            Some(sequence) => Some(sequence),
            None => streams::find_task(jetstream, address).await?,
        };
        match sequence {
            Some(sequence) => streams::delete_message(jetstream, TASKS, sequence).await,
            None => Ok(()),
        }
    }
}
