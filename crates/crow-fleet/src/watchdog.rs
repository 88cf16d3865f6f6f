//! Returns the tasks of a worker that was killed to their queue. The watchdog is a process beside the worker: it knows which messages
//! the worker holds, and the end of its input is the end of the worker.

mod held;

use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::Client;
use crow_core::{NatsCredentials, NatsServer};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

pub(crate) use self::held::HeldMessages;
use crate::connection::{FleetClock, connect};

/// The payload by which a worker returns a task to its queue.
const GIVE_BACK: &str = "-NAK";

/// Time for the server to confirm that, which takes milliseconds.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause after an attempt without success.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The first line of a watchdog's input.
#[derive(Serialize, Deserialize)]
pub(crate) struct WatchdogOrder {
    /// The name of the worker.
    pub(crate) worker: String,
    urls: String,
    #[serde(with = "CredentialsText")]
    credentials: NatsCredentials,
    tls_ca_file: Option<PathBuf>,
    /// The time for which its messages are certainly still its own.
    time_max_ms: u64,
}

/// The credentials as text.
#[derive(Serialize, Deserialize)]
#[serde(remote = "NatsCredentials")]
enum CredentialsText {
    None,
    Token(String),
    Password { user: String, password: String },
    CredentialsFile(PathBuf),
    NkeyFile(PathBuf),
}

impl WatchdogOrder {
    /// Creates the order of a worker whose tasks the server gives away after `ack_wait`.
    pub(crate) fn new(server: &NatsServer, worker: &str, ack_wait: Duration) -> Self {
        // A worker stops by itself after two thirds without a confirmation, so this is what is left at least. Later, the
        // message may be another worker's, and this one must not give that away.
        let time_max = ack_wait / 3;
        Self {
            worker: worker.to_owned(),
            urls: server.urls.clone(),
            credentials: server.credentials.clone(),
            tls_ca_file: server.tls_ca_file.clone(),
            time_max_ms: u64::try_from(time_max.as_millis()).unwrap_or_default(),
        }
    }
}

/// The tasks of a worker that was killed.
pub struct AbandonedTasks {
    order: WatchdogOrder,
    subjects: Vec<String>,
    clock: FleetClock,
}

impl AbandonedTasks {
    /// Reads what a worker holds until it is gone; returns what it left, if it left something. The error is the reason why
    /// its input is not understood.
    pub fn wait_for(input: impl BufRead) -> Result<Option<Self>, String> {
        let mut lines = input.lines();
        let Some(Ok(first)) = lines.next() else { return Ok(None) };
        let order: WatchdogOrder = serde_json::from_str(&first).map_err(|error| error.to_string())?;
        let mut held = HeldMessages::default();
        // An error of the pipe is its end.
        for line in lines.map_while(Result::ok) {
            held.handle_line(&line);
        }
        let (subjects, clock) = (held.into_subjects(), FleetClock::start());
        Ok((!subjects.is_empty()).then_some(Self { order, subjects, clock }))
    }

    /// Returns the tasks to their queue; the result is how many. The error says that the time was over before all were.
    pub async fn give_back(self) -> Result<usize, String> {
        let Self { order, subjects, clock } = self;
        let WatchdogOrder { worker, urls, credentials, tls_ca_file, time_max_ms } = order;
        let (server, time_max) =
            (NatsServer { urls, credentials, tls_ca_file }, Duration::from_millis(time_max_ms));
        let mut client = None;
        for (index, subject) in subjects.iter().enumerate() {
            while !give_back(&mut client, &server, &worker, subject).await {
                if clock.now() >= time_max {
                    return Err(format!("the server did not take back {} tasks", subjects.len() - index));
                }
                sleep(RETRY_AFTER).await;
            }
        }
        Ok(subjects.len())
    }
}

/// Returns one message to its queue; the result is whether the server has confirmed it. The connection is made when it is needed.
async fn give_back(client: &mut Option<Client>, server: &NatsServer, worker: &str, subject: &str) -> bool {
    if client.is_none() {
        match timeout(CONFIRM_TIMEOUT, connect(server, "watchdog", worker)).await {
            Ok(Ok(connected)) => *client = Some(connected),
            Ok(Err(reason)) => tracing::debug!(%reason, "the watchdog could not connect"),
            Err(_) => tracing::debug!("the watchdog could not connect in time"),
        }
    }
    let Some(client) = client else { return false };
    let request = client.request(subject.to_owned(), GIVE_BACK.into());
    matches!(timeout(CONFIRM_TIMEOUT, request).await, Ok(Ok(_)))
}
