//! Owns tasks and time: the host loop, one driver per session, the running of a turn.
//!
//! It says [`crow_core::Update`] and hears [`crow_acp::Incoming`]; it spells no protocol, no SQL and no
//! provider's JSON.

mod approvals;
mod calls;
mod children;
mod clock;
mod commands;
mod compact;
mod confirm;
mod fallback;
mod go_on;
mod handle;
mod hold;
mod hooks;
mod host;
mod instructions;
mod keeping;
mod kit;
mod linked;
mod memory;
mod open;
mod place;
mod prompt;
mod records;
mod replay;
mod run_turn;
mod session;
mod speckit;
mod spoken;
mod supplies;
mod tasks;
mod toolbox;
mod turn_job;
mod undo;

pub use approvals::{ProjectPermissions, list_permissions, set_permissions};
pub use children::{DEPTH_VARIABLE, OWN as OWN_AGENT};
pub use host::serve;
pub use kit::{Kit, KitSettings, Parallel, Surrounding, WorkflowSettings};
pub use memory::memory_specs;
pub use supplies::{
    ReadRepository, RepositoryConfig, RepositoryTrust, SuppliedFile, TrustedRepository, Variables,
    forget_trust, list_trust, repository_of,
};
pub use tasks::task_specs;
pub use undo::{TurnUndone, undo_turn};

/// The target of the span around all that a session does; its field `session` is the session's name.
pub const SESSION_SPAN: &str = "session";
