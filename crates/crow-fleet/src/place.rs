//! The place of a task: what a later process of its parent needs to take it up again.

use std::fmt;
use std::time::Duration;

use crow_core::{NatsServer, SessionId};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::connection::now_in_milliseconds;
use crate::record::TaskMessage;
use crate::streams::RECORD_AGE_MAX;
use crate::subject::{TaskAddress, is_subject_token};

/// The version of a stored place.
const VERSION: u32 = 1;

/// The port of a server whose address has none.
const DEFAULT_PORT: u16 = 4222;

/// Keeps the place of a task from before anyone can run it until its end is stored.
pub trait PlaceKeeper: Send + Sync {
    /// Stores an encoded place; the error is the reason.
    fn keep_place(&self, place: String) -> BoxFuture<'static, Result<(), String>>;

    /// Waits until the end of the task is stored: until then a later process may need what the server has of it.
    fn wait_until_stored(&self) -> BoxFuture<'static, ()>;
}

/// A task in a queue. Encoded, it contains the secret of the task and its prompt, and no credentials.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarmPlace {
    version: u32,
    /// The addresses of its servers: host and port.
    servers: Vec<String>,
    queue: String,
    parent: String,
    /// The moment when the task was given, in milliseconds since 1970.
    given_at: u64,
    /// The message, which is published again if the server has lost it.
    pub(crate) message: TaskMessage,
}

impl fmt::Debug for FarmPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FarmPlace({} in {})", self.message.task, self.queue)
    }
}

impl FarmPlace {
    pub(crate) fn new(servers: Vec<String>, address: &TaskAddress, message: TaskMessage) -> Self {
        let TaskAddress { queue, parent, task: _ } = address.clone();
        Self { version: VERSION, servers, queue, parent, given_at: now_in_milliseconds(), message }
    }

    /// Whether an end of the task may have been deleted by age, because no parent has read it.
    pub(crate) fn is_old(&self) -> bool {
        let age = Duration::from_millis(now_in_milliseconds().saturating_sub(self.given_at));
        age >= RECORD_AGE_MAX
    }

    pub(crate) fn encode(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    /// Decodes a place; the error is the reason.
    pub fn decode(text: &str) -> Result<Self, String> {
        // The error of the parser would quote what it has read.
        let place: Self = serde_json::from_str(text).map_err(|_| "it cannot be read".to_owned())?;
        if place.version != VERSION {
            return Err(format!("its version is {}, and this Crow knows {VERSION}", place.version));
        }
        let names = [&place.queue, &place.parent, &place.message.task];
        let is_valid = names.iter().all(|name| is_subject_token(name));
        is_valid.then_some(place).ok_or_else(|| "its names are not those of a task".to_owned())
    }

    /// Returns the prompt of the task.
    pub fn prompt(&self) -> &str {
        &self.message.prompt
    }

    /// Returns the name of the task, which is that of its session for its driver.
    pub fn session(&self) -> SessionId {
        SessionId::new(self.message.task.clone())
    }

    /// Whether these addresses name one of its servers.
    pub fn is_at(&self, server: &NatsServer) -> bool {
        server_names(server).iter().any(|name| self.servers.contains(name))
    }

    /// Returns the addresses of its servers, separated by commas.
    pub fn servers(&self) -> String {
        self.servers.join(", ")
    }

    pub(crate) fn address(&self) -> TaskAddress {
        TaskAddress {
            queue: self.queue.clone(),
            parent: self.parent.clone(),
            task: self.message.task.clone(),
        }
    }
}

/// Returns host and port of each address of a server, without credentials.
pub(crate) fn server_names(server: &NatsServer) -> Vec<String> {
    let names = server.urls.split(',').map(|url| {
        let url = url.trim();
        let address = url.split_once("://").map_or(url, |(_scheme, address)| address);
        let address = address.rsplit_once('@').map_or(address, |(_credentials, address)| address);
        let name = address.split('/').next().unwrap_or_default().to_lowercase();
        let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if has_port { name } else { format!("{name}:{DEFAULT_PORT}") }
    });
    names.collect()
}
