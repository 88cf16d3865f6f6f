//! ACP, both ends and every transport.
//!
//! The rest of Crow uses [`crow_core::SessionUpdate`] and [`IncomingRequest`]; only `v1.rs` uses ACP's own types, and
//! no SDK type leaves this crate.

mod capabilities;
mod client;
mod editor;
mod form;
mod handshake;
mod incoming;
mod outbox;
mod program;
mod server;
mod socket;
mod splice;
mod transport;
mod v1;

pub use capabilities::AcpClientCapabilities;
pub use client::{
    AcpAgentCapabilities, AgentConnection, AgentPermissionRequest, AgentUpdate, ClientAccess,
    ClientAccessRequest, ClientEvent, ClientInfo, ConfigOption, GrantScope, INITIALIZE_TIMEOUT,
    OpenedSession, ParentClient, PermissionAnswer, PermissionOption, PromptOutcome, StopReason, drive_agent,
};
pub use crow_process::{CommandSpec as AgentCommand, ExitReason as ProgramEnded, SpawnError};
pub use editor::{
    ClientEditor, ClientError, ClientTerminal, ClientTerminalOutput, TerminalCommand, TerminalExit,
};
pub use form::{ElicitationChoice, ElicitationForm, ElicitationOutcome};
pub use incoming::{
    AgentInfo, IncomingRequest, OpenSessionResult, PromptBlock, PromptId, ResponseSender, SessionInfo,
    SessionLocation, SessionOpenKind, SessionPage, SteerOutcome, TurnScope,
};
pub use outbox::{Client, OfferedAnswers, PermissionOutcome, PermissionRequest, PermissionSubject};
pub use program::{AgentExit, AgentLauncher, AgentProgram};
pub use server::{ServeError, serve_client};
pub use socket::{
    AdmissionPolicy, BearerToken, CloseReason, ConnectError, ConnectionLimits, PendingConnection,
    SocketListener, TransportSecurity, accept_connections, classify_address, connect_socket, serve_socket,
};
pub use splice::{SplicePeer, splice_transports};
pub use transport::{LineTransport, duplex_transport, stdio_transport};
