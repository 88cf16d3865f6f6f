//! The worker's side: takes as many tasks from its queue as it has slots, and runs each with an agent of its own.

mod base_repositories;
mod context;
mod kept_tasks;
mod status;
mod task;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use async_nats::StatusCode;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{self, Context, Message};
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub(crate) use self::context::WorkerContext;
pub use self::context::{WorkerEvent, WorkerOptions};
use self::kept_tasks::KeptTasks;
use self::status::WorkerCounts;
pub use self::status::WorkerStatus;
use self::task::TaskRun;
use self::watchdog::{RunningWatchdog, WatchdogInput};
use crate::connection::connect;
use crate::streams::{QueueFailure, QueueOptions, RECORD_AGE_MAX, open_queue};
use crate::watchdog::WatchdogOrder;

/// Time for which one request for a task waits.
const FETCH_EXPIRY: Duration = Duration::from_secs(30);

/// Time within which a server shows that it still has the request. After twice that it has none, and is perhaps gone.
const FETCH_HEARTBEAT: Duration = Duration::from_secs(2);

/// Pause after a failed request for a task, or for its queue.
const FETCH_PAUSE: Duration = Duration::from_secs(1);

/// Time for a cluster to have its leaders: longer than two elections, which take up to nine seconds.
const ELECTIONS_TIME_MAX: Duration = Duration::from_secs(20);

/// A worker that is connected to its queue.
pub struct FleetWorker {
    context: Arc<WorkerContext>,
    consumer: PullConsumer,
    watchdog: Option<RunningWatchdog>,
}

impl FleetWorker {
    /// Connects to the queue, which is made if it does not exist; the error is the reason why that failed.
    pub async fn connect(
        options: WorkerOptions,
        report: impl Fn(WorkerEvent) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let client = connect(&options.server, "worker", &options.name).await?;
        let jetstream = jetstream::new(client.clone());
        let consumer = wait_for_queue(&jetstream, &options.queue, &report).await?;
        let ack_wait = consumer.cached_info().config.ack_wait;
        let order = WatchdogOrder::new(&options.server, &options.name, ack_wait);
        let (running, watchdog) = match options.watchdog.clone() {
            Some(command) => RunningWatchdog::start(command, &order).await,
            None => (None, WatchdogInput::default()),
        };
        let (report, kill) = (Box::new(report), CancellationToken::new());
        let WorkerOptions { name, queue, n_slots, version, .. } = &options;
        let counts = WorkerCounts::new(name.clone(), queue.name.clone(), *n_slots, version);
        let kept_tasks = KeptTasks::new(&options.workspaces_dir);
        let context = Arc::new(WorkerContext {
            options,
            client,
            jetstream,
            ack_wait,
            report,
            watchdog,
            counts,
            kept_tasks,
            kill,
        });
        Ok(Self { context, consumer, watchdog: running })
    }

    /// Runs tasks until `stop` is cancelled; then running tasks have some time to end, and the rest is given back.
    pub async fn run(self, stop: CancellationToken) {
        let Self { context, consumer, watchdog } = self;
        let slots = Arc::new(Semaphore::new(context.options.n_slots));
        let tasks = TaskTracker::new();
        let taking = async {
            // The semaphore is never closed.
            while let Ok(slot) = slots.clone().acquire_owned().await {
                let message = next_message(&context, &consumer).await;
                let run = TaskRun::new(context.clone(), message);
                tasks.spawn(async move {
                    let _slot = slot;
                    run.run().await;
                });
            }
        };
        let answered = context.clone();
        let answering = tokio::spawn(async move { answered.counts.answer_operators(&answered.client).await });
        let (kept_tasks, age_max) =
            (context.kept_tasks.clone(), RECORD_AGE_MAX + context.options.task_time_max);
        let removing =
            AbortOnDropHandle::new(tokio::spawn(async move { kept_tasks.remove_abandoned(age_max).await }));
        stop.run_until_cancelled(taking).await;
        drop(removing);
        tasks.close();
        if tokio::time::timeout(context.options.drain_time_max, tasks.wait()).await.is_err() {
            context.kill.cancel();
            tasks.wait().await;
        }
        answering.abort();
        if let Err(error) = context.client.flush().await {
            tracing::debug!(%error, "the last messages were not sent");
        }
        drop(context);
        if let Some(watchdog) = watchdog {
            watchdog.finish().await;
        }
    }
}

/// Opens the queue, if necessary after an election.
async fn wait_for_queue(
    jetstream: &Context,
    queue: &QueueOptions,
    report: impl Fn(WorkerEvent),
) -> Result<PullConsumer, String> {
    let deadline = Instant::now() + ELECTIONS_TIME_MAX;
    loop {
        match open_queue(jetstream, queue).await {
            Ok(consumer) => return Ok(consumer),
            Err(QueueFailure { reason, is_passing: true }) if Instant::now() < deadline => {
                report(WorkerEvent::QueueUnavailable { reason });
                tokio::time::sleep(FETCH_PAUSE).await;
            }
            Err(QueueFailure { reason, .. }) => return Err(reason),
        }
    }
}

/// Waits for the next task. A request asks for one: what a worker holds without running it is lost time.
async fn next_message(context: &WorkerContext, consumer: &PullConsumer) -> Message {
    loop {
        match request_task(context, consumer).await {
            Ok(Some(message)) => return message,
            // The request has expired.
            Ok(None) => {}
            Err(reason) => {
                tracing::debug!(%reason, "no task was received");
                tokio::time::sleep(FETCH_PAUSE).await;
            }
        }
    }
}

/// Asks the server for a task and waits until the request expires. The batches of the client are not used: one that has
/// received a heartbeat is not woken by the message that follows.
async fn request_task(context: &WorkerContext, consumer: &PullConsumer) -> Result<Option<Message>, String> {
    let WorkerContext { client, jetstream, .. } = context;
    let info = consumer.cached_info();
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", info.stream_name, info.name);
    let request = serde_json::json!({
        "batch": 1,
        "expires": FETCH_EXPIRY.as_nanos(),
        "idle_heartbeat": FETCH_HEARTBEAT.as_nanos(),
    });
    let inbox = client.new_inbox();
    let mut replies = client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
    let sent = client.publish_with_reply(subject, inbox, request.to_string().into()).await;
    sent.map_err(|error| error.to_string())?;
    loop {
        let reply = tokio::time::timeout(FETCH_HEARTBEAT * 2, replies.next()).await;
        let reply = reply.map_err(|_| "the server no longer has the request")?;
        let message = reply.ok_or("the connection is closed")?;
        match message.status {
            None | Some(StatusCode::OK) => {
                return Ok(Some(Message { message, context: jetstream.clone() }));
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(StatusCode::TIMEOUT) => return Ok(None),
            Some(status) => return Err(format!("{status} {}", message.description.unwrap_or_default())),
        }
    }
}
