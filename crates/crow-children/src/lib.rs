//! The child agents of a session: which exist, how one is started and driven, how commands reach it, and the tools with
//! which the model uses them. A child's requests go to the session's client, its results into the session's mailbox.
//!
//! Must not know how a session runs a turn or stores its grants: it asks its [`ParentSession`].

mod access;
mod budget;
mod child_agents;
mod child_status;
mod driver;
mod events;
mod handle;
mod kept_place;
mod launch;
mod link;
mod mail;
mod ports;
mod questions;
mod record;
mod report;
mod resume;
mod shared;
mod start;
mod task_tools;
mod timers;
mod turn;
mod view;
mod worktree;

pub use self::budget::{ContextUsage, TreeBudget};
pub use self::child_agents::{ChildAgents, ChildAgentsInit};
pub use self::handle::AwaitedTurn;
pub use self::mail::{MailWaitOutcome, RecoveredTasks};
pub use self::ports::{ChildAgentsConfig, ChildLauncher, InheritedSettings, ParentSession};
pub use self::questions::ParentCall;
pub use self::shared::{DEPTH_VARIABLE, OWN_AGENT};
pub use self::start::NewTaskRequest;
pub use self::task_tools::{ChildAgentsCell, task_specs, task_tools, wait_for_turn};
pub use self::view::single_line;
pub use self::worktree::{AgentWorktree, WorktreeEnd, WorktreeRequest};

#[cfg(test)]
mod tests;
