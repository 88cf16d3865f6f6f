//! The streams of the queues and what is asked of them. They are made by the first worker whose user may do that.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{
    Config, ConsumerError, ConsumerErrorKind, DirectGetError, DirectGetErrorKind, DiscardPolicy,
    RetentionPolicy, StorageType, Stream,
};
use async_nats::jetstream::{self, Context};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use crate::code::CHUNK_BYTES;
use crate::record::TASK_BYTES_MAX;
use crate::subject::{LANE, RecordSubject, TaskAddress, lane_filter};

/// The stream of tasks.
pub(crate) const TASKS: &str = "CROW_TASKS";

/// The stream of records.
pub(crate) const RECORDS: &str = "CROW_RECORDS";

/// The stream of the chunks of bundles.
pub(crate) const CODE: &str = "CROW_CODE";

/// Time after which a server gives a task to another worker: longer than two elections, which take up to nine seconds.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// Deliveries of one task are not limited by the server, which counts those that were given back: a worker ends it.
const DELIVERIES_MAX: i64 = -1;

/// Tasks of a queue that run at once; the server's default is 1,000.
const RUNNING_MAX: i64 = 20_000;

/// Workers of a queue that wait at once; the server's default is 512.
const WAITING_MAX: i64 = 4_096;

/// Time for which an end waits for its parent.
pub(crate) const RECORD_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Time for which code is kept that is not deleted: a task waits and runs for less.
pub(crate) const CODE_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Bytes of all code at the server, which reserves them: that of dozens of large repositories.
const CODE_BYTES_MAX: i64 = 2 * 1024 * 1024 * 1024;

/// Bytes of a message with a chunk and its header.
const CODE_MESSAGE_BYTES_MAX: usize = CHUNK_BYTES + 4 * 1024;

/// Time within which a repeated message is recognised.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// The records of one task that are read: of each delivery two, and an end.
const RECORDS_READ_MAX: usize = 256;

/// Time for a replica to answer, which takes milliseconds. Old servers do not answer for a stream that does not exist, and
/// sometimes not for one that does.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// Questions to a replica until it counts as silent.
const LOOKS_MAX: usize = 2;

/// Pause before a replica is asked again for a message that it does not have.
const MISS_PAUSE: Duration = Duration::from_secs(1);

/// Looks for the streams until they count as missing: when their leader is lost, the other replicas are silent for a moment.
const STREAM_LOOKS_MAX: usize = 4;

/// Pause between two of these looks.
const STREAM_LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A subject of the records that has none.
const NO_RECORD: &str = "crow.record.none";

/// The server's code for a message whose subject has one already.
const SUBJECT_IS_TAKEN: u64 = 10_077;

/// The server's codes for a message that does not exist: without and with other replicas.
const NO_MESSAGE: [u64; 2] = [10_057, 10_043];

/// The properties of a queue that is made because it does not exist.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    pub name: String,
    /// Servers that store each message: 1, 3 or 5.
    pub replicas: usize,
    /// Time after which a task whose worker says nothing is given to another one.
    pub ack_wait: Duration,
}

impl QueueOptions {
    /// Creates options with the usual time until a task of a lost worker is given to another one.
    pub fn new(name: String, replicas: usize) -> Self {
        Self { name, replicas, ack_wait: ACK_WAIT }
    }
}

/// A reason why a queue could not be opened.
#[derive(Debug)]
pub(crate) struct QueueFailure {
    pub(crate) reason: String,
    /// Whether it passes by itself, as an election does.
    pub(crate) is_passing: bool,
}

impl QueueFailure {
    fn new(queue: &QueueOptions, what: &str, error: &dyn std::fmt::Display, is_passing: bool) -> Self {
        let name = &queue.name;
        let reason = format!("the queue {name} does not exist, and its {what} could not be made: {error}");
        Self { reason, is_passing }
    }

