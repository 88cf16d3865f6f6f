//! Tasks on other machines: a queue in NATS JetStream between the parents that give tasks and the workers that run them.
//!
//! The message of a task is the licence to run it. What parent and agent say to each other is ACP, relayed by `crow-acp`;
//! here it is a sequence of opaque lines. Must not know a session, a store or a model.

mod code;
mod connection;
mod farm;
mod frame;
mod licence;
mod line_channel;
mod overview;
mod place;
mod record;
mod streams;
mod subject;
#[cfg(test)]
mod tests;
mod ticket;
mod watchdog;
mod worker;

pub use self::farm::{
    CodeRequest, FarmConnections, FarmTask, FetchedCode, QueuedFarmTask, ResumedFarmTask, SentCode,
    UnreachableReport,
};
pub use self::overview::{FleetObserver, FleetOverview, QueueOverview, TaskHolder, TaskOverview};
pub use self::place::{FarmPlace, PlaceKeeper};
pub use self::streams::QueueOptions;
pub use self::subject::is_subject_token;
pub use self::watchdog::AbandonedTasks;
pub use self::worker::{FleetWorker, TaskBeginning, WorkerEvent, WorkerOptions, WorkerStatus};
