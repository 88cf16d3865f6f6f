//! The agent: the host loop, one driver per session, and the turns.
//!
//! It produces [`crow_core::SessionUpdate`] and handles [`crow_acp::IncomingRequest`]; it contains no protocol, no SQL
//! and no provider's JSON.

mod builtin_tools;
mod call_approval;
mod calls;
mod clock;
mod compact;
mod confirm;
mod failures;
mod handle;
mod hooks;
mod host;
mod linked_content;
mod live_replays;
mod location;
mod mcp_requests;
mod model_requests;
mod pending_session;
mod permission_gate;
mod replay;
mod reply_recovery;
mod run_turn;
mod runtime;
mod sandbox_retry;
mod session;
mod session_context;
mod session_init;
mod session_prompt;
mod session_settings;
mod simulated_ports;
mod stored_session;
mod telemetry;
mod turn_context;
mod turn_job;
mod workflow;

pub use host::serve_sessions;
pub use runtime::{AgentConfig, AgentRuntime};
pub use simulated_ports::SimulatedPorts;

/// The target of the tracing span around the work of a session; its field `session` is the session's name.
pub const SESSION_SPAN: &str = "session";