    fn of_stream(queue: &QueueOptions, error: &CreateStreamError) -> Self {
        let is_passing = match error.kind() {
            CreateStreamErrorKind::TimedOut => true,
            CreateStreamErrorKind::JetStream(cause) => is_passing(&cause),
            CreateStreamErrorKind::EmptyStreamName
            | CreateStreamErrorKind::InvalidStreamName
            | CreateStreamErrorKind::DomainAndExternalSet
            | CreateStreamErrorKind::JetStreamUnavailable
            | CreateStreamErrorKind::Response
            | CreateStreamErrorKind::NotFound
            | CreateStreamErrorKind::ResponseParse => false,
        };
        Self::new(queue, "stream", error, is_passing)
    }

    fn of_consumer(queue: &QueueOptions, error: &ConsumerError) -> Self {
        let is_passing = match error.kind() {
            ConsumerErrorKind::TimedOut => true,
            ConsumerErrorKind::JetStream(cause) => is_passing(&cause),
            ConsumerErrorKind::Request
            | ConsumerErrorKind::InvalidConsumerType
            | ConsumerErrorKind::InvalidName
            | ConsumerErrorKind::Other => false,
        };
        Self::new(queue, "consumer", error, is_passing)
    }
}

/// Returns the consumer of a queue, which is made with its streams if it does not exist.
pub(crate) async fn open_queue(
    jetstream: &Context,
    queue: &QueueOptions,
) -> Result<PullConsumer, QueueFailure> {
    let name = format!("{}-{LANE}", queue.name);
    if let Ok(consumer) = jetstream.get_consumer_from_stream(&name, TASKS).await {
        // Older workers did not make it, and most may not.
        if !has_code_stream(jetstream, &format!("crow.code.{}.none", queue.name)).await {
            make_code_stream(jetstream, queue).await;
        }
        return Ok(consumer);
    }
    let tasks = Config {
        name: TASKS.to_owned(),
        subjects: vec!["crow.task.>".to_owned()],
        retention: RetentionPolicy::WorkQueue,
        discard: DiscardPolicy::New,
        discard_new_per_subject: true,
        max_messages_per_subject: 1,
        max_message_size: i32::try_from(TASK_BYTES_MAX).unwrap_or(i32::MAX),
        ..stream_config(queue)
    };
    let tasks = jetstream
        .get_or_create_stream(tasks)
        .await
        .map_err(|error| QueueFailure::of_stream(queue, &error))?;
    let records = Config {
        name: RECORDS.to_owned(),
        subjects: vec!["crow.record.>".to_owned()],
        max_age: RECORD_AGE_MAX,
        ..stream_config(queue)
    };
    jetstream.get_or_create_stream(records).await.map_err(|error| QueueFailure::of_stream(queue, &error))?;
    let config = pull::Config {
        durable_name: Some(name.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: queue.ack_wait,
        max_deliver: DELIVERIES_MAX,
        max_ack_pending: RUNNING_MAX,
        max_waiting: WAITING_MAX,
        filter_subject: lane_filter(&queue.name),
        ..pull::Config::default()
    };
    let consumer = tasks.get_or_create_consumer(&name, config).await;
    let consumer = consumer.map_err(|error| QueueFailure::of_consumer(queue, &error))?;
    make_code_stream(jetstream, queue).await;
    Ok(consumer)
}

/// Whether a cluster says that it has no leader, or too few servers, as while it starts.
pub(crate) fn is_passing(cause: &jetstream::Error) -> bool {
    [ErrorCode::CLUSTER_NOT_AVAILABLE, ErrorCode::CLUSTER_NO_PEERS].contains(&cause.error_code())
}

/// Makes the stream of code if it does not exist. Without it tasks have no worktrees, and the rest works.
async fn make_code_stream(jetstream: &Context, queue: &QueueOptions) {
    let config = Config {
        name: CODE.to_owned(),
        subjects: vec!["crow.code.>".to_owned(), "crow.result.>".to_owned()],
        discard: DiscardPolicy::New,
        max_age: CODE_AGE_MAX,
        max_bytes: CODE_BYTES_MAX,
        max_messages_per_subject: 1,
        max_message_size: i32::try_from(CODE_MESSAGE_BYTES_MAX).unwrap_or(i32::MAX),
        ..stream_config(queue)
    };
    if let Err(error) = jetstream.get_or_create_stream(config).await {
        tracing::warn!(%error, "the stream of code could not be made; tasks with worktrees will fail");
    }
}

/// Whether the server has a stream of code. A subject of it must be one that the user may ask for.
pub(crate) async fn has_code_stream(jetstream: &Context, subject: &str) -> bool {
    let look = async {
        let stream = bare_stream(jetstream, CODE).await.ok()?;
        match stream.direct_get_last_for_subject(subject).await {
            Ok(_) => Some(()),
            Err(error) => (error.kind() == DirectGetErrorKind::NotFound).then_some(()),
        }
    };
    matches!(tokio::time::timeout(LOOK_TIMEOUT, look).await, Ok(Some(())))
}

fn stream_config(queue: &QueueOptions) -> Config {
    Config {
        storage: StorageType::File,
        num_replicas: queue.replicas,
        allow_direct: true,
        duplicate_window: DUPLICATE_WINDOW,
        ..Config::default()
    }
}

/// The outcome of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PublishOutcome {
    Stored {
        sequence: u64,
    },
    /// The subject has a message already.
    AlreadyStored,
    /// The server has no queues.
    NoStream,
    /// The server has not confirmed it; it may be stored.
    Unknown(String),
}

