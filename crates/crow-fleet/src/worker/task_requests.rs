//! Takes tasks from the queues of a worker. A free slot takes one message, from the queue that has one first: what a worker
//! holds without running it is lost time.

use std::convert::Infallible;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use async_nats::{StatusCode, Subscriber};
use futures_util::StreamExt;
use futures_util::future::{FutureExt, join_all, select_all};
use tokio::time::{sleep, timeout};

use super::context::WorkerContext;

/// Time for which one request for a task waits.
const REQUEST_EXPIRY: Duration = Duration::from_secs(30);

/// Time within which a server shows that it still has the request. After twice that it has none, and is perhaps gone.
const REQUEST_HEARTBEAT: Duration = Duration::from_secs(2);

/// Pause after a failed request.
const REQUEST_PAUSE: Duration = Duration::from_secs(1);

/// The requests of a worker for tasks.
pub(super) struct TaskRequests {
    queues: Vec<QueueRequests>,
}

/// The requests to one queue. The batches of the client are not used: one that has received a heartbeat is not woken by the
/// message that follows.
struct QueueRequests {
    consumer: PullConsumer,
    /// The replies to the request that waits.
    replies: Option<Subscriber>,
}

/// A reply to a request.
enum RequestReply {
    Task(Box<Message>),
    /// The request still waits.
    Waiting,
    /// There is no task; the request has expired, or did not wait.
    NoTask,
    Failed(String),
}

impl TaskRequests {
    pub(super) fn new(consumers: Vec<PullConsumer>) -> Self {
        let queues = consumers.into_iter().map(|consumer| QueueRequests { consumer, replies: None });
        Self { queues: queues.collect() }
    }

    /// Waits for the next task. If this is dropped, requests still wait.
    pub(super) async fn next_message(&mut self, context: &WorkerContext) -> Message {
        if self.queues.len() > 1 {
            // Each queue is the first one in turn.
            self.queues.rotate_left(1);
            for queue in &mut self.queues {
                if let Some(message) = queue.take_waiting(context).await {
                    return message;
                }
            }
        }
        let waiting = self.queues.iter_mut().map(|queue| queue.next_message(context).boxed());
        select_all(waiting).await.0
    }

    /// Returns to their queues the tasks that come while no slot is free: a request cannot be withdrawn without the risk that
    /// its task is just on the way, which would be lost until the server gives it away again. Never ends.
    pub(super) async fn refuse_messages(&mut self, context: &WorkerContext) -> Infallible {
        join_all(self.queues.iter_mut().map(|queue| queue.refuse_message(context).boxed())).await;
        std::future::pending().await
    }
}

impl QueueRequests {
    /// Returns the task of the request that waits, if one comes.
    async fn refuse_message(&mut self, context: &WorkerContext) {
        while self.replies.is_some() {
            if let RequestReply::Task(message) = self.request(context, true).await
                && let Err(error) = message.ack_with(AckKind::Nak(None)).await
            {
                tracing::debug!(%error, "a task was not returned; the server does that later");
            }
        }
    }

    /// Takes a task that is in the queue now, unless a request waits for one.
    async fn take_waiting(&mut self, context: &WorkerContext) -> Option<Message> {
        if self.replies.is_some() {
            return None;
        }
        match self.request(context, false).await {
            RequestReply::Task(message) => Some(*message),
            RequestReply::Waiting | RequestReply::NoTask => None,
            RequestReply::Failed(reason) => {
                tracing::debug!(%reason, "a queue did not answer");
                None
            }
        }
    }

    async fn next_message(&mut self, context: &WorkerContext) -> Message {
        loop {
            match self.request(context, true).await {
                RequestReply::Task(message) => return *message,
                RequestReply::Waiting | RequestReply::NoTask => {}
                RequestReply::Failed(reason) => {
                    tracing::debug!(%reason, "no task was received");
                    sleep(REQUEST_PAUSE).await;
                }
            }
        }
    }

    /// Waits for the next reply to the request, which is made if there is none.
    async fn request(&mut self, context: &WorkerContext, waits: bool) -> RequestReply {
        let replies = match &mut self.replies {
            Some(replies) => replies,
            None => match self.open_request(context, waits).await {
                Ok(replies) => self.replies.insert(replies),
                Err(reason) => return RequestReply::Failed(reason),
            },
        };
        let reply = match timeout(REQUEST_HEARTBEAT * 2, replies.next()).await {
            Ok(Some(message)) => RequestReply::classify(message, context),
            Ok(None) => RequestReply::Failed("the connection is closed".to_owned()),
            Err(_) => RequestReply::Failed("the server no longer has the request".to_owned()),
        };
        if !matches!(reply, RequestReply::Waiting) {
            self.replies = None;
        }
        reply
    }

    async fn open_request(&self, context: &WorkerContext, waits: bool) -> Result<Subscriber, String> {
        let info = self.consumer.cached_info();
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", info.stream_name, info.name);
        let request = match waits {
            true => serde_json::json!({
                "batch": 1,
                "expires": REQUEST_EXPIRY.as_nanos(),
                "idle_heartbeat": REQUEST_HEARTBEAT.as_nanos(),
            }),
            false => serde_json::json!({ "batch": 1, "no_wait": true }),
        };
        let inbox = context.client.new_inbox();
        let replies = context.client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
        let sent = context.client.publish_with_reply(subject, inbox, request.to_string().into()).await;
        sent.map(|()| replies).map_err(|error| error.to_string())
    }
}

impl RequestReply {
    fn classify(message: async_nats::Message, context: &WorkerContext) -> Self {
        match message.status {
            None | Some(StatusCode::OK) => {
                Self::Task(Box::new(Message { message, context: context.jetstream.clone() }))
            }
            Some(StatusCode::IDLE_HEARTBEAT) => Self::Waiting,
            Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => Self::NoTask,
            Some(status) => Self::Failed(format!("{status} {}", message.description.unwrap_or_default())),
        }
    }
}
