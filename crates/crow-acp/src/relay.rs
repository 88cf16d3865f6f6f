//! A session whose agent runs elsewhere, and whose client may be away for a while. Two pure halves, lines in and lines out:
//! [`WorkerRelay`] is the client of the agent where it runs, and [`ParentRelay`] is the agent of the client that gave the
//! task. What lies between them carries lines in order, and may begin anew.

mod message;
mod outcome;
mod parent;
mod task;
#[cfg(test)]
mod tests;
mod turn_summary;
mod worker;

pub use self::outcome::RelayOutcome;
pub use self::parent::{ParentRelay, ParentRelayAction};
pub use self::task::{RelayTask, ResumedSession};
pub use self::worker::{WorkerRelay, WorkerRelayAction};

/// Requests of an agent that are passed on to its client. Files and terminals are not: they are those of another machine.
const FORWARDED_REQUESTS: [&str; 2] = ["session/request_permission", "elicitation/create"];

/// Requests in one direction that may be open at once; agents have a handful.
const OPEN_REQUESTS_MAX: usize = 64;

const CANCEL: &str = "session/cancel";
const CANCEL_REQUEST: &str = "$/cancel_request";
const PROMPT: &str = "session/prompt";
const STEERING: &str = "_session/steering";
const UPDATE: &str = "session/update";
