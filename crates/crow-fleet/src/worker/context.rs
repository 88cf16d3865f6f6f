//! The options of a worker, its events, and the state that its tasks share.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use crow_acp::{AgentCommand, AgentLauncher};
use crow_core::{Mode, NatsServer};
use crow_tools::GitCli;
use tokio_util::sync::CancellationToken;

use super::kept_tasks::KeptTasks;
use super::status::WorkerCounts;
use super::watchdog::WatchdogInput;
use crate::streams::QueueOptions;

/// The options of a worker.
pub struct WorkerOptions {
    pub server: NatsServer,
    pub queues: Vec<QueueOptions>,
    /// The name of the worker in the subjects, to which its user at the server may be limited.
    pub name: String,
    /// Tasks that run at the same time.
    pub n_slots: usize,
    /// The agent of each task; its working directory is that of the task.
    pub agent: AgentCommand,
    /// The program that returns the tasks to their queue if this process is killed, by [`crate::AbandonedTasks`].
    pub watchdog: Option<AgentCommand>,
    /// The environment variable with the depth of an agent in its tree.
    pub depth_variable: &'static str,
    pub launcher: AgentLauncher,
    /// The directory of the working directories of tasks.
    pub workspaces_dir: PathBuf,
    /// Git for the worktrees of tasks.
    pub git: GitCli,
    /// Whether workers on other machines have the same sessions, so that they can go on with a task.
    pub shares_sessions: bool,
    /// Tasks are not allowed more than this mode.
    pub mode_max: Mode,
    /// The time limit of one task.
    pub task_time_max: Duration,
    /// Time that running tasks have to end when the worker stops.
    pub drain_time_max: Duration,
    /// The version of this program.
    pub version: &'static str,
}

/// The beginning of a task at a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskBeginning {
    First,
    /// Another worker had begun it.
    Again,
    /// It goes on with the conversation of another worker.
    Continued,
}

/// Something that an operator wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The queue cannot be opened yet; the worker tries again.
    QueueUnavailable { reason: String },
    /// A task begins.
    Taken { task: String, delivery: u32, beginning: TaskBeginning },
    /// A task has ended, in these words.
    Ended { task: String, outcome: String },
}

/// The state that all tasks of a worker share.
pub(crate) struct WorkerContext {
    pub(crate) options: WorkerOptions,
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    /// Time after which the server gives a task to another worker.
    pub(crate) ack_wait: Duration,
    pub(crate) report: Box<dyn Fn(WorkerEvent) + Send + Sync>,
    pub(super) watchdog: WatchdogInput,
    pub(super) counts: WorkerCounts,
    pub(super) kept_tasks: KeptTasks,
    /// Ends running tasks, which are given back.
    pub(crate) kill: CancellationToken,
}
