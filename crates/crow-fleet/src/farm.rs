//! The parent's side: one connection for all tasks of a queue, and for each task an agent to which its driver speaks ACP.

mod machine;
mod task;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::{self, Context};
use crow_acp::{LineTransport, channel_transport};
use crow_core::{FarmAddress, Mode, SessionId};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

#[cfg(test)]
pub(crate) use self::machine::{FarmAction, FarmEvent, FarmMachine};
use self::task::FarmTaskDriver;
use crate::connection::connect;
use crate::streams::{RECORDS, StoredRecord, deliver_after};
use crate::subject::{RecordSubject, TaskAddress, records_filter};
use crate::ticket::TaskTicket;

/// Lines between the driver and a task; enough to take what arrives at once.
const QUEUED_LINES_MAX: usize = 64;

/// Records of one task that wait: of each delivery one, and an end.
const QUEUED_RECORDS_MAX: usize = 16;

/// Time before records are read again after an error.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A task to be opened.
#[derive(Debug, Clone)]
pub struct FarmTask {
    /// The mode of the parent; a worker does not allow more.
    pub mode: Mode,
    /// The depth of the task's agent in its tree.
    pub depth: u32,
    /// The version of this program.
    pub version: &'static str,
}

/// The connections of one session to its farms. Each is made when its first task begins.
#[derive(Debug, Default)]
pub struct FarmConnections {
    connections: tokio::sync::Mutex<Vec<(FarmAddress, Arc<FarmConnection>)>>,
    tasks: TaskTracker,
}

impl FarmConnections {
    /// Opens a task and returns the connection to its agent. The error is the reason why the farm cannot be reached.
    pub async fn open_task(&self, address: &FarmAddress, task: FarmTask) -> Result<LineTransport, String> {
        let connection = self.connection(address).await?;
        let name = random_name()?;
        let (to_task, from_client) = mpsc::channel(QUEUED_LINES_MAX);
        let (to_client, from_task) = mpsc::channel(QUEUED_LINES_MAX);
        let (record_sender, records) = mpsc::channel(QUEUED_RECORDS_MAX);
        connection.lock_receivers().insert(name.clone(), record_sender);
        let address =
            TaskAddress { queue: address.queue.clone(), parent: address.parent_name.clone(), task: name };
        let ticket = TaskTicket::generate()?;
        let driver = FarmTaskDriver::new(connection, address, ticket, task);
        self.tasks.spawn(driver.run(from_client, to_client, records));
        Ok(channel_transport(from_task, to_task))
    }

    /// Waits until ended tasks have told the server so.
    pub async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn connection(&self, address: &FarmAddress) -> Result<Arc<FarmConnection>, String> {
        let mut connections = self.connections.lock().await;
        if let Some((_, connection)) = connections.iter().find(|(known, _)| known == address) {
            return Ok(connection.clone());
        }
        let client = connect(&address.server, "parent", &address.parent_name).await?;
        let connection = Arc::new(FarmConnection {
            jetstream: jetstream::new(client.clone()),
            client,
            receivers: Mutex::default(),
        });
        let filter = records_filter(&address.queue, &address.parent_name);
        tokio::spawn(read_records(Arc::downgrade(&connection), filter));
        connections.push((address.clone(), connection.clone()));
        Ok(connection)
    }
}

/// A connection with the tasks that wait for records.
#[derive(Debug)]
pub(crate) struct FarmConnection {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    receivers: Mutex<HashMap<String, mpsc::Sender<StoredRecord>>>,
}

impl FarmConnection {
    fn lock_receivers(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<StoredRecord>>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the reception of records for a task.
    pub(crate) fn forget_task(&self, task: &str) {
        self.lock_receivers().remove(task);
    }

    fn deliver_record(&self, subject: &str, record: StoredRecord) {
        let Some(parts) = RecordSubject::parse(subject) else { return };
        let receivers = self.lock_receivers();
        // Records of other processes of this parent, and of tasks that are over, have no receiver.
        if let Some(receiver) = receivers.get(parts.task)
            && receiver.try_send(record).is_err()
        {
            tracing::warn!(task = parts.task, "a record was dropped; it is looked for later");
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
        if let Err(error) = follow_records(&connection, jetstream, &filter, &mut last_sequence).await {
            tracing::debug!(%error, "the records of a farm could not be read");
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

async fn follow_records(
    connection: &Weak<FarmConnection>,
    jetstream: Context,
    filter: &str,
    last_sequence: &mut u64,
) -> Result<(), async_nats::Error> {
    let config = OrderedConfig {
        // With a name the filter is in the subject of the request, by which a user can be limited to its own records.
        name: Some(random_name()?),
        filter_subject: filter.to_owned(),
        deliver_policy: deliver_after(*last_sequence),
        ..OrderedConfig::default()
    };
    let stream = jetstream.get_stream_no_info(RECORDS).await?;
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        let Some(connection) = connection.upgrade() else { break };
        let sequence = message.info()?.stream_sequence;
        *last_sequence = sequence;
        let is_end = RecordSubject::parse(&message.subject).is_some_and(|subject| subject.is_end);
        let record = StoredRecord { sequence, is_end, payload: message.payload.to_vec() };
        connection.deliver_record(&message.subject, record);
    }
    Ok(())
}

/// Makes a name that cannot be guessed.
fn random_name() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The session of a task at its farm.
fn session_name(address: &TaskAddress) -> SessionId {
    SessionId::new(address.task.clone())
}
