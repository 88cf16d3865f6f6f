//! The messages that survive a server: a task, that a worker has it, what it has saved, and its end.

use std::path::PathBuf;

use crow_acp::RelayOutcome;
use crow_core::Mode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::{BundleRecord, CodeRecord, EndCode};
use crate::ticket::{SignedKind, TaskTicket};

/// The longest message of a task: the server's limit is usually a megabyte, and thousands may wait.
pub(crate) const TASK_BYTES_MAX: usize = 256 * 1024;

/// The longest response in a record; longer ones are replaced by an error.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;

/// The version of the messages.
const VERSION: u32 = 1;

/// A task as it waits in its queue. It contains no key, program or address: those are the worker's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskMessage {
    version: u32,
    /// The name of the task in its subject.
    pub(crate) task: String,
    pub(crate) ticket: TaskTicket,
    pub(crate) prompt: String,
    pub(crate) model: Option<String>,
    #[serde(with = "mode_word")]
    pub(crate) mode: Mode,
    /// The depth of the agent in its tree.
    pub(crate) depth: u32,
    /// The code to work on, in a worktree of its own.
    pub(crate) code: Option<CodeRecord>,
}

/// A task to be written.
#[derive(Debug, Clone)]
pub(crate) struct TaskParts {
    pub(crate) task: String,
    pub(crate) ticket: TaskTicket,
    pub(crate) prompt: String,
    pub(crate) model: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) depth: u32,
    pub(crate) code: Option<CodeRecord>,
}

impl TaskMessage {
    pub(crate) fn new(parts: TaskParts) -> Self {
        let TaskParts { task, ticket, prompt, model, mode, depth, code } = parts;
        Self { version: VERSION, task, ticket, prompt, model, mode, depth, code }
    }

    /// Encodes it; the error says that it is too long.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        let bytes = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        match bytes.len() {
            0..=TASK_BYTES_MAX => Ok(bytes),
            n_bytes => Err(format!(
                "the task is too long for a queue: {} kB, and {} kB are allowed",
                n_bytes.div_ceil(1024),
                TASK_BYTES_MAX / 1024
            )),
        }
    }

    /// Decodes the message of the task with this name; the error is the reason.
    pub(crate) fn decode(bytes: &[u8], task: &str) -> Result<Self, String> {
        if bytes.len() > TASK_BYTES_MAX {
            return Err("it is too long".to_owned());
        }
        let message: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if message.version != VERSION {
            return Err(format!("its version is {}, and this worker knows {VERSION}", message.version));
        }
        if message.task != task {
            return Err("its subject is that of another task".to_owned());
        }
        Ok(message)
    }
}

mod mode_word {
    use crow_core::Mode;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(mode.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        let word = String::deserialize(deserializer)?;
        Mode::parse(&word).ok_or_else(|| de::Error::custom("unknown mode"))
    }
}

/// A record that a worker has a task, or that it gave it back because it stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenRecord {
    pub(crate) worker: String,
    /// The sequence of the task's message.
    pub(crate) sequence: u64,
    /// The number of deliveries of the message, with this one.
    pub(crate) delivery: u32,
    pub(crate) is_given_back: bool,
    /// Whether the worker goes on with the conversation of an earlier one.
    #[serde(default)]
    pub(crate) goes_on: bool,
}

/// One delivery of a task; a later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TaskDelivery {
    /// The sequence of the task's message.
    pub(crate) sequence: u64,
    /// The number of deliveries of the message, with this one.
    pub(crate) number: u32,
}

/// A record of where another worker could go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedRecord {
    pub(crate) delivery: TaskDelivery,
    /// `None` if it could not: what earlier workers have saved is no longer true.
    pub(crate) work: Option<SavedWork>,
}

/// A conversation in a database that workers share, and the files that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedWork {
    pub(crate) session: String,
    /// The working directory with which the session began.
    pub(crate) first_cwd: PathBuf,
    /// The name of the task's directory.
    pub(crate) directory: String,
    /// A snapshot of the files.
    pub(crate) bundle: BundleRecord,
}

/// A record of the end of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndRecord {
    pub(crate) worker: String,
    /// The agent's response to the prompt: an object with `result` or `error`.
    pub(crate) response: Map<String, Value>,
    /// The last text of the agent, if the parent missed some of it.
    pub(crate) missed_answer: Option<String>,
    /// The code after the task, if it had some.
    pub(crate) code: Option<EndCode>,
}

impl EndRecord {
    /// Encodes and signs it. A response that is too long is replaced by an error.
    pub(crate) fn encode(&self, ticket: &TaskTicket) -> Vec<u8> {
        let encoded = serde_json::to_vec(self).unwrap_or_default();
        if encoded.is_empty() || encoded.len() > RESPONSE_BYTES_MAX {
            let outcome = RelayOutcome::failed("the agent's response is too long to be sent");
            let short = Self { response: outcome.response, missed_answer: None, ..self.clone() };
            return ticket.sign(SignedKind::End, serde_json::to_vec(&short).unwrap_or_default());
        }
        ticket.sign(SignedKind::End, encoded)
    }

    /// Decodes a record with a valid signature.
    pub(crate) fn decode(bytes: &[u8], ticket: &TaskTicket) -> Option<Self> {
        let record: Self = serde_json::from_slice(ticket.verify(SignedKind::End, bytes)?).ok()?;
        let is_response = ["result", "error"].iter().any(|name| record.response.contains_key(*name));
        (is_response && record.response.len() == 1).then_some(record)
    }
}

impl SavedRecord {
    /// Encodes and signs it; the error is the reason, such as a path that is not UTF-8.
    pub(crate) fn encode(&self, ticket: &TaskTicket) -> Result<Vec<u8>, String> {
        let bytes = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        Ok(ticket.sign(SignedKind::Saved, bytes))
    }

    /// Decodes a record with a valid signature.
    pub(crate) fn decode(bytes: &[u8], ticket: &TaskTicket) -> Option<Self> {
        serde_json::from_slice(ticket.verify(SignedKind::Saved, bytes)?).ok()
    }
}

impl TakenRecord {
    pub(crate) fn task_delivery(&self) -> TaskDelivery {
        TaskDelivery { sequence: self.sequence, number: self.delivery }
    }

    /// Encodes and signs it.
    pub(crate) fn encode(&self, ticket: &TaskTicket) -> Vec<u8> {
        ticket.sign(SignedKind::Taken, serde_json::to_vec(self).unwrap_or_default())
    }

    /// Decodes a record with a valid signature.
    pub(crate) fn decode(bytes: &[u8], ticket: &TaskTicket) -> Option<Self> {
        serde_json::from_slice(ticket.verify(SignedKind::Taken, bytes)?).ok()
    }
}
