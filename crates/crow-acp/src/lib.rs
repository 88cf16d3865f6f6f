//! ACP, both ends and every transport.
//!
//! The rest of Crow uses [`crow_core::SessionUpdate`] and [`IncomingRequest`]; only `v1.rs` uses ACP's own types, and
//! no SDK type leaves this crate.

mod agent_update;
mod capabilities;
mod client;
mod client_terminal;
mod config_option;
mod connected_client;
mod editor;
mod form;
mod handshake;
mod incoming;
mod outbox;
mod permission;
mod program;
mod program_loss;
mod relay;
mod server;
mod socket;
mod splice;
mod transport;
mod user_questions;
mod v1;

pub use agent_update::{AgentUpdate, StopReason};
pub use capabilities::{AcpAgentCapabilities, AcpClientCapabilities, ClientInfo};
pub use client::{
    AgentConnection, ClientAccess, ClientAccessRequest, ClientAnswer, ClientCall, ClientCallError,
    ClientEvent, INITIALIZE_TIMEOUT, OpenedSession, ParentClient, PromptOutcome, drive_agent,
};
pub use client_terminal::{
    ClientError, ClientTerminalOutput, RequestedCommand, TerminalCommand, TerminalExit,
};
pub use config_option::{ConfigChoice, ConfigOption};
pub use connected_client::Client;
pub use crow_process::{CommandSpec as AgentCommand, ExitReason as ProgramEnded, SpawnError};
pub use editor::{ClientEditor, ClientTerminal};
pub use form::{ElicitationChoice, ElicitationForm, ElicitationOutcome, FormSubject};
pub use incoming::{
    AgentInfo, EarlierPrompt, IncomingRequest, OpenSessionResult, PromptBlock, PromptId, PromptResult,
    ResponseSender, SessionInfo, SessionLocation, SessionOpenKind, SessionPage, SteerOutcome, TurnScope,
};
pub use outbox::ReplayHold;
pub use permission::{
    AgentPermissionRequest, ChildPermissionRequest, OfferedAnswers, PermissionAnswer, PermissionOption,
    PermissionOutcome, PermissionRequest, PermissionSubject,
};
pub use program::{AgentExit, AgentLauncher, AgentProgram};
pub use program_loss::ProgramLoss;
pub use relay::{
    ParentRelay, ParentRelayAction, RelayOutcome, RelayTask, ResumedSession, WorkerRelay, WorkerRelayAction,
};
pub use server::{ServeError, serve_client};
pub use socket::{
    AdmissionPolicy, BearerToken, CloseReason, ConnectError, ConnectionLimits, PendingConnection,
    SocketListener, TransportSecurity, accept_connections, classify_address, connect_socket, serve_socket,
};
pub use splice::{SplicePeer, splice_transports};
pub use transport::{LineTransport, channel_transport, duplex_transport, stdio_transport};
