//! The worker's side: takes as many tasks from its queues as it has slots, and runs each with an agent of its own.

mod base_repositories;
mod context;
mod kept_tasks;
mod status;
mod task;
mod task_requests;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{self, Context};
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub(crate) use self::context::WorkerContext;
pub use self::context::{TaskBeginning, WorkerEvent, WorkerOptions};
use self::kept_tasks::KeptTasks;
use self::status::WorkerCounts;
pub use self::status::WorkerStatus;
use self::task::TaskRun;
use self::task_requests::TaskRequests;
use self::watchdog::{RunningWatchdog, WatchdogInput};
use crate::connection::connect;
use crate::streams::{QueueFailure, QueueOptions, RECORD_AGE_MAX, open_queue};
use crate::watchdog::WatchdogOrder;

/// Pause after a failed attempt to open a queue.
const QUEUE_PAUSE: Duration = Duration::from_secs(1);

/// Time for the last messages to reach the server.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// Time for a cluster to have its leaders: longer than two elections, which take up to nine seconds.
const ELECTIONS_TIME_MAX: Duration = Duration::from_secs(20);

/// A worker that is connected to its queues.
pub struct FleetWorker {
    context: Arc<WorkerContext>,
    consumers: Vec<PullConsumer>,
    watchdog: Option<RunningWatchdog>,
}

impl FleetWorker {
    /// Connects to the queues, which are made if they do not exist; the error is the reason why that failed.
    pub async fn connect(
        options: WorkerOptions,
        report: impl Fn(WorkerEvent) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let client = connect(&options.server, "worker", &options.name).await?;
        let jetstream = jetstream::new(client.clone());
        let mut consumers = Vec::new();
        for queue in &options.queues {
            consumers.push(wait_for_queue(&jetstream, queue, &report).await?);
        }
        // The shortest one is kept for all tasks.
        let ack_wait = consumers.iter().map(|consumer| consumer.cached_info().config.ack_wait).min();
        let ack_wait = ack_wait.ok_or("a worker needs a queue")?;
        let order = WatchdogOrder::new(&options.server, &options.name, ack_wait);
        let (running, watchdog) = match options.watchdog.clone() {
            Some(command) => RunningWatchdog::start(command, &order).await,
            None => (None, WatchdogInput::default()),
        };
        let (report, kill) = (Box::new(report), CancellationToken::new());
        let WorkerOptions { name, n_slots, version, .. } = &options;
        let counts = WorkerCounts::new(name.clone(), *n_slots, version);
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
        Ok(Self { context, consumers, watchdog: running })
    }

    /// Runs tasks until `stop` is cancelled; then running tasks have some time to end, and the rest is given back.
    pub async fn run(self, stop: CancellationToken) {
        let Self { context, consumers, watchdog } = self;
        let mut requests = TaskRequests::new(consumers);
        let slots = Arc::new(Semaphore::new(context.options.n_slots));
        let tasks = TaskTracker::new();
        let taking = async {
            loop {
                let slot = tokio::select! {
                    biased;
                    slot = slots.clone().acquire_owned() => slot,
                    never = requests.refuse_messages(&context) => match never {},
                };
                // It is never closed.
                let Ok(slot) = slot else { return };
                let message = requests.next_message(&context).await;
                let run = TaskRun::new(context.clone(), message);
                tasks.spawn(async move {
                    let _slot = slot;
                    run.run().await;
                });
            }
        };
        let answered = context.clone();
        let answering = AbortOnDropHandle::new(tokio::spawn(async move {
            let queues = answered.options.queues.iter().map(|queue| queue.name.as_str());
            join_all(queues.map(|queue| answered.counts.answer_operators(&answered.client, queue))).await
        }));
        let (kept_tasks, age_max) =
            (context.kept_tasks.clone(), RECORD_AGE_MAX + context.options.task_time_max);
        let removing =
            AbortOnDropHandle::new(tokio::spawn(async move { kept_tasks.remove_abandoned(age_max).await }));
        stop.run_until_cancelled(taking).await;
        drop(removing);
        tasks.close();
        let drained = timeout(context.options.drain_time_max, tasks.wait());
        let drained = tokio::select! {
            biased;
            drained = drained => drained,
            never = requests.refuse_messages(&context) => match never {},
        };
        if drained.is_err() {
            context.kill.cancel();
            tasks.wait().await;
        }
        drop(answering);
        // Without a server it would wait for ever.
        match timeout(FLUSH_TIME_MAX, context.client.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the last messages were not sent"),
            Err(elapsed) => tracing::debug!(%elapsed, "the last messages were not sent"),
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
                tokio::time::sleep(QUEUE_PAUSE).await;
            }
            Err(QueueFailure { reason, .. }) => return Err(reason),
        }
    }
}