/// Publishes a message, of which the server stores one with this ID.
pub(crate) async fn publish(
    jetstream: &Context,
    subject: String,
    payload: Vec<u8>,
    message_id: &str,
) -> PublishOutcome {
    let message = PublishMessage::build().payload(payload.into()).message_id(message_id);
    let confirmed = async {
        let confirmation = jetstream.send_publish(subject, message).await?;
        confirmation.await
    };
    match confirmed.await {
        Ok(confirmation) => PublishOutcome::Stored { sequence: confirmation.sequence },
        Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
            match has_streams(jetstream).await {
                true => PublishOutcome::Unknown("the stream has no leader".to_owned()),
                false => PublishOutcome::NoStream,
            }
        }
        Err(error) => {
            let source = std::error::Error::source(&error);
            let cause = source.and_then(|source| source.downcast_ref::<jetstream::Error>());
            match cause.is_some_and(|cause| cause.error_code().0 == SUBJECT_IS_TAKEN) {
                true => PublishOutcome::AlreadyStored,
                false => PublishOutcome::Unknown(error.to_string()),
            }
        }
    }
}

/// Returns why a task cannot be published where no worker ever was.
pub(crate) fn no_queue_reason(queue: &str) -> String {
    format!("the server has no queues yet: start a worker of {queue}, which makes them")
}

/// Whether the server has queues. A stream that elects its leader does not take messages, as if there were none, and its
/// other replicas answer nevertheless.
async fn has_streams(jetstream: &Context) -> bool {
    for n_looks in 0..STREAM_LOOKS_MAX {
        if n_looks > 0 {
            sleep(STREAM_LOOK_PAUSE).await;
        }
        if next_record(jetstream, NO_RECORD, 0).await.is_ok() {
            return true;
        }
    }
    false
}

/// Whether a replica has the message of a task; the error is the reason why that is unknown.
pub(crate) async fn has_task(jetstream: &Context, address: &TaskAddress) -> Result<bool, String> {
    look_for_task(jetstream, address).await.map(|sequence| sequence.is_some())
}

/// Returns the sequence of the message of a task, if it is in its queue; the error is the reason why that is unknown. Any
/// replica may answer, so only a second miss counts.
pub(crate) async fn find_task(jetstream: &Context, address: &TaskAddress) -> Result<Option<u64>, String> {
    if let Some(sequence) = look_for_task(jetstream, address).await? {
        return Ok(Some(sequence));
    }
    sleep(MISS_PAUSE).await;
    look_for_task(jetstream, address).await
}

