//! The parent's side: one connection for all tasks of a queue, and for each task an agent to which its driver speaks ACP.

mod code;
mod machine;
mod new_task;
mod queued;
mod records;
mod resumption;
mod task;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crow_acp::{LineTransport, ParentRelay, channel_transport};
use crow_core::{FarmAddress, NatsServer};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::code::CodeUploads;
pub use self::code::{CodeRequest, FetchedCode, SentCode};
#[cfg(test)]
pub(crate) use self::machine::{FarmAction, FarmEvent, FarmMachine};
pub use self::new_task::FarmTask;
pub use self::queued::QueuedFarmTask;
use self::records::FarmConnection;
use self::resumption::PendingResumption;
use self::task::FarmTaskDriver;
use crate::place::{FarmPlace, PlaceKeeper};
use crate::subject::{TaskAddress, random_name};
use crate::ticket::TaskTicket;

/// Lines between the driver and a task; enough to take what arrives at once.
const QUEUED_LINES_MAX: usize = 64;

/// Pause between two attempts to reach a server that is away.
const CONNECT_PAUSE: Duration = Duration::from_secs(5);

/// Time for the last words to the server: what it does not hear is removed later, by a worker or by age.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reports why a server cannot be reached.
pub type UnreachableReport = Box<dyn FnOnce(&str) + Send>;

/// A task that an earlier process gave, to be taken up again.
pub struct ResumedFarmTask {
    pub place: FarmPlace,
    /// The server, with the credentials of now.
    pub server: NatsServer,
    /// The version of this program.
    pub version: &'static str,
    pub keeper: Arc<dyn PlaceKeeper>,
    /// The code that it works on.
    pub code: Option<SentCode>,
    /// Called with the reason if the server cannot be reached; it is tried again until the task is cancelled.
    pub on_unreachable: UnreachableReport,
}

/// A connection with its address.
type KnownConnection = (FarmAddress, Arc<FarmConnection>);

/// The connections of one session to its farms. Each is made when its first task begins.
#[derive(Debug, Default, Clone)]
pub struct FarmConnections {
    connections: Arc<tokio::sync::Mutex<Vec<KnownConnection>>>,
    tasks: TaskTracker,
    code: Arc<CodeUploads>,
}

impl FarmConnections {
    /// Opens a task and returns the connection to its agent. The error is the reason why the farm cannot be reached.
    pub async fn open_task(&self, address: &FarmAddress, task: FarmTask) -> Result<LineTransport, String> {
        let connection = self.connection(address).await?;
        let name = random_name()?;
        let (to_task, from_client) = mpsc::channel(QUEUED_LINES_MAX);
        let (to_client, from_task) = mpsc::channel(QUEUED_LINES_MAX);
        let records = connection.receive_records(&name);
        let address =
            TaskAddress { queue: address.queue.clone(), parent: address.parent_name.clone(), task: name };
        let ticket = TaskTicket::generate()?;
        let driver = FarmTaskDriver::new(connection, address, ticket, task);
        self.tasks.spawn(driver.run(from_client, to_client, records));
        Ok(channel_transport(from_task, to_task))
    }

    /// Takes up a task again and returns the connection to its agent, whose session has the name of the place.
    pub fn resume_task(&self, task: ResumedFarmTask) -> LineTransport {
        let (to_task, from_client) = mpsc::channel(QUEUED_LINES_MAX);
        let (to_client, from_task) = mpsc::channel(QUEUED_LINES_MAX);
        let ResumedFarmTask { place, server, version, keeper, code, on_unreachable } = task;
        // The task is where it was given, whatever the configuration says now.
        let TaskAddress { queue, parent: parent_name, .. } = place.address();
        let address = FarmAddress { server, queue, parent_name };
        let farms = self.clone();
        let reaching = async move { farms.reach_server(&address, on_unreachable).await };
        let relay = ParentRelay::resume(place.session(), version);
        let resumption = PendingResumption::new(place, relay).keep_in(keeper);
        let resumption = resumption.return_code_to(code.map(|code| code.returned));
        self.tasks.spawn(resumption.run(reaching, from_client, to_client));
        channel_transport(from_task, to_task)
    }

    /// Sends the commit that a directory is at, unless the server has it from an earlier task; the error is the reason why
    /// that is not possible.
    pub async fn send_code(
        &self,
        address: &FarmAddress,
        request: CodeRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<SentCode, String> {
        let sending = async {
            let connection = self.connection(address).await?;
            self.code.send_head(connection, address, request, cancel).await
        };
        cancel.run_until_cancelled(Box::pin(sending)).await.ok_or("it was cancelled")?
    }

    /// Fetches the code after the end of its task; `None` if nothing was changed. The error is the reason why the work is
    /// not there.
    pub async fn fetch_code(&self, code: &SentCode) -> Result<Option<FetchedCode>, String> {
        match code.take_bundle()? {
            Some(announced) => {
                let connection = self.connection(&code.address).await?;
                code.fetch(announced, connection).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Waits a moment until ended tasks have told the server so, and their code is deleted there. Returns how many of both it
    /// has not confirmed.
    pub async fn close(&self) -> usize {
        for deletion in self.code.take_deletions() {
            self.tasks.spawn(deletion);
        }
        self.tasks.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::debug!("the server did not confirm the end of a task in time");
        }
        let connections = self.connections.lock().await;
        let unconfirmed = connections.iter().map(|(_, connection)| &connection.n_unconfirmed);
        self.tasks.len() + unconfirmed.map(|count| count.load(Ordering::Relaxed)).sum::<usize>()
    }

    /// Connects to a server that may be away.
    async fn reach_server(&self, address: &FarmAddress, report: UnreachableReport) -> Arc<FarmConnection> {
        let mut report = Some(report);
        loop {
            match self.connection(address).await {
                Ok(connection) => return connection,
                Err(reason) => match report.take() {
                    Some(report) => report(&reason),
                    None => tracing::debug!(%reason, "the server of a task is still unreachable"),
                },
            }
            sleep(CONNECT_PAUSE).await;
        }
    }

    async fn connection(&self, address: &FarmAddress) -> Result<Arc<FarmConnection>, String> {
        let mut connections = self.connections.lock().await;
        if let Some((_, connection)) = connections.iter().find(|(known, _)| known == address) {
            return Ok(connection.clone());
        }
        // Thousands may wait for this one.
        let connection = Box::pin(FarmConnection::open(address)).await?;
        connections.push((address.clone(), connection.clone()));
        Ok(connection)
    }
}
