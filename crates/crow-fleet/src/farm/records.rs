//! A connection of a parent, with the reader of what workers record about its tasks.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{self, Context};
use crow_core::FarmAddress;
use futures_util::StreamExt;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::connection::connect;
use crate::place::server_names;
use crate::streams::{RECORDS, StoredRecord, deliver_after, next_record};
use crate::subject::{RecordSubject, random_name, records_filter};

/// Records of one task that wait: of each delivery one, and an end.
const QUEUED_RECORDS_MAX: usize = 16;

/// Requests at once about tasks without a driver, of which there may be thousands: the server is not faster with more.
const REQUESTS_MAX: usize = 256;

/// Time before records are read again after an error.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Time to begin to follow records. A cluster may choose a server for that which it does not know to be gone.
const CONSUMER_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for which one request for records waits.
const RECORDS_EXPIRY: Duration = Duration::from_secs(30);

/// Time within which a server shows that it still has the request. After twice that it has none, and is perhaps gone.
const RECORDS_HEARTBEAT: Duration = Duration::from_secs(2);

/// Time after which a server removes what a parent that is gone read its records with.
const RECORDS_IDLE_MAX: Duration = Duration::from_secs(30);

/// A connection with the tasks that wait for records.
#[derive(Debug)]
pub(super) struct FarmConnection {
    pub(super) client: Client,
    pub(super) jetstream: Context,
    /// Its addresses, without credentials.
    pub(super) servers: Vec<String>,
    /// Permits for requests about tasks that have no driver.
    pub(super) requests: Semaphore,
    /// Ends of tasks that the server has not confirmed in time.
    pub(super) n_unconfirmed: AtomicUsize,
    receivers: Mutex<HashMap<String, RecordReceiver>>,
}

/// The part of this program that is told of the records of a task.
#[derive(Debug)]
enum RecordReceiver {
    /// A driver.
    All(mpsc::Sender<StoredRecord>),
    /// A task without a driver, which reads them later.
    First(oneshot::Sender<()>),
}

impl FarmConnection {
    /// Connects to a server and begins to read the records of a parent; the error is the reason.
    pub(super) async fn open(address: &FarmAddress) -> Result<Arc<Self>, String> {
        let client = connect(&address.server, "parent", &address.parent_name).await?;
        let connection = Arc::new(Self {
            jetstream: jetstream::new(client.clone()),
            client,
            servers: server_names(&address.server),
            requests: Semaphore::new(REQUESTS_MAX),
            n_unconfirmed: AtomicUsize::new(0),
            receivers: Mutex::default(),
        });
        let filter = records_filter(&address.queue, &address.parent_name);
        tokio::spawn(read_records(Arc::downgrade(&connection), filter));
        Ok(connection)
    }

    fn lock_receivers(&self) -> MutexGuard<'_, HashMap<String, RecordReceiver>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the reception of records for a task.
    pub(super) fn receive_records(&self, task: &str) -> mpsc::Receiver<StoredRecord> {
        let (sender, records) = mpsc::channel(QUEUED_RECORDS_MAX);
        self.lock_receivers().insert(task.to_owned(), RecordReceiver::All(sender));
        records
    }

    /// Waits for the first record of a task.
    pub(super) fn await_record(&self, task: &str) -> oneshot::Receiver<()> {
        let (sender, begun) = oneshot::channel();
        self.lock_receivers().insert(task.to_owned(), RecordReceiver::First(sender));
        begun
    }

    /// Ends the reception of records for a task.
    pub(super) fn forget_task(&self, task: &str) {
        self.lock_receivers().remove(task);
    }

    fn deliver_record(&self, record: StoredRecord) {
        let Some(parts) = RecordSubject::parse(&record.subject) else { return };
        let task = parts.task.to_owned();
        let mut receivers = self.lock_receivers();
        // Records of other processes of this parent, and of tasks that are over, have no receiver.
        match receivers.remove(&task) {
            None => {}
            // One that is withdrawn does not want to know.
            Some(RecordReceiver::First(begun)) => drop(begun.send(())),
            Some(RecordReceiver::All(receiver)) => {
                if receiver.try_send(record).is_err() {
                    tracing::warn!(task, "a record was dropped; it is looked for later");
                }
                receivers.insert(task, RecordReceiver::All(receiver));
            }
        }
    }
}

/// Reads the records of a parent as long as its connection is used, and begins again after an error.
async fn read_records(connection: Weak<FarmConnection>, filter: String) {
    let mut last_sequence = 0;
    loop {
        let Some(jetstream) = connection.upgrade().map(|connection| connection.jetstream.clone()) else {
            return;
        };
        let caught_up = catch_up(&connection, &jetstream, &filter, &mut last_sequence).await;
        if let Err(error) = caught_up {
            tracing::debug!(%error, "the records of a farm could not be looked for");
        }
        let followed = follow_records(&connection, jetstream, &filter, &mut last_sequence).await;
        if let Err(error) = followed {
            tracing::debug!(%error, "the records of a farm could not be followed");
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// Reads what is there: nothing can be followed while the stream or the cluster elects its leader.
async fn catch_up(
    connection: &Weak<FarmConnection>,
    jetstream: &Context,
    filter: &str,
    last_sequence: &mut u64,
) -> Result<(), String> {
    while let Some(record) = next_record(jetstream, filter, *last_sequence).await? {
        let Some(connection) = connection.upgrade() else { break };
        *last_sequence = record.sequence;
        connection.deliver_record(record);
    }
    Ok(())
}

async fn follow_records(
    connection: &Weak<FarmConnection>,
    jetstream: Context,
    filter: &str,
    last_sequence: &mut u64,
) -> Result<(), async_nats::Error> {
    let config = pull::Config {
        // With a name the filter is in the subject of the request, by which a user can be limited to its own records.
        name: Some(random_name()?),
        filter_subject: filter.to_owned(),
        deliver_policy: deliver_after(*last_sequence),
        ack_policy: AckPolicy::None,
        num_replicas: 1,
        memory_storage: true,
        inactive_threshold: RECORDS_IDLE_MAX,
        ..pull::Config::default()
    };
    let stream = jetstream.get_stream_no_info(RECORDS).await?;
    let consumer = tokio::time::timeout(CONSUMER_TIMEOUT, stream.create_consumer(config)).await??;
    let messages = consumer.stream().expires(RECORDS_EXPIRY).heartbeat(RECORDS_HEARTBEAT).messages();
    let mut messages = messages.await?;
    let mut n_messages = 0;
    while let Some(message) = messages.next().await {
        let message = message?;
        let Some(connection) = connection.upgrade() else { break };
        let info = message.info()?;
        n_messages += 1;
        if info.consumer_sequence != n_messages {
            return Err("a record did not arrive".into());
        }
        let sequence = info.stream_sequence;
        *last_sequence = sequence;
        connection.deliver_record(StoredRecord {
            sequence,
            is_end: RecordSubject::parse(&message.subject).is_some_and(|subject| subject.is_end),
            subject: message.subject.to_string(),
            payload: message.payload.to_vec(),
        });
    }
    Ok(())
}
