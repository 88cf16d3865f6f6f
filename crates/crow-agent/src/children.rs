//! The child agents of a session: which exist, how one is started, and how commands reach it. A child's requests go to
//! the session's client, its results into the session's mailbox.

mod access;
mod budget;
mod child;
mod child_agents;
mod events;
mod handle;
mod mail;
mod record;
mod report;
mod resume;
mod shared;
mod start;
mod turn_end;
mod view;

pub(crate) use self::budget::ContextUsage;
pub(crate) use self::child_agents::{ChildAgents, ParentSession, TaskReport, TaskSendOutcome};
pub(crate) use self::events::ParentCall;
pub(crate) use self::handle::AwaitedTurn;
pub(crate) use self::mail::MailWaitOutcome;
pub(crate) use self::report::{task_resumed_text, task_started_text};
pub use self::shared::{DEPTH_VARIABLE, OWN_AGENT};
pub(crate) use self::shared::{NotifyParent, SessionEnvironment};
pub(crate) use self::start::NewTaskRequest;
pub(crate) use self::view::single_line;
