//! The agent: the host loop, one driver per session, and the turns.
//!
//! It produces [`crow_core::SessionUpdate`] and handles [`crow_acp::IncomingRequest`]; it contains no protocol, no SQL
//! and no provider's JSON.

mod approvals;
mod calls;
mod children;
mod clock;
mod commands;
mod compact;
mod confirm;
mod fallback;
mod handle;
mod hooks;
mod host;
mod instructions;
mod linked_content;
mod location;
mod memory;
mod project_config;
mod project_records;
mod prompt;
mod prompt_parts;
mod replay;
mod reply_recovery;
mod run_turn;
mod runtime;
mod sandbox_retry;
mod sentence;
mod session;
mod session_init;
mod speckit;
mod tasks;
mod toolbox;
mod turn_job;
mod undo;
mod undo_recorder;

pub use approvals::{ProjectPermissions, list_permissions, set_permissions};
pub use children::{DEPTH_VARIABLE, OWN_AGENT};
pub use host::serve_sessions;
pub use memory::memory_specs;
pub use project_config::{
    RepositoryConfig, RepositoryConfigReader, RepositoryFileTrust, RepositoryTrust, TrustedRepository,
    VariableExpansion, find_repository_root, forget_trust, list_trust,
};
pub use runtime::{AgentConfig, AgentRuntime, ParallelMode, PublicEnvironment, WorkflowConfig};
pub use tasks::task_specs;
pub use undo::{TurnUndone, undo_turn};

/// The target of the tracing span around the work of a session; its field `session` is the session's name.
pub const SESSION_SPAN: &str = "session";
