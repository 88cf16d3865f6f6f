//! Drives any agent that speaks the Agent Client Protocol (ACP): starts its program or connects to it over WebSocket,
//! sends prompts and streams what the agent does.
//!
//! ```no_run
//! # async fn ask() -> Result<(), crow_client::AgentError> {
//! use crow_client::Agent;
//!
//! let agent = Agent::program("crow-cli", ["acp"]).start().await?;
//! let outcome = agent.new_session().await?.prompt("What does this project do?").finish().await?;
//! println!("{}", outcome.text);
//! # Ok(())
//! # }
//! ```
//!
//! The events of a turn are a [`Stream`](futures_util::Stream); [`AgentTurn::next_event`] reads it without another
//! crate. Everything needs a tokio runtime with time and I/O enabled.
//!
//! By default permission requests of the agent are rejected ([`AgentOptions::permission`],
//! [`AgentOptions::on_permission`]). A program that was started here gets files inside the directory of its session and
//! terminals from this process; an agent at an address gets neither ([`AgentOptions::files`],
//! [`AgentOptions::terminals`]).
//!
//! The crate must not know Crow's configuration, and decides nothing about a session of its own: it is a client.

mod agent;
mod connection;
mod driver;
mod error;
mod event;
mod files;
mod options;
mod permission;
mod prompt;
mod router;
mod session;
mod terminals;
mod turn;

pub use agent::Agent;
pub use crow_acp::{
    AcpAgentCapabilities, AgentPermissionRequest, AgentUpdate, ConfigChoice, ConfigOption, PermissionOption,
    PermissionSubject, SessionInfo, StopReason,
};
pub use crow_core::{
    Failure, FailureKind, PlanEntry, PlanStatus, SessionId, ToolCallContent, ToolCallStatus, ToolKind,
};
pub use error::AgentError;
pub use event::{ContextStatus, ToolCallChange, TurnEvent, TurnOutcome};
pub use files::FileAccess;
pub use options::{AgentOptions, ProgramSource, SocketSource};
pub use permission::PermissionChoice;
pub use prompt::PromptContent;
pub use session::{AgentSession, SessionReplay};
pub use turn::AgentTurn;