async fn look_for_task(jetstream: &Context, address: &TaskAddress) -> Result<Option<u64>, String> {
    let stream = bare_stream(jetstream, TASKS).await?;
    let found = find_message(|| stream.direct_get_last_for_subject(address.task_subject())).await?;
    Ok(found.map(|message| message.sequence))
}

/// Asks a replica for a message, and again if it does not answer.
async fn find_message<F>(look: impl Fn() -> F) -> Result<Option<StreamMessage>, String>
where
    F: Future<Output = Result<StreamMessage, DirectGetError>>,
{
    for _ in 0..LOOKS_MAX {
        match tokio::time::timeout(LOOK_TIMEOUT, look()).await {
            Ok(Ok(message)) => return Ok(Some(message)),
            Ok(Err(error)) if error.kind() == DirectGetErrorKind::NotFound => return Ok(None),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => {}
        }
    }
    Err("the server does not answer".to_owned())
}

/// Returns the last message of a subject of the code stream; the error is the reason why that is unknown.
pub(crate) async fn find_result(jetstream: &Context, subject: String) -> Result<Option<Vec<u8>>, String> {
    let stream = bare_stream(jetstream, CODE).await?;
    let found = find_message(|| stream.direct_get_last_for_subject(subject.as_str())).await?;
    Ok(found.map(|message| message.payload.to_vec()))
}

/// A record as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredRecord {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    pub(crate) is_end: bool,
    pub(crate) payload: Vec<u8>,
}

/// Returns the records of a task.
pub(crate) async fn read_records(
    jetstream: &Context,
    address: &TaskAddress,
) -> Result<Vec<StoredRecord>, String> {
    let mut records = Vec::new();
    for subject in [address.end_subject("*"), address.taken_subject("*")] {
        let mut last_sequence = 0;
        while records.len() < RECORDS_READ_MAX
            && let Some(record) = next_record(jetstream, &subject, last_sequence).await?
        {
            last_sequence = record.sequence;
            records.push(record);
        }
    }
    Ok(records)
}

/// Returns the next record of these subjects after a sequence. Any replica answers, also while there is no leader.
pub(crate) async fn next_record(
    jetstream: &Context,
    subjects: &str,
    last_sequence: u64,
) -> Result<Option<StoredRecord>, String> {
    let stream = bare_stream(jetstream, RECORDS).await?;
    let next = || stream.direct_get_next_for_subject(subjects, Some(last_sequence + 1));
    let found = find_message(next).await?;
    Ok(found.map(|message| StoredRecord {
        sequence: message.sequence,
        is_end: RecordSubject::parse(&message.subject).is_some_and(|subject| subject.is_end),
        subject: message.subject.into_string(),
        payload: message.payload.to_vec(),
    }))
}

/// Deletes a message; one that is gone already is no error. Its bytes are not overwritten, as those of acknowledged ones are not:
/// that takes a server milliseconds for each.
pub(crate) async fn delete_message(jetstream: &Context, stream: &str, sequence: u64) -> Result<(), String> {
    let request = json!({ "seq": sequence, "no_erase": true });
    let answer = jetstream.request(format!("STREAM.MSG.DELETE.{stream}"), &request).await;
    match answer.map_err(|error| error.to_string())? {
        Response::Ok(DeletionAnswer { success: true }) => Ok(()),
        Response::Ok(DeletionAnswer { success: false }) => {
            Err("the server refused without a reason".to_owned())
        }
        Response::Err { error } if NO_MESSAGE.contains(&error.error_code().0) => Ok(()),
        Response::Err { error } => Err(error.to_string()),
    }
}

/// The server's answer to a deletion.
#[derive(Debug, Deserialize)]
struct DeletionAnswer {
    success: bool,
}

pub(crate) async fn bare_stream(jetstream: &Context, name: &str) -> Result<Stream<()>, String> {
    jetstream.get_stream_no_info(name).await.map_err(|error| error.to_string())
}

/// Returns the policy that begins behind this message.
pub(crate) fn deliver_after(sequence: u64) -> DeliverPolicy {
    match sequence {
        0 => DeliverPolicy::All,
        _ => DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
    }
}
