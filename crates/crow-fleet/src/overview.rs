//! The content of a server's queues, for an operator. Only reads.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use async_nats::jetstream::{self, Context};
use crow_core::NatsServer;
use futures_util::{StreamExt, TryStreamExt};
use tokio::time::{Instant, timeout_at};

use crate::connection::connect;
use crate::record::{TakenRecord, TaskMessage};
use crate::streams::{TASKS, read_records};
use crate::subject::{LANE, TaskAddress, status_subject};
use crate::worker::WorkerStatus;

/// Tasks that are listed: each costs a few requests, and a screen has no more rows.
const TASKS_LISTED_MAX: usize = 50;

/// Workers that are listed.
const WORKERS_MAX: usize = 10_000;

/// Time for the next answer of a worker, which takes milliseconds.
const ANSWER_TIME: Duration = Duration::from_millis(300);

/// Time for all answers.
const ANSWERS_TIME_MAX: Duration = Duration::from_secs(2);

/// Letters of a prompt.
const PROMPT_LETTERS_MAX: usize = 200;

/// The queues, by name, and the oldest tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetOverview {
    pub queues: Vec<QueueOverview>,
    /// The workers that answered, by queue and name.
    pub workers: Vec<WorkerStatus>,
    pub tasks: Vec<TaskOverview>,
    /// Further tasks, which are newer.
    pub n_more_tasks: u64,
}

/// The counts of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueOverview {
    pub name: String,
    /// Tasks that no worker has.
    pub n_waiting: u64,
    /// Tasks that a worker has, also one that is lost until the server notices.
    pub n_running: u64,
    /// Workers with a free slot: each asks for one task.
    pub n_free_workers: u64,
}

/// A task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOverview {
    pub task: String,
    pub queue: String,
    /// The name of its parent.
    pub parent: String,
    /// The beginning of its prompt.
    pub prompt: String,
    pub queued_at: jiff::Timestamp,
    /// The worker that took it last; none if it waits.
    pub holder: Option<TaskHolder>,
}

/// The worker that has a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHolder {
    pub worker: String,
    /// The number of times that the task was given to a worker, with this one.
    pub delivery: u32,
}

/// A connection that looks at queues.
#[derive(Debug)]
pub struct FleetObserver {
    client: Client,
    jetstream: Context,
}

impl FleetObserver {
    /// Connects to a server; the error is the reason why that failed.
    pub async fn connect(server: &NatsServer) -> Result<Self, String> {
        let client = connect(server, "observer", "observer").await?;
        Ok(Self { jetstream: jetstream::new(client.clone()), client })
    }

    /// Looks at all queues or one; the error is the reason why they could not be read.
    pub async fn read_overview(&self, queue: Option<&str>) -> Result<FleetOverview, String> {
        let stream = match self.jetstream.get_stream(TASKS).await {
            Ok(stream) => stream,
            Err(error) if is_missing(&error.kind()) => return Err("the server has no queues yet".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let queues = read_queues(&stream, queue).await?;
        let workers = self.ask_workers(&queues).await?;
        let tasks = self.read_tasks(&stream, queue.unwrap_or("*")).await?;
        let n_tasks: u64 = queues.iter().map(|queue| queue.n_waiting + queue.n_running).sum();
        let n_more_tasks = n_tasks.saturating_sub(tasks.len() as u64);
        Ok(FleetOverview { queues, workers, tasks, n_more_tasks })
    }

    /// Asks the workers of these queues what they do, and waits as long as answers come.
    async fn ask_workers(&self, queues: &[QueueOverview]) -> Result<Vec<WorkerStatus>, String> {
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
        for queue in queues {
            let question = status_subject(&queue.name);
            let asked = self.client.publish_with_reply(question, inbox.clone(), "".into()).await;
            asked.map_err(|error| error.to_string())?;
        }
        let mut workers = BTreeMap::new();
        let end = Instant::now() + ANSWERS_TIME_MAX;
        while workers.len() < WORKERS_MAX {
            let silence = end.min(Instant::now() + ANSWER_TIME);
            let Ok(Some(answer)) = timeout_at(silence, answers.next()).await else { break };
            // A queue without workers answers that it has none.
            if let Some(worker) = WorkerStatus::decode(&answer.payload)
                && queues.iter().any(|queue| queue.name == worker.queue)
            {
                workers.insert((worker.queue.clone(), worker.worker.clone()), worker);
            }
        }
        Ok(workers.into_values().collect())
    }

    /// Reads the oldest tasks.
    async fn read_tasks<I>(&self, stream: &Stream<I>, queue: &str) -> Result<Vec<TaskOverview>, String> {
        let (filter, mut next_sequence) = (format!("crow.task.{queue}.>"), 1);
        let mut tasks = Vec::new();
        while tasks.len() < TASKS_LISTED_MAX {
            let message = match stream.direct_get_next_for_subject(filter.clone(), Some(next_sequence)).await
            {
                Ok(message) => message,
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => break,
                Err(error) => return Err(error.to_string()),
            };
            next_sequence = message.sequence + 1;
            let Some(address) = TaskAddress::parse_task_subject(&message.subject) else { continue };
            let Ok(task) = TaskMessage::decode(&message.payload, &address.task) else { continue };
            let queued_at = jiff::Timestamp::from_second(message.time.unix_timestamp());
            tasks.push(TaskOverview {
                holder: self.read_holder(&address, &task).await?,
                task: address.task,
                queue: address.queue,
                parent: address.parent,
                prompt: task.prompt.chars().take(PROMPT_LETTERS_MAX).collect(),
                queued_at: queued_at.map_err(|error| error.to_string())?,
            });
        }
        Ok(tasks)
    }

    async fn read_holder(
        &self,
        address: &TaskAddress,
        task: &TaskMessage,
    ) -> Result<Option<TaskHolder>, String> {
        let records = read_records(&self.jetstream, address).await?;
        let taken = records.iter().rev().filter(|record| !record.is_end);
        let last = taken.filter_map(|record| TakenRecord::decode(&record.payload, &task.ticket)).next();
        Ok(last
            .filter(|record| !record.is_given_back)
            .map(|record| TaskHolder { worker: record.worker, delivery: record.delivery }))
    }
}

async fn read_queues<I>(stream: &Stream<I>, queue: Option<&str>) -> Result<Vec<QueueOverview>, String> {
    let consumers: Vec<_> = stream.consumers().try_collect().await.map_err(|error| error.to_string())?;
    let suffix = format!("-{LANE}");
    let mut queues: Vec<QueueOverview> = consumers
        .into_iter()
        .filter_map(|consumer| {
            let name = consumer.name.strip_suffix(&suffix)?.to_owned();
            Some(QueueOverview {
                name,
                n_waiting: consumer.num_pending,
                n_running: consumer.num_ack_pending as u64,
                n_free_workers: consumer.num_waiting as u64,
            })
        })
        .filter(|overview| queue.is_none_or(|queue| queue == overview.name))
        .collect();
    queues.sort_by(|one, other| one.name.cmp(&other.name));
    match queue {
        Some(queue) if queues.is_empty() => Err(format!("there is no queue {queue}")),
        Some(_) | None => Ok(queues),
    }
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    match kind {
        GetStreamErrorKind::JetStream(error) => error.code() == 404,
        GetStreamErrorKind::EmptyName
        | GetStreamErrorKind::Request
        | GetStreamErrorKind::InvalidStreamName => false,
    }
}
